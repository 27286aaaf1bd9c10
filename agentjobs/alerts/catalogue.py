"""Which ways the settings name, and what they say of letters that nobody decides on."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import timedelta
from typing import Final

from agentjobs.alerts.incidents import IncidentSink
from agentjobs.alerts.sink import Sink
from agentjobs.alerts.webhook import WebhookSink
from agentjobs.domain.alerts import AgePolicy
from agentjobs.ledger.ledger import Ledger
from agentjobs.settings import Settings, SettingsError
from agentjobs.trackers.tracker import Tracker
from agentjobs.webhooks.signing import Signer

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


@asynccontextmanager
async def sinks_of(settings: Settings, ledger: Ledger, tracker: Tracker) -> AsyncIterator[tuple[Sink, ...]]:
    """The sinks beside the log, for the length of the block. Raises SettingsError naming the variable."""
    sinks: list[Sink] = []
    async with AsyncExitStack() as open_sinks:
        if settings.alert_webhook_url is not None:
            sinks.append(await open_sinks.enter_async_context(aclosing(_webhook(settings))))
        if settings.alert_incidents:
            sinks.append(IncidentSink(tracker, ledger, links_base=settings.alert_links_url))
        yield tuple(sinks)


def age_policy_of(settings: Settings) -> AgePolicy:
    """Raises SettingsError naming the variable."""
    days = settings.dead_retention_days
    return AgePolicy(
        escalate_after=_ages(settings.alert_escalate_after),
        discard_after=None if days is None else timedelta(days=days),
        notice=timedelta(days=settings.dead_retention_notice_days),
    )


def _webhook(settings: Settings) -> WebhookSink:
    if settings.alert_webhook_url is None or settings.alert_webhook_secrets is None:
        raise SettingsError("AGENTJOBS_ALERT_WEBHOOK_SECRETS is required by AGENTJOBS_ALERT_WEBHOOK_URL")
    try:
        signer = Signer(settings.alert_webhook_secrets)
    except ValueError as error:
        raise SettingsError(f"AGENTJOBS_ALERT_WEBHOOK_SECRETS: {error}") from None
    try:
        return WebhookSink(
            settings.alert_webhook_url.get_secret_value(),
            signer,
            private=settings.alert_webhook_private,
            links_base=settings.alert_links_url,
        )
    except ValueError as error:
        raise SettingsError(f"AGENTJOBS_ALERT_WEBHOOK_URL: {error}") from None


def _ages(text: str) -> tuple[timedelta, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    found = [re.fullmatch(r"([1-9]\d{0,4})([mhd])", word) for word in words]
    ages = tuple(timedelta(**{_UNITS[age[2]]: int(age[1])}) for age in found if age)
    if len(ages) < len(words) or list(ages) != sorted(set(ages)):
        raise SettingsError("AGENTJOBS_ALERT_ESCALATE_AFTER: rising ages such as 4h,24h (m, h or d), or empty")
    return ages
