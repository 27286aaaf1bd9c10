"""A bulk redrive as it is ordered, as it stands, and what a person may say to it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from agentjobs.domain.bulk import Pace, RedriveState, StopReason
from agentjobs.ledger.records import Record


class LetterFilter(BaseModel):
    """Which open letters. What is not given does not matter; `died_after` is inclusive."""

    model_config = ConfigDict(frozen=True)

    reason: str | None = None
    agent: str | None = None
    policy_version: str | None = None
    died_before: datetime | None = None
    died_after: datetime | None = None
    ids: list[str] | None = None


class RedriveOrder(BaseModel):
    """A validated bulk redrive, ready to be accepted. `fingerprint` is of the request's canonical JSON."""

    model_config = ConfigDict(frozen=True)

    id: str
    tenant: str
    created_by: str
    note: str
    filter: LetterFilter
    policy: Literal["original", "current"]
    again: bool
    canary: int
    share: float
    rate_per_second: float
    failure_limit: float
    verdict_seconds: int
    key: str | None
    fingerprint: str
    traceparent: str | None = None
    """Of the request that orders it."""


class RedriveRecord(Record):
    """A bulk redrive as it stands."""

    id: str
    tenant: str
    created_by: str
    note: str
    filter: LetterFilter
    policy: str
    again: bool
    canary: int
    share: float
    rate_per_second: float
    failure_limit: float
    verdict_seconds: int
    fingerprint: str
    state: RedriveState
    letters: int
    asked: int
    stopped_because: StopReason | None
    needs_approval: bool
    approved_by: str | None
    approved_at: datetime | None
    approval_note: str | None
    created_at: datetime
    finished_at: datetime | None

    @property
    def pace(self) -> Pace:
        """How it proceeds."""
        return Pace.model_validate(self.model_dump(include=set(Pace.model_fields)))


class MatchingLetter(Record):
    """An open letter that a filter takes."""

    id: str
    reason: str
    agent: str
    tools_done: list[str]
    effects_in_doubt: list[dict[str, Any]]
    unsafe: bool
    """An effect in doubt can neither be looked up nor repeated."""

    claimed: bool
    """Another unfinished bulk redrive has it."""


class Call(Record):
    """A row of the outbox: the workflow of this bulk redrive is to look."""

    id: int
    redrive_id: str
    tenant: str
    attempts: int


class NoLetters(Exception):
    """No open letter can be taken: look at the dry run, and correct the filter."""


class RedriveKeyReused(Exception):
    """The idempotency key was used before for another request: choose a new key."""


class WordRefused(Exception):
    """The word does not fit the state that the bulk redrive is in."""

    def __init__(self, state: RedriveState) -> None:
        super().__init__(f"the bulk redrive is {state}")
        self.state = state


class SamePerson(Exception):
    """Who created a bulk redrive does not approve it: somebody else must."""


class Word(StrEnum):
    """What a person says to a bulk redrive."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    APPROVE = "approve"
