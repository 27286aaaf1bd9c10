"""Requests for a person's approval of one tool call: made and decided. The effect's begin uses them up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from agentjobs.domain.approvals import ApprovalState, Decision
from agentjobs.domain.job import Frozen
from agentjobs.domain.states import LIVE, JobState
from agentjobs.ledger.database import Database
from agentjobs.ledger.effects import CancelRequested, NotLive
from agentjobs.ledger.records import Record


class WantedCall(Frozen):
    """The call that needs an approval. `key` is its step key; `seconds` how long a person may take."""

    job_id: str
    key: str
    step: str
    tool: str
    fingerprint: str
    seconds: float


class ApprovalRecord(Record):
    """A request as people see it."""

    job_id: str
    step: str
    tool: str
    arguments: dict[str, Any] | None
    """None where the reply that wanted the call is no longer the job's."""

    fingerprint: str
    state: Annotated[ApprovalState, Field(validation_alias="stands")]
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    note: str | None
    used_at: datetime | None

    @property
    def is_open(self) -> bool:
        """Whether it takes a decision now."""
        return self.state is ApprovalState.REQUESTED

    @property
    def id(self) -> str:
        """The job's: one call of it at a time waits."""
        return self.job_id


class ApprovalNotOpen(Exception):
    """The request takes no decision: it was decided, it came too late, or its job went on."""

    def __init__(self, state: ApprovalState, *, is_late: bool, is_over: bool) -> None:
        super().__init__(f"the approval is {state}")
        self.state = state
        self.is_late = is_late
        self.is_over = is_over


class OtherCall(Exception):
    """The decision was about other arguments than those that are asked for now: read the request again."""


@dataclass(frozen=True)
class Word:
    """What a person decided, about which call."""

    decision: Decision
    actor: str
    note: str
    fingerprint: str | None = None
    """Of the call that the person saw; None takes the one that is asked for."""


class Approvals:
    """Approvals of all tenants; what people read and decide names theirs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, wanted: WantedCall) -> tuple[ApprovalState, datetime]:
        """Where the call stands, and when its request ends; the request is made unless one holds already.

        While it is REQUESTED the job waits. Raises NotLive or CancelRequested.
        """
        async with self._database.transaction() as connection:
            await self._database.run.lock_job(connection, id=wanted.job_id)
            row = await self._database.run.ask_approval(connection, **wanted.model_dump())
        if JobState(row["job_state"]) not in LIVE:
            raise NotLive(JobState(row["job_state"]))
        if row["cancelling"]:
            raise CancelRequested
        return ApprovalState(row["state"]), row["expires_at"]

    async def decide(self, tenant: str, job_id: str, step: str, word: Word) -> bool:
        """A person's word. False for an unknown request; the same word of the same person again changes nothing.

        Raises ApprovalNotOpen or OtherCall.
        """
        async with self._database.transaction() as connection:
            await self._database.run.lock_job(connection, id=job_id)
            row = await self._database.run.decide_approval(
                connection,
                tenant=tenant,
                job_id=job_id,
                step=step,
                decision=word.decision.state,
                actor=word.actor,
                note=word.note,
                fingerprint=word.fingerprint,
            )
        if row is None:
            return False
        if not row["is_decided"] and not _said_before(row, word):
            raise _refusal(row, word)
        return True

    async def of_job(self, tenant: str, job_id: str) -> list[ApprovalRecord]:
        """Every request of the job, oldest first."""
        rows = self._database.run.approvals_of_job(self._database.pool, tenant=tenant, job_id=job_id)
        return [ApprovalRecord.model_validate(dict(row)) async for row in rows]

    async def open(
        self, tenant: str, *, after: tuple[datetime, str] | None = None, limit: int = 50
    ) -> list[ApprovalRecord]:
        """What waits for a reviewer, longest waiting first; `after` is (requested_at, job_id) of the last one."""
        after_at, after_id = after or (None, None)
        rows = self._database.run.open_approvals(
            self._database.pool, tenant=tenant, after_at=after_at, after_id=after_id, limit=limit
        )
        return [ApprovalRecord.model_validate(dict(row)) async for row in rows]


def _said_before(row: Any, word: Word) -> bool:
    states = {word.decision.state, *((ApprovalState.USED,) if word.decision is Decision.APPROVE else ())}
    return row["state_before"] in states and row["decided_by_before"] == word.actor and not _is_other(row, word)


def _is_other(row: Any, word: Word) -> bool:
    return word.fingerprint is not None and row["fingerprint"] != word.fingerprint


def _refusal(row: Any, word: Word) -> Exception:
    if _is_other(row, word):
        return OtherCall()
    return ApprovalNotOpen(ApprovalState(row["state_before"]), is_late=row["is_late"], is_over=row["is_over"])
