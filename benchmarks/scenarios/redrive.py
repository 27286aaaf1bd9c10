"""Many dead letters redriven at a rate: whether it is kept, and when the last job has its verdict. Ours only."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from agentjobs.commands.dev_tenant import GRANTED, USER
from benchmarks.peers.http_wire import Connection
from benchmarks.peers.running import LIMIT_SECONDS, Running, running
from benchmarks.peers.servers import Servers
from benchmarks.peers.system import System
from benchmarks.scenarios.scenario import Scenario, Sizes, jobs_of
from benchmarks.series import Value

JOBS = 1_000
RATE = 20.0
CANARY = 5
LOOK_SECONDS = 0.2
NOBODY_ELSE = {"AGENTJOBS_REDRIVE_APPROVAL_ABOVE": "10000"}
DEAD = "SELECT count(*) FROM dead_letters WHERE state = 'open'"
RECOVERED = "letters recovered a second"


async def measure(system: System, servers: Servers, sizes: Sizes) -> list[Value]:
    """Jobs die for want of a grant; it is given, and all are redriven."""
    count = sizes.jobs or JOBS
    settings = {**system.settings, **NOBODY_ELSE}
    async with running(replace(system, settings=settings), servers) as up:
        admin = up.admin()
        await _said(admin, "DELETE", f"/v1/grants?user={USER}&action={GRANTED}")
        began = time.monotonic()
        await up.ask("submit", jobs_of(count), at_once=16)
        await _until(lambda: _are_dead(up, count), "all jobs to be dead")
        dead_after = time.monotonic() - began
        await _said(admin, "POST", "/v1/grants", {"user": USER, "action": GRANTED})
        redrive = {"filter": {}, "note": "benchmark", "canary": CANARY, "share": 0.1, "rate_per_second": RATE}
        began = time.monotonic()
        path = f"/v1/redrives/{(await _said(admin, 'POST', '/v1/redrives', redrive))['id']}"
        await _until(lambda: _has_ended(admin, path), "the redrive to end")
        seconds = time.monotonic() - began
        items = (await _said(admin, "GET", path))["items"]
    return [
        Value(RECOVERED, "1/s", items["recovered"] / seconds),
        Value("letters asked for a second", "1/s", RATE),
        Value("letters that did not recover", "letters", count - items["recovered"]),
        Value("jobs that die a second", "1/s", count / dead_after),
    ]


async def _are_dead(up: Running, count: int) -> bool:
    return int(await up.value(DEAD)) == count


async def _has_ended(admin: Connection, path: str) -> bool:
    return (await _said(admin, "GET", path))["state"] in {"completed", "stopped", "cancelled"}


async def _until(look: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            while not await look():  # noqa: ASYNC110 - what is waited for is in another process
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise RuntimeError(f"waited in vain for {what}") from None


async def _said(admin: Connection, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    status, answer = await admin.ask(method, path, json.dumps(body).encode() if body else b"")
    if status >= 300:
        raise RuntimeError(f"{method} {path} was answered with {status}: {answer.decode()}")
    return json.loads(answer or b"{}")


SCENARIO = Scenario("redrive", measure, systems=("agentjobs",))
