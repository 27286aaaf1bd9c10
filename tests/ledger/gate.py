"""The gate before a model, and what a test does at it. Time passes by moving what is stored, not by waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from agentjobs.domain.admission import HeldBack, Limits
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import Category
from agentjobs.ledger.admission import Admission
from tests.ledger.scene import Scene

MODEL = "small-1"
_TIMES = {
    "model_admission": (
        *("requests_until", "tokens_until", "next_place_at", "parked_until"),
        *("open_until", "closed_at", "probe_until"),
    ),
    "attempts": ("admitted_at", "reported_at"),
}
_MODEL_CALL = {"kind": EffectKind.MODEL, "name": "model", "effect_class": EffectClass.READ_ONLY}


@dataclass(frozen=True)
class Gate:
    """One job with many steps, all of which ask the same model."""

    scene: Scene
    job_id: str
    limits: Limits
    _steps: Any = field(default_factory=lambda: count(1))

    @classmethod
    async def at(cls, scene: Scene, **limits: int) -> "Gate":
        """With these limits, and the model's row in place."""
        gate = cls(scene, (await scene.accept()).id, Limits(**limits))
        await scene.execute("INSERT INTO model_admission (model) VALUES ($1)", MODEL)
        return gate

    @property
    def admission(self) -> Admission:
        """What is under test."""
        return Admission(self.scene.ledger.database)

    async def attempt(self, worker: str = "w1", **changes: Any) -> int:
        """An attempt of the next step, begun and not admitted."""
        step = f"step-{next(self._steps)}.model"
        return await self.scene.begin_attempt(self.job_id, step, worker=worker, **_MODEL_CALL, **changes)

    async def admit(self, attempt_id: int, *, tokens: int = 0, model: str = MODEL) -> HeldBack | None:
        """None: admitted."""
        try:
            await self.admission.admit(model, attempt_id, tokens=tokens, limits=self.limits)
        except HeldBack as held:
            return held
        return None

    async def ask(self, *, tokens: int = 0, worker: str = "w1") -> tuple[int, HeldBack | None]:
        """A new attempt, admitted or held back."""
        attempt_id = await self.attempt(worker)
        return attempt_id, await self.admit(attempt_id, tokens=tokens)

    async def admitted(self, *, tokens: int = 0, worker: str = "w1") -> int:
        """A new attempt that is let through."""
        attempt_id, held = await self.ask(tokens=tokens, worker=worker)
        assert held is None, str(held)
        return attempt_id

    async def refused(self, *, tokens: int = 0, worker: str = "w1") -> HeldBack:
        """A new attempt that is held back."""
        _, held = await self.ask(tokens=tokens, worker=worker)
        assert held is not None
        return held

    async def ended(self, category: Category | None = None, *, worker: str = "w1") -> int:
        """A call that is let through and ends so."""
        attempt_id = await self.admitted(worker=worker)
        await self.report(attempt_id, category)
        return attempt_id

    async def report(self, attempt_id: int, category: Category | None = None, **said: Any) -> None:
        """What came of the call."""
        await self.admission.report(MODEL, attempt_id, category, **said)

    async def pass_time(self, seconds: float) -> None:
        """As if so many seconds had passed."""
        for table, columns in _TIMES.items():
            moved = ", ".join(f"{name} = {name} - make_interval(secs => $1)" for name in columns)
            await self.scene.execute(f"UPDATE {table} SET {moved}", seconds)

    async def row(self) -> dict[str, Any]:
        """The model's row as it stands."""
        (row,) = await self.scene.rows("SELECT * FROM model_admission WHERE model = $1", MODEL)
        return row

    async def in_flight(self) -> int:
        """Calls in flight, counted by a query of the test's own."""
        (row,) = await self.scene.rows(
            "SELECT count(*) FILTER (WHERE outcome = 'running') AS n FROM attempts "
            "WHERE model = $1 AND admitted_at IS NOT NULL",
            MODEL,
        )
        number: int = row["n"]
        return number

    async def admitted_times(self) -> list[datetime]:
        """When each call was let through, in order; moved with the time that passed since."""
        rows = await self.scene.rows(
            "SELECT admitted_at FROM attempts WHERE admitted_at IS NOT NULL ORDER BY admitted_at"
        )
        return [row["admitted_at"] for row in rows]

    @asynccontextmanager
    async def row_held(self) -> AsyncIterator[None]:
        """Whoever needs the model's row waits until the block ends."""
        async with self.scene.ledger.database.transaction() as connection:
            await connection.execute("SELECT FROM model_admission WHERE model = $1 FOR UPDATE", MODEL)
            yield

    async def at_the_same_moment(self, attempts: list[int]) -> list[HeldBack | None]:
        """All of them at the gate before the first is let through: at most nine, one connection each."""
        async with self.row_held():
            asking = [asyncio.create_task(self.admit(attempt_id)) for attempt_id in attempts]
            await self.scene.until_under_way(asking)
        return await asyncio.gather(*asking)
