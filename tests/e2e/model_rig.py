"""A whole stack that asks the double of a model provider, and what a client of its API sees of that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx

from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.chaos.rig import LOOK_SECONDS, until
from tests.e2e.conftest import Running, options_for, started
from tests.e2e.model_double import ModelDouble
from tests.providers.double_faults import Fault

CANARY: Final = "canary-5e21c9"
"""Part of every request: what no log may hold."""

OVER: Final = frozenset({"succeeded", "cancelled", "discarded", "dead"})
QUOTING: Final = {"message": f"{CANARY}: {{prompt}}"}
"""Servers do quote the request in their errors; nothing of that may get into a log."""

SLOW: Final = Fault("slow", seconds=0.3, reply={"text": "A long answer. " * 60})
"""Half a minute of writing."""

Job = dict[str, Any]
Event = dict[str, Any]


@dataclass
class ModelRig:
    """The stack, the double, and the API as the tenant `dev` sees it: its user, and its admin."""

    running: Running
    double: ModelDouble
    user: httpx.AsyncClient
    admin: httpx.AsyncClient

    async def submit(self, words: str, client: httpx.AsyncClient | None = None) -> Job:
        """A job whose request contains these words, the canary, and something that no other has."""
        text = f"{words} {CANARY} {uuid4()}"
        answer = await (client or self.user).post("/v1/jobs", json={"input": {"text": text}})
        assert answer.status_code == 202, answer.text
        return {**answer.json(), "text": text}

    async def submit_many(self, words: str, count: int, client: httpx.AsyncClient | None = None) -> list[Job]:
        """So many at once."""
        return list(await asyncio.gather(*(self.submit(words, client) for _ in range(count))))

    async def job(self, job_id: str) -> Job:
        """Its status."""
        job: Job = await self.read(f"/v1/jobs/{job_id}")
        return job

    async def read(self, path: str, client: httpx.AsyncClient | None = None) -> Any:
        """What the API says there."""
        answer = await (client or self.admin).get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def tell(self, path: str, body: Any = None, client: httpx.AsyncClient | None = None) -> None:
        """Post this word, which must be accepted."""
        answer = await (client or self.user).post(path, json=body)
        assert answer.status_code == 202, answer.text

    async def set_budget(self, tokens: int | None) -> None:
        """What the tenant may spend in this month; None: no limit."""
        answer = await self.admin.put("/v1/budget", json={"tokens": tokens, "usd": None})
        assert answer.status_code == 200, answer.text

    async def attempts(self, job_id: str, step: str | None = None) -> list[dict[str, Any]]:
        """Attempts on record."""
        items = (await self.read(f"/v1/jobs/{job_id}/attempts"))["items"]
        return [item for item in items if step in {None, item["step"]}]

    async def over(self, job_id: str, seconds: float = 60) -> Job:
        """The job, when it has ended."""
        return await self.in_state(job_id, *OVER, seconds=seconds)

    async def in_state(self, job_id: str, *states: str, seconds: float = 60) -> Job:
        """The job, when it is in one of these states."""

        async def look() -> bool:
            return (await self.job(job_id))["state"] in states

        await until(look, f"job {job_id} to be {' or '.join(states)}", seconds)
        return await self.job(job_id)

    async def all_over(self, jobs: list[Job], seconds: float = 60) -> list[Job]:
        """All of these, when they have ended. One look a moment, so that many cost little."""
        ids = [job["id"] for job in jobs]

        async def look() -> bool:
            statement = "SELECT count(*) FROM jobs WHERE id = ANY ($1) AND state = ANY ($2)"
            return bool(await self.value(statement, ids, sorted(OVER)) == len(ids))

        await until(look, f"{len(ids)} jobs to end", seconds, every_seconds=0.2)
        return [await self.job(job_id) for job_id in ids]

    async def until_it_writes(self, job_id: str) -> None:
        """Until the first text of an answer is shown."""
        async for event in self.events(job_id):
            if event["type"] == "text":
                return
        raise AssertionError(f"job {job_id} ended without any text")

    async def worker_of(self, job_id: str) -> str:
        """The stack's name for the worker that has the latest attempt in hand."""
        pid = int((await self.attempts(job_id))[-1]["worker"].split(":")[1])
        return next(name for name, known in self.running.stack.info.pids.items() if known == pid)

    async def states(self, job_id: str) -> list[str]:
        """The states that its status goes through, from now on until it is over."""
        seen = [(await self.job(job_id))["state"]]
        while seen[-1] not in OVER:
            state = (await self.job(job_id))["state"]
            if state != seen[-1]:
                seen.append(state)
        return seen

    async def tickets_of(self, job_id: str) -> int:
        """How many tickets the job has opened."""
        return int(await self.value("SELECT count(*) FROM tickets WHERE job_id = $1", job_id))

    async def value(self, statement: str, *values: object) -> Any:
        """One value from the ledger's database."""
        return await self.running.ledger.database.pool.fetchval(statement, *values)

    async def events(self, job_id: str) -> AsyncIterator[Event]:
        """All events of the job from the first one on, as they come, to the end of the stream."""
        path, headers = f"/v1/jobs/{job_id}/events", {"Last-Event-ID": "0"}
        async with self.user.stream("GET", path, headers=headers, timeout=60) as answer:
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    async def all_events(self, job_id: str) -> list[Event]:
        """To the end of the stream."""
        return [event async for event in self.events(job_id)]

    @asynccontextmanager
    async def looking(self, path: str) -> AsyncIterator[list[Any]]:
        """What the API says there, again and again, during the block."""
        seen = [await self.read(path)]

        async def look() -> None:
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                seen.append(await self.read(path))

        looking = asyncio.create_task(look())
        try:
            yield seen
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking

    def logged(self) -> dict[str, str]:
        """Every file that the stack's parts write their log to."""
        logs = self.running.stack.home.logs
        return {path.name: path.read_text("utf-8", errors="replace") for path in logs.rglob("*") if path.is_file()}


@asynccontextmanager
async def running_model_rig(home: Path, workers: int = 2, **settings: str) -> AsyncIterator[ModelRig]:
    """A stack in this home (a directory that is there) for the length of the block."""
    try:
        async with (
            ModelDouble.running(home) as double,
            started(options_for(home / "stack", workers, **(double.environment | settings))) as stack,
            client_of(stack.info.api, stack.info.api_key) as user,
            client_of(stack.info.api, stack.info.admin_key) as admin,
        ):
            ledger = await Ledger.open(stack.info.database, size=2, application_name="tests")
            try:
                yield ModelRig(Running(stack, ledger, home / "stack"), double, user, admin)
            finally:
                await ledger.close()
    finally:
        EmbeddedPostgres(home / "stack", 1).remove()


def client_of(api: str, key: str) -> httpx.AsyncClient:
    """A client of the API with this key."""
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.AsyncClient(base_url=api, headers=headers, trust_env=False, timeout=30)


def by_attempt(events: Sequence[Event]) -> dict[int, str]:
    """What each attempt has written, in the order of the attempts."""
    texts: dict[int, str] = {}
    for event in events:
        if event["type"] == "text":
            texts[event["attempt_id"]] = texts.get(event["attempt_id"], "") + event["text"]
    return texts
