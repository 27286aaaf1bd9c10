"""The deployment under test, and one who calls it."""

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

PATIENCE_SECONDS = 60
END_STATES = frozenset({"succeeded", "cancelled", "discarded", "dead"})
REQUEST: Mapping[str, Any] = {"input": {"text": "I was charged twice in May"}}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@dataclass
class Deployment:
    """Where it is, and the keys for it."""

    url: str
    key: str
    other_key: str
    admin_key: str | None = None
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def caller(self, key: str | None) -> "Caller":
        """Somebody with this key, or with none."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        client = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=30, trust_env=False)
        return Caller(await self._open.enter_async_context(client))

    async def close(self) -> None:
        """Close all connections."""
        await self._open.aclose()


@dataclass(frozen=True)
class Caller:
    """One who calls the deployment."""

    http: httpx.AsyncClient

    async def post(self, path: str, body: object, **headers: str) -> httpx.Response:
        """Post this as JSON; headers with `_` for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post(path, json=body, headers=named)

    async def submit(self, body: Mapping[str, Any] = REQUEST, **headers: str) -> httpx.Response:
        """Submit a job; while a quota refuses it, wait as long as is asked."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = await self.post("/v1/jobs", body, **headers)
            if answer.status_code != 429 or time.monotonic() > until:
                return answer
            await asyncio.sleep(int(answer.headers["Retry-After"]))

    async def accepted(self, body: Mapping[str, Any] = REQUEST, **headers: str) -> str:
        """A job's id."""
        answer = await self.submit(body, **headers)
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["id"]
        return job_id

    async def job(self, job_id: str) -> dict[str, Any]:
        """Its status."""
        answer = await self.http.get(f"/v1/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        job: dict[str, Any] = answer.json()
        return job

    async def until(self, job_id: str, *states: str) -> dict[str, Any]:
        """The job, once it is in one of these states, or over."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            job = await self.job(job_id)
            if job["state"] in (states or END_STATES):
                return job
            assert time.monotonic() < until, f"still {job['state']}"
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def stream(self, job_id: str, last: str | None = None, **query: str) -> AsyncIterator[httpx.Response]:
        """The job's event stream."""
        headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
        path = f"/v1/jobs/{job_id}/events"
        async with self.http.stream("GET", path, headers=headers, params=query) as answer:
            yield answer


def a_key() -> str:
    """An Idempotency-Key that nobody used."""
    return f"conformance-{uuid.uuid4()}"


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The answer as a problem of RFC 9457, section 3.1, with this status."""
    assert answer.status_code == status, f"{answer.status_code}: {answer.text}"
    assert answer.headers["Content-Type"].split(";")[0] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert told["status"] == status
    assert re.match(r"^[a-z][a-z0-9+.-]*:", told["type"]), "a type is an absolute URI"
    assert isinstance(told["title"], str) and told["title"]
    assert isinstance(told["detail"], str) and told["detail"]
    assert isinstance(told.get("instance", ""), str)
    return told


def same_refusal(one: httpx.Response, other: httpx.Response) -> bool:
    """Whether nothing but the request's own id tells these two apart."""
    bodies = [{**answer.json(), "instance": None} for answer in (one, other)]
    return one.status_code == other.status_code and bodies[0] == bodies[1]
