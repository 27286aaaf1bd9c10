"""For systems that tell nobody: their jobs have to be looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def until_true(
    look: Callable[[str], Awaitable[bool]], job_id: str, every_seconds: float, longest_seconds: float = 0.0
) -> None:
    """Look at this job again and again; ever more seldom, up to `longest_seconds`: looks cost the system, too."""
    while not await look(job_id):
        await asyncio.sleep(every_seconds)
        every_seconds = max(every_seconds, min(every_seconds * 1.5, longest_seconds))
