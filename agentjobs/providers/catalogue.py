"""Which provider AGENTJOBS_MODEL names."""

from agentjobs.providers.model import ModelProvider
from agentjobs.providers.offline import OfflineProvider
from agentjobs.settings import SettingsError


def provider_named(name: str) -> ModelProvider:
    """The provider. Raises SettingsError for a name that this release does not know."""
    if name == "offline":
        return OfflineProvider()
    raise SettingsError(f"AGENTJOBS_MODEL: this release knows only 'offline', not {name!r}")
