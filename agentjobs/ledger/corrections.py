"""What a reviewer changes in a dead job before it runs again: its input, and what it may spend."""

from datetime import datetime
from typing import Any

from agentjobs.domain.job import Budget, Frozen
from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.records import Record


class Correction(Frozen):
    """What to change; nothing, unless told otherwise."""

    text: str | None = None
    """The input from now on."""

    budget: Budget = Budget()
    """The limits to raise; None leaves one as it is."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return self == Correction()


class BeingUndone(Exception):
    """The job only goes on to be undone: its input does not matter any more."""


class NotRaised(Exception):
    """A limit that would not let the job go on: name one above `least`, or leave it out.

    `least` is None where there is no limit to raise.
    """

    def __init__(self, limit: str, least: object) -> None:
        super().__init__(f"{limit} is not above {least}")
        self.limit = limit
        self.least = least


class InputChange(Record):
    """An input as it was before a correction."""

    generation: int
    old_text: str
    changed_by: str
    changed_at: datetime
    note: str


class Corrections:
    """Corrections within the transaction that takes a reviewer's word."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def lock(self, connection: Connection, tenant: str, job_id: str) -> Any:
        """The job's letter and limits as they stand, locked; None for an unknown letter."""
        return await self._database.run.lock_correctable(connection, tenant=tenant, id=job_id)

    async def apply(
        self,
        connection: Connection,
        job_id: str,
        correction: Correction,
        before: Any,
        *,
        actor: str,
        note: str,
        again: bool,
    ) -> None:
        """Change the job. Raises BeingUndone or NotRaised, and has then changed nothing."""
        _check_budget(correction.budget, before)
        if correction.text is not None:
            if before["being_undone"]:
                raise BeingUndone
            await self._correct_input(connection, job_id, correction.text, actor=actor, note=note, again=again)
        if correction.budget != Budget():
            await self._database.run.raise_budget(
                connection, id=job_id, actor=actor, note=note, **correction.budget.model_dump()
            )

    async def _correct_input(
        self, connection: Connection, job_id: str, text: str, *, actor: str, note: str, again: bool
    ) -> None:
        run = self._database.run
        last_step = await run.last_step_that_stays(connection, id=job_id, again=again)
        change = await run.correct_input(connection, id=job_id, text=text, actor=actor, note=note)
        suffix = f"~before-{change}"
        await run.set_replies_aside(connection, id=job_id, last_step=last_step, suffix=suffix)
        await run.open_calls(connection, id=job_id, last_step=last_step)
        await run.set_attempts_aside(connection, id=job_id, suffix=suffix)

    async def of_letter(self, tenant: str, job_id: str) -> list[InputChange]:
        """The earlier inputs of a letter's job, oldest first."""
        rows = self._database.run.input_changes_of_letter(self._database.pool, tenant=tenant, id=job_id)
        return [InputChange.model_validate(dict(row)) async for row in rows]


def _check_budget(wanted: Budget, before: Any) -> None:
    for limit, used in (("tokens", before["tokens_used"]), ("usd", before["usd_used"]), ("steps", 0)):
        value, current = getattr(wanted, limit), before[f"budget_{limit}"]
        if value is None:
            continue
        if current is None:
            raise NotRaised(limit, None)
        if value <= max(current, used):
            raise NotRaised(limit, max(current, used))
