"""Which provider AGENTJOBS_MODEL names."""

from agentjobs.providers.model import ModelProvider
from agentjobs.providers.offline import OfflineProvider
from agentjobs.settings import SettingsError


def provider_named(name: str, *, background: bool = False) -> ModelProvider:
    """The provider: `offline`, or a model of pydantic-ai as `PROVIDER:MODEL`, such as `openai-chat:gpt-4.1-mini`.

    background: let answers be written in the background by models that can (openai-responses). Raises
    SettingsError for a name that nobody answers to, a package or a key that is missing, and a model that no agent
    can use.
    """
    if name == "offline":
        return OfflineProvider()
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise SettingsError("AGENTJOBS_MODEL: give 'offline', or PROVIDER:MODEL such as openai-chat:gpt-4.1-mini")
    return _real(name, background=background)


def _real(name: str, *, background: bool) -> ModelProvider:
    # Imported here: a worker with the offline provider need not spend the time and the memory.
    from agentjobs.providers.background import writes_in_background
    from agentjobs.providers.pydantic_ai_provider import PydanticAIProvider
    from agentjobs.providers.real_model import real_model

    model = real_model(name)
    return PydanticAIProvider(model, name, background=background and writes_in_background(model))
