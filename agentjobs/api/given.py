"""What comes in by HTTP. (A request for a job: domain/request.py.)"""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from agentjobs.domain.quotas import QUOTA_LIMIT
from agentjobs.domain.request import Given, GivenBudget, GivenUsd, Identifier, JobInput, not_blank
from agentjobs.ledger.identity import Role

ACTION_PATTERN = r"^[a-z_]{1,40}:[a-z_]{1,40}$"
KEY_SECONDS_LIMIT = 10 * 365 * 86_400
MONTHLY_TOKENS_LIMIT = 10**15

Note = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(not_blank)]
GivenRole = Annotated[Role, Field(strict=False)]


class RedriveOrder(Given):
    """Run the dead job again."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"note": "the grant is in place now", "policy": "original"},
                {"note": "she meant the other printer", "input": {"text": "The printer in room 7 is on fire"}},
                {"note": "worth more", "budget": {"tokens": 100_000}},
            ]
        }
    )

    note: Note
    policy: Literal["original", "current"] = "original"
    again: Annotated[
        bool, Field(description="Your word that effects in doubt are to be had once more, under a new key.")
    ] = False
    input: Annotated[
        JobInput | None,
        Field(description="The request as it should have been. What is done stays; the rest is asked anew."),
    ] = None
    budget: Annotated[
        GivenBudget | None, Field(description="Limits to raise; one that is not named stays as it is.")
    ] = None


class DiscardOrder(Given):
    """Give the dead job up."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"note": "asked by mistake"}]})

    note: Note


class MonthlyBudget(Given):
    """What the tenant may spend in a month. Both members are named, so that none is lifted by being forgotten."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tokens": 20_000_000, "usd": "150.00"}]})

    tokens: Annotated[
        Annotated[int, Field(ge=1, le=MONTHLY_TOKENS_LIMIT)] | None, Field(description="null is no limit.")
    ]
    usd: Annotated[GivenUsd | None, Field(description="null is no limit.")]


GivenQuota = Annotated[int, Field(ge=0, le=QUOTA_LIMIT)] | None


class QuotaLimits(Given):
    """What a tenant may have at once. All are named, so that none is changed by being forgotten.

    0 is no limit; null is whatever the installation has as its default.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"in_flight": 50, "per_minute": 600, "queue_length": None, "running": 200}]
        }
    )

    in_flight: Annotated[GivenQuota, Field(description="A user's jobs that are neither over nor dead.")]
    per_minute: Annotated[GivenQuota, Field(description="A user's submissions within a minute.")]
    queue_length: Annotated[GivenQuota, Field(description="The tenant's jobs that wait for their start.")]
    running: Annotated[
        int,
        Field(ge=1, le=QUOTA_LIMIT, description="The tenant's jobs that are started and not over; others wait."),
    ]


class NewKey(Given):
    """A key to be made."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user": "ann", "roles": ["submit"]}]})

    tenant: Annotated[Identifier | None, Field(description="Default: your own.")] = None
    user: Identifier
    roles: Annotated[list[GivenRole], Field(min_length=1, max_length=3)]
    expires_in_seconds: Annotated[int, Field(ge=1, le=KEY_SECONDS_LIMIT)] | None = None


class NewGrant(Given):
    """A permission to be given."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user": "ann", "action": "tickets:create"}]})

    user: Identifier
    action: Annotated[str, StringConstraints(pattern=ACTION_PATTERN)]
