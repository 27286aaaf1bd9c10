"""Which destination AGENTJOBS_TRACKER names."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import assert_never

from pydantic import SecretStr

from agentjobs.ledger.tickets import Tickets
from agentjobs.settings import Settings, SettingsError, TrackerName
from agentjobs.trackers.github import GithubTracker
from agentjobs.trackers.postgres import PostgresTracker
from agentjobs.trackers.roundup import RoundupTracker
from agentjobs.trackers.tracker import Tracker


@asynccontextmanager
async def tracker_of(settings: Settings, tickets: Tickets) -> AsyncIterator[Tracker]:
    """The tracker for the length of the block. Raises SettingsError for a missing or unusable setting."""
    match settings.tracker:
        case TrackerName.POSTGRES:
            yield PostgresTracker(tickets)
        case TrackerName.ROUNDUP:
            async with aclosing(_roundup(settings)) as roundup:
                yield roundup
        case TrackerName.GITHUB:
            async with aclosing(_github(settings)) as github:
                yield github
        case _:
            assert_never(settings.tracker)


def _roundup(settings: Settings) -> RoundupTracker:
    try:
        return RoundupTracker(
            settings.required("roundup_url"),
            settings.required("roundup_user"),
            SecretStr(settings.required("roundup_password")),
        )
    except ValueError as error:
        raise SettingsError(f"AGENTJOBS_ROUNDUP_URL: {error}") from None


def _github(settings: Settings) -> GithubTracker:
    try:
        return GithubTracker(
            settings.required("github_repository"),
            SecretStr(settings.required("github_token")),
            base_url=settings.github_api_url,
        )
    except ValueError as error:
        raise SettingsError(f"AGENTJOBS_GITHUB_REPOSITORY or _API_URL: {error}") from None
