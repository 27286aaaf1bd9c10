"""The job: who asked, for what, within which limits."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, NewType

from pydantic import BaseModel, ConfigDict, Field

JobId = NewType("JobId", str)
TenantId = NewType("TenantId", str)
UserId = NewType("UserId", str)

# One safe alphabet for every identifier that reaches a URL, a workflow id or a file name.
IDENTIFIER_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"

TEXT_LIMIT = 32_000
"""Characters of a request's text: the longest real request seen had 9,000."""

DEFAULT_DEADLINE_SECONDS = 24 * 3600
MAX_DEADLINE_SECONDS = 30 * 24 * 3600
DEFAULT_PRIORITY = 3


class Frozen(BaseModel):
    """Base of the values that cross a boundary: immutable, and unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Principal(Frozen):
    """On whose behalf an effect happens; grants are looked up by it at the moment of the effect."""

    tenant: str
    user: str


class Budget(Frozen):
    """What a job may spend; None is no limit. USD is exact decimal money."""

    tokens: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    usd: Annotated[Decimal, Field(gt=0, max_digits=12, decimal_places=6)] | None = None
    steps: Annotated[int, Field(ge=1, le=100)] | None = None
    """Tool calls that the model may ask for; never more than the agent's own limit."""


class Job(Frozen):
    """What an activity needs to know of the job it works for, as the ledger returned it at `begin`."""

    id: str
    principal: Principal
    agent: str
    policy_version: str
    text: str
    deadline_at: datetime
