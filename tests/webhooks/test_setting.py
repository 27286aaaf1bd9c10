"""Only a trial lets tenants' webhooks go inside."""

import pytest

from agentjobs.settings import SettingsError, load


@pytest.mark.parametrize("environment", ["production", None])
def test_production_does_not_start_with_private_webhooks(
    monkeypatch: pytest.MonkeyPatch, environment: str | None
) -> None:
    monkeypatch.setenv("AGENTJOBS_DATABASE_URL", "postgresql://nowhere")
    monkeypatch.setenv("AGENTJOBS_WEBHOOKS_PRIVATE", "true")
    monkeypatch.delenv("AGENTJOBS_ENVIRONMENT", raising=False)
    if environment is not None:
        monkeypatch.setenv("AGENTJOBS_ENVIRONMENT", environment)

    with pytest.raises(SettingsError, match="AGENTJOBS_WEBHOOKS_PRIVATE"):
        load()


def test_the_dev_stack_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTJOBS_DATABASE_URL", "postgresql://nowhere")
    monkeypatch.setenv("AGENTJOBS_WEBHOOKS_PRIVATE", "true")
    monkeypatch.setenv("AGENTJOBS_ENVIRONMENT", "dev")

    assert load().webhooks_private
