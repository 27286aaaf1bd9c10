"""What comes in about bulk redrives."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from agentjobs.api.given import Note
from agentjobs.domain.failures import Category
from agentjobs.domain.request import Given, Identifier

IDS_LIMIT = 1_000

GivenReason = Annotated[Category, Field(strict=False)]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("moment_range", "This is no moment of the years 1 to 9999.") from None


GivenMoment = Annotated[AwareDatetime, Field(strict=False), AfterValidator(_in_utc)]


class GivenFilter(Given):
    """Which open letters of the tenant; what is not named does not matter, and an empty filter takes all."""

    reason: GivenReason | None = None
    agent: Identifier | None = None
    policy_version: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    died_before: GivenMoment | None = None
    died_after: Annotated[GivenMoment | None, Field(description="Inclusive.")] = None
    ids: Annotated[list[Identifier], Field(min_length=1, max_length=IDS_LIMIT)] | None = None


class NewBulkRedrive(Given):
    """Many dead letters to be redriven: first a few, then a share, then the rest."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["note"], "properties": {"note": {"type": "string"}}},
                {"required": ["dry_run"], "properties": {"dry_run": {"const": True}}},
            ],
            "examples": [
                {"filter": {"reason": "access_denied"}, "dry_run": True},
                {
                    "filter": {"reason": "retries_exhausted", "agent": "support-triage"},
                    "note": "the tracker is back",
                    "policy": "original",
                    "canary": 1,
                    "share": 0.1,
                    "rate_per_second": 2,
                    "failure_limit": 0.2,
                },
            ],
        }
    )

    filter: GivenFilter
    note: Annotated[Note | None, Field(description="Needed, but for a dry run.")] = None
    policy: Literal["original", "current"] = "original"
    again: Annotated[
        bool, Field(description="Your word that effects in doubt are to be had once more, under a new key.")
    ] = False
    canary: Annotated[int, Field(ge=1, le=1_000, description="So many letters first. Any failure stops.")] = 1
    share: Annotated[float, Field(gt=0, le=1, description="Of all letters, after the canary.")] = 0.1
    rate_per_second: Annotated[float, Field(ge=0.01, le=50)] = 1.0
    failure_limit: Annotated[
        float, Field(ge=0, le=1, description="Of the verdicts, overall and of the latest 20. More stops.")
    ] = 0.2
    verdict_seconds: Annotated[
        int,
        Field(ge=5, le=604_800, description="How long a verdict is awaited. A job that runs on is then alive."),
    ] = 600
    dry_run: bool = False


class BulkApproval(Given):
    """A second person's word."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"note": "seen the dry run; go on"}]})

    note: Note
