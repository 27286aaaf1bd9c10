"""The process that hands jobs in, with the system's own library: told by a line of JSON, it answers by one.

python -m benchmarks.peers.client benchmarks.peers.on_agentjobs

It runs in the environment of the system, so it needs nothing but the standard library.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from benchmarks.peers.looking import until_true
from benchmarks.peers.system import Job

LOOK_SECONDS = 0.02
SELDOM_SECONDS = 0.25
"""Where many are looked for at the same time."""


class Client(Protocol):
    """What a system lets its users do."""

    async def submit(self, job: Job) -> None:
        """Returns when the system has promised to do it."""

    async def is_over(self, job_id: str) -> bool:
        """By the system's own word. Raises RuntimeError for a job that ended badly."""

    async def until_over(self, job_id: str) -> None:
        """The quickest way to hear of the end that the system has."""


class Module(Protocol):
    """What each `on_*` module has."""

    def client(self) -> AbstractAsyncContextManager[Client]:
        """Connected by the environment's addresses."""


async def submitted(client: Client, jobs: Sequence[Job], at_once: int) -> list[float]:
    """Hand all in, so many at once; how long each took."""
    waiting = deque(jobs)
    took: list[float] = []

    async def sender() -> None:
        while waiting:
            job = waiting.popleft()
            began = time.perf_counter()
            await client.submit(job)
            took.append(time.perf_counter() - began)

    await asyncio.gather(*(sender() for _ in range(at_once)))
    return took


async def until_all_over(client: Client, jobs: Sequence[Job], limit_seconds: float) -> int:
    """How many are over, when all are or the time is up."""
    end = asyncio.get_running_loop().time() + limit_seconds
    for number, job in enumerate(jobs):
        try:
            async with asyncio.timeout_at(end):
                await until_true(client.is_over, job.id, LOOK_SECONDS, SELDOM_SECONDS)
        except TimeoutError:
            return number + sum([await client.is_over(later.id) for later in jobs[number:]])
    return len(jobs)


async def one_by_one(client: Client, jobs: Sequence[Job]) -> list[float]:
    """Each from handing in to its end, on a system that has nothing else to do."""
    took = []
    for job in jobs:
        began = time.perf_counter()
        await client.submit(job)
        await client.until_over(job.id)
        took.append(time.perf_counter() - began)
    return took


async def kept_going(client: Client, jobs: Sequence[Job], at_once: int, seconds: float) -> list[str]:
    """So many always in hand, the next one when one is over; which were over when the time was."""
    waiting = deque(jobs)
    over: list[str] = []

    async def lane() -> None:
        while waiting:
            job = waiting.popleft()
            await client.submit(job)
            await until_true(client.is_over, job.id, SELDOM_SECONDS)
            over.append(job.id)

    lanes = [asyncio.create_task(lane()) for _ in range(at_once)]
    done, running = await asyncio.wait(lanes, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for task in done:
        task.result()
    return over


async def answered(client: Client, told: dict[str, Any]) -> dict[str, Any]:
    """One command's answer."""
    jobs = [Job(**job) for job in told["jobs"]]
    began = time.perf_counter()
    match told["do"]:
        case "submit":
            took = await submitted(client, jobs, told["at_once"])
            return {"each": took, "seconds": time.perf_counter() - began}
        case "batch":
            await submitted(client, jobs, told["at_once"])
            over = await until_all_over(client, jobs, told["limit_seconds"])
            return {"over": over, "seconds": time.perf_counter() - began}
        case "until_over":
            over = await until_all_over(client, jobs, told["limit_seconds"])
            return {"over": over, "seconds": time.perf_counter() - began}
        case "one_by_one":
            return {"each": await one_by_one(client, jobs)}
        case "keep_going":
            return {"over": await kept_going(client, jobs, told["at_once"], told["limit_seconds"])}
        case other:
            raise ValueError(f"nobody does {other}")


async def serve(module: Module, answers: int) -> None:
    """Until the input ends."""
    async with module.client() as client:
        os.write(answers, b"{}\n")
        while line := await asyncio.to_thread(sys.stdin.readline):
            answer = json.dumps(await answered(client, json.loads(line))) + "\n"
            with os.fdopen(os.dup(answers), "w") as out:
                out.write(answer)


if __name__ == "__main__":
    # Libraries write to the standard output whatever they like: answers have a descriptor of their own.
    kept = os.dup(1)
    os.dup2(2, 1)
    asyncio.run(serve(importlib.import_module(sys.argv[1]), kept))
    os._exit(0)  # the Temporal client may crash the interpreter at its end (sdk-python 300)
