"""One heartbeat wrapper: a dead worker is noticed after the timeout, and a cancel reaches the call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity

BEATS_PER_TIMEOUT = 3
"""Often enough that a cancel in Temporal alone, which travels on the answer to a heartbeat, reaches a call within
seconds (one in the ledger comes at once). Each costs the server some milliseconds.
"""


@asynccontextmanager
async def heartbeating() -> AsyncIterator[None]:
    """Heartbeat while the block runs. A call that ends before the first beat costs none.

    The SDK cancels the activity's own task when the server asks for it, so nothing is swallowed here.
    """
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    beating = asyncio.create_task(_beat(timeout.total_seconds() / BEATS_PER_TIMEOUT))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def _beat(every_seconds: float) -> None:
    while True:
        await asyncio.sleep(every_seconds)
        activity.heartbeat()
