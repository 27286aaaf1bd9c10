"""Bulk redrives: accepted, read, steered, and carried out letter by letter."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from agentjobs.domain.bulk import LETTERS_LIMIT, WINDOW, Counts, RedriveState, Standing, StopReason
from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.dead_letters import DeadLetters, NotOpen
from agentjobs.ledger.redrive_records import (
    Call,
    LetterFilter,
    MatchingLetter,
    NoLetters,
    RedriveKeyReused,
    RedriveOrder,
    RedriveRecord,
    SamePerson,
    Word,
    WordRefused,
)

SILENT_SECONDS = 300.0
"""Ten times the longest time between two looks of a running one: its workflow is gone."""


_MOVES: dict[Word, tuple[frozenset[RedriveState], RedriveState]] = {
    Word.PAUSE: (frozenset({RedriveState.RUNNING}), RedriveState.PAUSED),
    Word.RESUME: (frozenset({RedriveState.PAUSED}), RedriveState.RUNNING),
    Word.CANCEL: (
        frozenset({RedriveState.AWAITING_APPROVAL, RedriveState.RUNNING, RedriveState.PAUSED}),
        RedriveState.CANCELLED,
    ),
    Word.APPROVE: (frozenset({RedriveState.AWAITING_APPROVAL}), RedriveState.RUNNING),
}


class Redrives:
    """Bulk redrives. What ends or pauses one waits for the letter in hand; after it none is touched."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._letters = DeadLetters(database)

    async def preview(self, tenant: str, wanted: LetterFilter) -> list[MatchingLetter]:
        """The open letters that the filter takes now, longest dead first; at most one more than the limit."""
        rows = self._database.run.preview_redrive(
            self._database.pool, tenant=tenant, most=LETTERS_LIMIT + 1, **wanted.model_dump()
        )
        return [MatchingLetter.model_validate(dict(row)) async for row in rows]

    async def accept(self, order: RedriveOrder, *, approval_above: int) -> RedriveRecord:
        """Freeze the letters and accept the bulk redrive durably; with a key used before for the same request,
        the first one. With more letters than `approval_above` it waits for a second person.

        Takes the LETTERS_LIMIT letters that have been dead for longest. Raises NoLetters or RedriveKeyReused.
        """
        async with self._database.transaction() as connection:
            made = await self._database.run.insert_redrive(
                connection, **order.model_dump(exclude={"filter"}), filter=order.filter.model_dump(mode="json")
            )
            if made is not None:
                await self._claim_letters(connection, order, approval_above)
        record = await self.read(order.tenant, order.id) if made else await self._first_with_key(order)
        if record is None:
            raise RuntimeError("an accepted bulk redrive cannot be read")
        return record

    async def _claim_letters(self, connection: Connection, order: RedriveOrder, approval_above: int) -> None:
        letters = await self._database.run.claim_letters(
            connection,
            id=order.id,
            tenant=order.tenant,
            again=order.again,
            most=LETTERS_LIMIT,
            **order.filter.model_dump(),
        )
        if letters == 0:
            raise NoLetters  # and so roll back
        await self._database.run.open_redrive(
            connection, id=order.id, letters=letters, needs_approval=letters > approval_above
        )

    async def _first_with_key(self, order: RedriveOrder) -> RedriveRecord:
        row = await self._database.run.redrive_by_key(
            self._database.pool, tenant=order.tenant, created_by=order.created_by, key=order.key
        )
        if row["fingerprint"] != order.fingerprint:
            raise RedriveKeyReused
        return RedriveRecord.model_validate(dict(row))

    async def read(self, tenant: str | None, redrive_id: str) -> RedriveRecord | None:
        """One of this tenant, or (tenant None, for who carries it out) of any."""
        row = await self._database.run.read_redrive(self._database.pool, id=redrive_id, tenant=tenant)
        return None if row is None else RedriveRecord.model_validate(dict(row))

    async def page(
        self, tenant: str, *, state: RedriveState | None, before: tuple[datetime, str] | None, limit: int
    ) -> list[RedriveRecord]:
        """Bulk redrives, newest first; `before` is (created_at, id) of the last one of the page before."""
        before_at, before_id = before or (None, None)
        rows = self._database.run.list_redrives(
            self._database.pool, tenant=tenant, state=state, before_at=before_at, before_id=before_id, limit=limit
        )
        return [RedriveRecord.model_validate(dict(row)) async for row in rows]

    async def standing(self, record: RedriveRecord) -> Standing:
        """What has become of its letters so far."""
        row = await self._database.run.count_redrive(self._database.pool, id=record.id, window=WINDOW)
        return Standing(state=record.state, **{**dict(row), "counts": Counts.model_validate(row["counts"])})

    async def skipped(self, redrive_id: str) -> dict[str, int]:
        """How many letters were passed over, by reason."""
        rows = self._database.run.skipped_of_redrive(self._database.pool, id=redrive_id)
        return {row["skipped_because"]: row["count"] async for row in rows}

    async def change(
        self, word: Word, tenant: str, redrive_id: str, *, actor: str, note: str | None = None
    ) -> bool:
        """Pause, resume, cancel or approve. False for an unknown one; said twice, it changes nothing more.

        Raises WordRefused, or SamePerson.
        """
        from_states, to_state = _MOVES[word]
        row = await self._database.run.change_redrive(
            self._database.pool,
            word=word,
            tenant=tenant,
            id=redrive_id,
            actor=actor,
            note=note,
            from_states=sorted(from_states),
            to_state=to_state,
        )
        if row is None:
            return False
        before = RedriveState(row["state_before"])
        if row["changed"] or (before is to_state and word is not Word.APPROVE):
            return True
        if row["same_person"] and before in from_states:
            raise SamePerson
        raise WordRefused(before)

    async def looked_at(self, redrive_id: str) -> None:
        """Its workflow is there and looks."""
        await self._database.run.looked_at_redrive(self._database.pool, id=redrive_id)

    async def ask(self, redrive_id: str, up_to: int) -> None:
        """Give the word on waiting letters until `up_to` were asked in all, or none waits, or it is no longer
        running. May be repeated, and by two workers at once, without a word too many.
        """
        while (item := await self._next_item(redrive_id)) is not None:
            if not await self._ask_one(redrive_id, item["job_id"], up_to):
                return

    async def _next_item(self, redrive_id: str) -> Any:
        return await self._database.run.next_redrive_item(self._database.pool, id=redrive_id)

    async def _ask_one(self, redrive_id: str, job_id: str, up_to: int) -> bool:
        """One letter: asked, or skipped. False when no further one may be touched now."""
        async with self._database.transaction() as connection:
            await self._database.run.lock_job(connection, id=job_id)
            claimed = await self._database.run.claim_redrive_item(
                connection, id=redrive_id, job_id=job_id, up_to=up_to
            )
            if claimed is None:
                return await self._may_go_on(connection, redrive_id, up_to)
            because = claimed["not_open"] or await self._request(connection, redrive_id, job_id, claimed)
            if because is None:
                await self._database.run.mark_item_asked(connection, id=redrive_id, job_id=job_id)
            else:
                await self._database.run.mark_item_skipped(
                    connection, id=redrive_id, job_id=job_id, because=because
                )
            return True

    async def _may_go_on(self, connection: Connection, redrive_id: str, up_to: int) -> bool:
        """Whether it was only this letter, which another worker has taken meanwhile."""
        row = await self._database.run.read_redrive(connection, id=redrive_id, tenant=None)
        return row is not None and row["state"] == RedriveState.RUNNING and row["asked"] < up_to

    async def _request(self, connection: Connection, redrive_id: str, job_id: str, claimed: Any) -> str | None:
        """The same word that a person gives on one letter. Returns why it was not taken, if so."""
        payload = {"policy": claimed["policy"], "again": claimed["again"], "redrive_id": redrive_id}
        try:
            known = await self._letters.ask(
                connection,
                "redrive",
                claimed["tenant"],
                job_id,
                actor=claimed["created_by"],
                note=claimed["note"],
                payload=payload,
                traceparent=claimed["traceparent"],
            )
        except NotOpen as taken:
            return taken.state
        return None if known else "gone"

    async def end(
        self,
        redrive_id: str,
        state: Literal[RedriveState.STOPPED, RedriveState.COMPLETED],
        because: StopReason | None,
    ) -> None:
        """It ends by itself, unless a person was first. Its letters are free for another one."""
        await self._database.run.end_redrive(self._database.pool, id=redrive_id, state=state, because=because)

    async def claim_calls(self, connection: Connection, batch: int) -> list[Call]:
        """Bulk redrives whose workflow is to be called; locked for the caller's transaction."""
        rows = self._database.run.claim_redrive_calls(connection, batch=batch)
        return [Call.model_validate(dict(row)) async for row in rows]

    async def call_again(self, *, silent_seconds: float = SILENT_SECONDS) -> int:
        """Queue a call for each running one at which nobody looks any more; returns how many."""
        return int(
            await self._database.run.call_redrives_again(self._database.pool, silent_seconds=silent_seconds)
        )
