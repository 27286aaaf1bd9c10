"""A client that follows one job's events, and comes back with the last id whenever its stream breaks off."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle
from random import Random

import httpx

from agentjobs.domain.states import FINAL
from tests.chaos.client import PLAIN
from tests.chaos.witnesses import Followed

SILENCE_SECONDS = 45.0
"""As docs/events.md asks of clients."""

PATIENCE_SECONDS = 900.0
ENDS = (*FINAL, "died")


class Follower:
    """Reads from 0 on, from each API in turn; leaves now and then without need."""

    def __init__(self, apis: tuple[str, ...], key: str, random: Random) -> None:
        timeout = httpx.Timeout(5.0, read=SILENCE_SECONDS)
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"}, timeout=timeout, trust_env=False, verify=PLAIN
        )
        self._apis = cycle(apis)
        self._random = random

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def follow(self, job_id: str, is_over: Callable[[], bool]) -> Followed:
        """Every event until the job is over; `is_over` says when a dead job stays so."""
        seen: list[tuple[int, str]] = []
        connects = 0
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (seen and (seen[-1][1] in FINAL or (seen[-1][1] == "died" and is_over()))):
                connects += 1
                with suppress(httpx.TransportError):
                    await self._once(job_id, seen)
                if is_over() and seen and seen[-1][1] not in ENDS:
                    break
                await asyncio.sleep(self._random.uniform(0.1, 0.5))
        return Followed(job_id, tuple(seen), connects)

    async def _once(self, job_id: str, seen: list[tuple[int, str]]) -> None:
        last = str(seen[-1][0]) if seen else "0"
        path = f"{next(self._apis)}/v1/jobs/{job_id}/events"
        leaves_after = self._random.randint(1, 12)
        async with self._http.stream("GET", path, headers={"Last-Event-ID": last}) as answer:
            if answer.status_code != 200:
                return
            async for line in answer.aiter_lines():
                if not line.startswith("data: "):
                    continue
                event = json.loads(line.removeprefix("data: "))
                if "seq" not in event:
                    continue
                seen.append((event["seq"], event["type"]))
                leaves_after -= 1
                if not leaves_after:
                    return
