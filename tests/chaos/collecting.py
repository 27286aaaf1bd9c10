"""From a running stack to the evidence of one run."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from google.protobuf.json_format import MessageToDict
from temporalio.service import RPCError, RPCStatusCode

from agentjobs.domain import keys
from agentjobs.domain.states import FINAL, JobState
from tests.chaos.checker import ledger_and_temporal_agree
from tests.chaos.evidence import (
    Approval,
    Attempt,
    Effect,
    Event,
    Evidence,
    Job,
    Letter,
    Operation,
    Row,
    Ticket,
    Workflow,
)
from tests.chaos.rig import Rig
from tests.replay.texts import texts_of

R = TypeVar("R", bound=Row)

# Every job since the run began, not only those that were answered for: a ghost would be among them.
_JOBS = """
SELECT jobs.*, idempotency_keys.key FROM jobs LEFT JOIN idempotency_keys ON idempotency_keys.job_id = jobs.id
 WHERE jobs.created_at >= $1"""
_OF_JOBS = "SELECT * FROM {} WHERE job_id IN (SELECT id FROM jobs WHERE created_at >= $1)"
_EVENTS = """
SELECT job_id, seq, type, data ->> 'step' AS step FROM job_events
 WHERE job_id IN (SELECT id FROM jobs WHERE created_at >= $1)"""
_LETTERS = "SELECT * FROM dead_letters WHERE id IN (SELECT id FROM jobs WHERE created_at >= $1)"
_OUTBOX = "SELECT topic FROM outbox WHERE job_id IN (SELECT id FROM jobs WHERE created_at >= $1)"


class Sent(Protocol):
    """What was sent, and what is known of it."""

    @property
    def expected(self) -> Mapping[str, frozenset[JobState]]:
        """Where each job that was answered for may end."""

    @property
    def history(self) -> Sequence[Operation]:
        """Every request of every client."""

    @property
    def planted(self) -> Mapping[str, str]:
        """What must be found nowhere outside, by what it is."""


class Collector:
    """Collects what happened since it was made."""

    def __init__(self, rig: Rig, since: datetime) -> None:
        self._rig = rig
        self._since = since

    @classmethod
    async def from_now(cls, rig: Rig) -> "Collector":
        """By the database's clock."""
        return cls(rig, await rig.value("SELECT clock_timestamp()"))

    async def evidence(self, load: Sent) -> Evidence:
        """All of it."""
        jobs = await self._rows(Job, _JOBS)
        workflows, histories = await self._workflows(jobs)
        return Evidence(
            expected=dict(load.expected),
            operations=tuple(load.history),
            jobs=jobs,
            effects=await self._rows(Effect, _OF_JOBS.format("effects")),
            attempts=await self._rows(Attempt, _OF_JOBS.format("attempts")),
            tickets=await self._rows(Ticket, _OF_JOBS.format("tickets")),
            events=await self._rows(Event, _EVENTS),
            letters=await self._rows(Letter, _LETTERS),
            approvals=await self._rows(Approval, _OF_JOBS.format("approvals")),
            outbox=await self._outbox(),
            workflows=workflows,
            texts={f"{child}.log": text for child, text in self._rig.logs().items()} | histories,
            planted=load.planted,
        )

    async def quiet(self, load: Sent) -> bool:
        """Nothing moves any more: every job is at rest, everybody is told, and Temporal has heard of it."""
        jobs = await self._rows(Job, _JOBS)
        letters = {letter.id: letter for letter in await self._rows(Letter, _LETTERS)}
        if {job.id for job in jobs} < load.expected.keys() or await self._outbox():
            return False
        if not all(_is_at_rest(job, letters.get(job.id)) for job in jobs):
            return False
        described = await asyncio.gather(*(self._describe(job.id) for job in jobs))
        return not list(ledger_and_temporal_agree(Evidence(jobs=jobs, workflows=_by_job(jobs, described))))

    async def told(self) -> str:
        """How far the jobs are, for who waited in vain."""
        jobs = await self._rows(Job, _JOBS)
        return ", ".join(f"{job.key}={job.state}" for job in jobs) + f"; outbox {await self._outbox()}"

    async def _rows(self, kind: type[R], statement: str) -> tuple[R, ...]:
        rows = await self._rig.ledger.database.pool.fetch(statement, self._since)
        return tuple(kind.model_validate(dict(row)) for row in rows)

    async def _outbox(self) -> tuple[str, ...]:
        rows = await self._rig.ledger.database.pool.fetch(_OUTBOX, self._since)
        return tuple(row["topic"] for row in rows)

    async def _workflows(self, jobs: tuple[Job, ...]) -> tuple[dict[str, Workflow], dict[str, str]]:
        found = _by_job(jobs, [await self._describe(job.id) for job in jobs])
        histories = {f"history of {job_id}": await self._history(keys.workflow_id(job_id)) for job_id in found}
        return found, histories

    async def _describe(self, job_id: str) -> Workflow | None:
        try:
            described = await self._rig.temporal.get_workflow_handle(keys.workflow_id(job_id)).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
        assert described.status is not None
        shown = {pair.key.name: pair.value for pair in described.typed_search_attributes.search_attributes}
        state = shown.get("JobState")
        return Workflow(described.status.name, None if state is None else str(state))

    async def _history(self, workflow_id: str) -> str:
        handle = self._rig.temporal.get_workflow_handle(workflow_id)
        described = await handle.describe()
        texts = list(texts_of((await handle.fetch_history()).to_json_dict()))
        texts.append(json.dumps(list(texts_of(MessageToDict(described.raw_description)))))
        return "\n".join(texts)


def _is_at_rest(job: Job, letter: Letter | None) -> bool:
    if letter is not None and letter.alerted_at is None:
        return False
    return job.state in FINAL or (job.state is JobState.DEAD and letter is not None and letter.state == "open")


def _by_job(jobs: Sequence[Job], described: Sequence[Workflow | None]) -> dict[str, Workflow]:
    return {job.id: seen for job, seen in zip(jobs, described, strict=True) if seen is not None}
