"""The relay's loop: NOTIFY wakes it, a poll backs it up, and rows are held by lock while Temporal is told.

A crash before the commit means that a row is delivered again, which is harmless. Rows whose delivery fails for
a reason of their own are postponed one by one; when Temporal itself is down, everything waits together.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

import structlog
from temporalio.service import RPCError, RPCStatusCode

from agentjobs.domain.failures import Category, PermanentError, failure
from agentjobs.domain.waits import wait_before_retry
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.database import Connection, is_unavailable
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.outbox import OutboxRow, Topic
from agentjobs.outbox.delivery import Delivery, NotYet
from agentjobs.outbox.measures import RelayMeasures

log = structlog.get_logger()

BATCH = 32
"""Rows a transaction: enough to keep Temporal's front end busy, few enough to lock for milliseconds."""

DESK_WORDS = 500
"""Rows for desks a transaction: 65 KB in one signal for a tenant that loses all of its jobs at once."""

DESK_PAUSE_SECONDS = 0.5
"""Between two words to the desks: a workflow takes a few signals a second."""

POLL_SECONDS = 1.0
"""How late a row may be when its NOTIFY was lost."""

ECHOES_SECONDS = (0.03, 0.2)
"""After a NOTIFY the starts are looked for again: of acceptances that commit at the same time one notifies for all
(accept_job), and another one may be on disk only after the relay has looked."""

NOT_YET_SECONDS = 0.5

_TEMPORAL_IS_DOWN = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.ABORTED,
    }
)

Claim = Callable[[Connection, int], Awaitable[list[OutboxRow]]]
Mark = Callable[[Connection, list[int]], Awaitable[None]]
Tell = Callable[[list[OutboxRow]], Awaitable[list[BaseException | None]]]


class TemporalDown(Exception):
    """Temporal does not answer: the rows stay as they are, and the relay waits."""


class Relay:
    """Three lanes, so that a slow command never holds up a start, nor a storm of deaths a command."""

    def __init__(
        self,
        ledger: Ledger,
        delivery: Delivery,
        failpoints: Failpoints,
        measures: RelayMeasures | None = None,
    ) -> None:
        self._ledger = ledger
        self._measures = measures or RelayMeasures()
        self._delivery = delivery
        self._failpoints = failpoints
        self._lanes = {self.start_once: 0.0, self.command_once: 0.0, self.desk_once: DESK_PAUSE_SECONDS}
        self._wakes = {once: asyncio.Event() for once in self._lanes}

    def wake(self) -> None:
        """Something was put into the outbox."""
        for wake in self._wakes.values():
            wake.set()
        for seconds in ECHOES_SECONDS:
            asyncio.get_running_loop().call_later(seconds, self._wakes[self.start_once].set)

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with asyncio.TaskGroup() as lanes:
            for once, pause in self._lanes.items():
                lanes.create_task(self._lane(once, self._wakes[once], pause))

    async def start_once(self) -> int:
        """One batch of starts; returns how many rows left the outbox."""
        return await self._batch(self._ledger.outbox.claim_starts, self._ledger.outbox.mark_started, self._each)

    async def command_once(self) -> int:
        """One batch of everything else."""
        return await self._batch(
            self._ledger.outbox.claim_commands, self._ledger.outbox.mark_delivered, self._each
        )

    async def desk_once(self) -> int:
        """One batch of deaths and of requests for approvals: one signal about either to each tenant's desk."""
        return await self._batch(
            self._ledger.outbox.claim_desk_words, self._ledger.outbox.mark_delivered, self._desks, DESK_WORDS
        )

    async def _lane(self, once: Callable[[], Awaitable[int]], wake: asyncio.Event, pause: float) -> None:
        failed = 0
        while True:
            wake.clear()
            try:
                delivered = await once()
                failed = 0
            except Exception as error:
                if not isinstance(error, TemporalDown) and not is_unavailable(error):
                    log.error("relay_failed", error_type=type(error).__name__)
                failed += 1
                await asyncio.sleep(_pause(failed))
                continue
            if delivered == 0:
                await until_woken(wake)
            else:
                await asyncio.sleep(pause)

    async def _each(self, rows: list[OutboxRow]) -> list[BaseException | None]:
        return await asyncio.gather(*(self._delivery.deliver(row) for row in rows), return_exceptions=True)

    async def _desks(self, rows: list[OutboxRow]) -> list[BaseException | None]:
        tenants: dict[str, list[OutboxRow]] = {}
        for row in rows:
            tenants.setdefault(row.tenant, []).append(row)
        told = (self._delivery.tell_desk(words) for words in tenants.values())
        outcomes = dict(zip(tenants, await asyncio.gather(*told, return_exceptions=True), strict=True))
        return [outcomes[row.tenant] for row in rows]

    async def _batch(self, claim: Claim, mark: Mark, tell: Tell, batch: int = BATCH) -> int:
        async with self._ledger.database.transaction() as connection:
            rows = await claim(connection, batch)
            if not rows:
                return 0
            await self._failpoints.reach("outbox.after_claim")
            outcomes = await tell(rows)
            await self._failpoints.reach("outbox.after_start")
            taken = [row.id for row, outcome in zip(rows, outcomes, strict=True) if outcome is None]
            await mark(connection, taken)
            refused = [(row, outcome) for row, outcome in zip(rows, outcomes, strict=True) if outcome is not None]
            for row, outcome in refused:
                await self._put_off(connection, row, outcome)
        # After the commit, so that what was taken stays taken.
        for row in rows:
            if row.id in taken:
                self._measures.delivered(row.topic)
        if any(_is_down(outcome) for _, outcome in refused):
            raise TemporalDown
        await self._bury_undeliverable(refused)
        return len(taken)

    async def _put_off(self, connection: Connection, row: OutboxRow, outcome: BaseException) -> None:
        if not isinstance(outcome, Exception):
            raise outcome
        if _is_down(outcome):
            return
        wait = NOT_YET_SECONDS if isinstance(outcome, NotYet) else _pause(row.attempts + 1)
        await self._ledger.outbox.postpone(connection, row.id, type(outcome).__name__, wait)
        if not isinstance(outcome, NotYet):
            self._measures.delivery_failed(row.topic)
            log.error("delivery_failed", topic=row.topic, job=row.job_id, error_type=type(outcome).__name__)

    async def _bury_undeliverable(self, refused: list[tuple[OutboxRow, BaseException]]) -> None:
        """A start that can never succeed must not be tried for ever: the job is dead, and its row goes."""
        for row, outcome in refused:
            if row.topic is Topic.START_JOB and _is_permanent(outcome):
                await self._ledger.outcomes.bury(
                    row.job_id,
                    generation=row.generation,
                    failure=failure(Category.INVALID_INPUT, "the job could not be started as it is"),
                    worker="relay",
                )
                async with self._ledger.database.transaction() as connection:
                    await self._ledger.outbox.mark_delivered(connection, [row.id])


async def until_woken(wake: asyncio.Event) -> None:
    """Until something is said to be there, or it is time to look."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(POLL_SECONDS):
            await wake.wait()


def _is_down(outcome: BaseException | None) -> bool:
    return isinstance(outcome, RPCError) and outcome.status in _TEMPORAL_IS_DOWN


def _is_permanent(outcome: BaseException) -> bool:
    if isinstance(outcome, RPCError):
        # An unregistered search attribute is the installation's fault, and no reason to give a job up.
        ours = "search attribute" not in str(outcome).lower()
        return outcome.status is RPCStatusCode.INVALID_ARGUMENT and ours
    return isinstance(outcome, PermanentError)


def _pause(failed: int) -> float:
    # At least a tenth of a second, so that a persistent failure never spins.
    chance = random.random()  # noqa: S311 - spreads retries, guards nothing
    return 0.1 + wait_before_retry(min(failed, 4), asked_seconds=None, chance=chance)
