"""What the settings say of alerts, and how a wrong one is named."""

from datetime import timedelta

import pytest

from agentjobs.alerts.catalogue import age_policy_of, sinks_of
from agentjobs.ledger.ledger import Ledger
from agentjobs.settings import Settings, SettingsError
from agentjobs.trackers.postgres import PostgresTracker
from tests.alerts.receiver import SECRET


def settings(**changes: object) -> Settings:
    """Settings with these changes."""
    return Settings.model_validate({"database_url": "postgresql://unused", **changes})


async def named(ledger: Ledger, **changes: object) -> list[str]:
    """The sinks that these settings lead to."""
    async with sinks_of(settings(**changes), ledger, PostgresTracker(ledger.tickets)) as sinks:
        return [sink.name for sink in sinks]


async def test_only_the_log_is_on_unless_more_is_asked_for(ledger: Ledger) -> None:
    webhook = {"alert_webhook_url": "https://example.org/hook", "alert_webhook_secrets": SECRET}

    assert await named(ledger) == []
    assert await named(ledger, alert_incidents=True) == ["incident"]
    assert [name.split("-")[0] for name in await named(ledger, **webhook, alert_incidents=True)] == [
        "webhook",
        "incident",
    ]


@pytest.mark.parametrize(
    ("changes", "variable"),
    [
        ({"alert_webhook_url": "https://example.org/hook"}, "AGENTJOBS_ALERT_WEBHOOK_SECRETS"),
        (
            {"alert_webhook_url": "https://example.org/hook", "alert_webhook_secrets": "whsec_c2hvcnQ="},
            "AGENTJOBS_ALERT_WEBHOOK_SECRETS",
        ),
        (
            {"alert_webhook_url": "http://example.org/hook", "alert_webhook_secrets": SECRET},
            "AGENTJOBS_ALERT_WEBHOOK_URL",
        ),
    ],
)
async def test_an_unusable_webhook_is_refused_by_its_variable(
    ledger: Ledger, changes: dict[str, object], variable: str
) -> None:
    with pytest.raises(SettingsError, match=variable) as caught:
        await named(ledger, **changes)

    assert not [value for value in changes.values() if str(value) in str(caught.value)]


@pytest.mark.parametrize(
    ("text", "ages"),
    [
        ("4h,24h", (timedelta(hours=4), timedelta(hours=24))),
        ("30m, 2h ,7d", (timedelta(minutes=30), timedelta(hours=2), timedelta(days=7))),
        ("", ()),
    ],
)
def test_ages_are_read_with_their_units(text: str, ages: tuple[timedelta, ...]) -> None:
    assert age_policy_of(settings(alert_escalate_after=text)).escalate_after == ages


@pytest.mark.parametrize("text", ["4", "h", "0h", "24h,4h", "4h,240m", "-1h", "4h;24h"])
def test_ages_that_do_not_rise_or_have_no_unit_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="AGENTJOBS_ALERT_ESCALATE_AFTER"):
        age_policy_of(settings(alert_escalate_after=text))


def test_retention_is_off_unless_asked_for() -> None:
    kept, retained = age_policy_of(settings()), age_policy_of(settings(dead_retention_days=30))

    assert (kept.discard_after, retained.discard_after) == (None, timedelta(days=30))
    assert retained.announce_after == timedelta(days=27)
