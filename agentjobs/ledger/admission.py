"""Admission to models: limits that all workers share, the parking after a 429, and a breaker for each model.

Around a call: begin the attempt, `admit`, call, `report`, then complete or fail the attempt. A call counts as in
flight from its admission until its attempt is over, whoever ends it: so a crashed worker's calls free their slots
when the takeover closes its attempts.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agentjobs.domain import admission
from agentjobs.domain.admission import HeldBack, Hold, Limits, Trouble
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.ledger.database import Database


class Admission:
    """The gate before every model call. Each method is one statement; the database's clock decides."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def admit(self, model: str, attempt_id: int, *, tokens: int, limits: Limits) -> None:
        """Let the running attempt call the model now. tokens: the most that the call may use, in both directions.

        Repeated for the same attempt and model it changes nothing. Raises HeldBack, with the time to come again;
        RetryableError (unavailable) when the attempt is over: another one has taken its step.
        """
        row = await self._ask(model, attempt_id, tokens, limits)
        if row is not None and not row["ready"]:
            await self._database.run.open_admission(self._database.pool, model=model)
            row = await self._ask(model, attempt_id, tokens, limits)
        if row is None:
            raise RetryableError(
                Category.UNAVAILABLE, "another attempt has taken this step over", nothing_happened=True
            )
        if row["hold"] is not None:
            raise _held_back(row, model, limits)

    async def report(
        self,
        model: str,
        attempt_id: int,
        category: Category | None = None,
        *,
        retry_after_seconds: float | None = None,
        tokens: int | None = None,
    ) -> None:
        """What came of the admitted call: a failure's category, or None for success. The first report counts.

        retry_after_seconds: of a 429; parks the model for everybody. tokens: what the call really used, where that
        is known (zero: certainly nothing); the difference to what was admitted is given back, or taken. Only what
        the provider said is to be reported, no trouble of the ledger's own.
        """
        await self._database.run.report_call(
            self._database.pool,
            model=model,
            attempt_id=attempt_id,
            news=admission.news(category, retry_after_seconds=retry_after_seconds),
            category=category,
            parked_seconds=admission.parking_seconds(retry_after_seconds),
            tokens=tokens,
            failures_to_open=admission.FAILURES_TO_OPEN,
            open_seconds=admission.OPEN_SECONDS,
            longest_open_seconds=admission.LONGEST_OPEN_SECONDS,
            minute_seconds=admission.MINUTE_SECONDS,
            weight=admission.CALL_TIME_WEIGHT,
        )

    async def parked(self, models: Sequence[str]) -> dict[str, datetime]:
        """Which of these nobody should ask now, and until when: for `choose`. A hint, while `admit` decides."""
        rows = self._database.run.parked_models(self._database.pool, models=list(models))
        return {row["model"]: row["until"] async for row in rows}

    async def _ask(self, model: str, attempt_id: int, tokens: int, limits: Limits) -> Any:
        return await self._database.run.admit_call(
            self._database.pool,
            model=model,
            attempt_id=attempt_id,
            tokens=tokens,
            request_seconds=limits.request_seconds,
            tokens_seconds=limits.tokens_seconds(tokens),
            tokens_per_minute=limits.tokens_per_minute,
            calls_at_once=limits.calls_at_once,
            burst_seconds=admission.BURST_SECONDS,
            probe_seconds=admission.PROBE_SECONDS,
            place_seconds=admission.PLACE_SECONDS,
            round_seconds=admission.ROUND_SECONDS,
        )


def _held_back(row: Any, model: str, limits: Limits) -> HeldBack:
    latest = row["last_failure"]
    return admission.held_back(
        model,
        Hold(row["hold"]),
        limits,
        until=row["free_at"],
        wait_seconds=row["wait_seconds"],
        trouble=Trouble(failures=row["failures"], latest=None if latest is None else Category(latest)),
    )
