"""One heartbeat wrapper: a dead worker is noticed after the timeout, and a cancel reaches the call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity


@asynccontextmanager
async def heartbeating() -> AsyncIterator[None]:
    """Heartbeat at half the activity's timeout while the block runs.

    The SDK cancels the activity's own task when the server asks for it, so nothing is swallowed here.
    """
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    beating = asyncio.create_task(_beat(timeout.total_seconds() / 2))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def _beat(every_seconds: float) -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(every_seconds)
