"""What AGENTJOBS_MODEL may be, and what is told about everything else before the first call."""

import subprocess
import sys

import pytest

from agentjobs.providers import real_model as module
from agentjobs.providers.catalogue import provider_named
from agentjobs.providers.offline import OfflineProvider
from agentjobs.settings import SettingsError


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def told(name: str) -> str:
    with pytest.raises(SettingsError) as raised:
        provider_named(name)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_offline_is_the_offline_provider() -> None:
    assert isinstance(provider_named("offline"), OfflineProvider)


@pytest.mark.parametrize("name", ["", "gpt-4o", "test", ":gpt", "openai-chat:"])
def test_a_name_without_provider_and_model_is_refused(name: str) -> None:
    assert told(name).startswith("AGENTJOBS_MODEL: give 'offline', or PROVIDER:MODEL")


def test_an_unknown_provider_is_named() -> None:
    assert told("acme:gpt-4o") == "AGENTJOBS_MODEL: no provider is called 'acme'"


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai-chat:gpt-4o", "OPENAI_API_KEY"),
        ("openai-responses:gpt-4o", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY"),
    ],
)
def test_a_missing_key_is_named_by_its_variable(name: str, variable: str) -> None:
    assert told(name) == f"{variable} is required by AGENTJOBS_MODEL={name}"


def test_a_missing_package_is_told_with_the_extra_that_brings_it() -> None:
    assert told("groq:llama") == "AGENTJOBS_MODEL=groq:llama needs a package: pip install 'pydantic-ai-slim[groq]'"


def test_a_missing_package_of_our_own_extras_is_told_by_our_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(provider: str) -> None:
        raise ImportError('install `pip install "pydantic-ai-slim[openai]"`')

    monkeypatch.setattr(module, "infer_provider_class", missing)

    assert "pip install 'agentjobs[openai]'" in told("openai-chat:gpt-4o")


def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8080/v1")

    assert "must begin with https:// or http://" in told("openai-chat:small")


@pytest.mark.parametrize("name", ["openai-chat:gpt-4o", "openai-responses:gpt-4o", "anthropic:claude-sonnet-4-5"])
async def test_a_model_with_its_key_is_a_provider_and_connects_to_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")

    provider = provider_named(name, background=True)

    assert provider.metered
    assert provider.most_usd(1_000_000) > 0
    await provider.aclose()
    await provider.aclose()


def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    assert provider_named("openai-chat:small").metered


def test_the_offline_path_imports_nothing_of_the_real_one() -> None:
    program = (
        "import sys; from agentjobs.providers.catalogue import provider_named; provider_named('offline'); "
        "sys.exit(any(name.split('.')[0] in {'pydantic_ai', 'openai', 'httpx2'} for name in sys.modules))"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
