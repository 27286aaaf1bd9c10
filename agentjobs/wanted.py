"""Model calls in flight on this worker, by job: a cancel cuts them off at once, and not with the next heartbeat.

A reply that nobody wants is then neither waited for nor paid for longer than need be. It is a short cut only: a
word that is lost here arrives by Temporal, on the answer to a heartbeat.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentjobs.domain.effects import EffectKind
from agentjobs.ledger.effects import CancelRequested


class Wanted:
    """Who is to be told when a job is no longer wanted."""

    def __init__(self) -> None:
        self._calls: dict[str, set[asyncio.Timeout]] = defaultdict(set)

    def no_longer(self, job_id: str) -> None:
        """Somebody asked to cancel this job."""
        now = asyncio.get_running_loop().time()
        # Taken out: a timeout that has been brought forward takes no other moment.
        for call in self._calls.pop(job_id, ()):
            call.reschedule(now)

    @asynccontextmanager
    async def while_wanted(self, job_id: str, kind: EffectKind) -> AsyncIterator[None]:
        """Cut the block off with CancelRequested as soon as its job is cancelled.

        Only a model call is: a tool's call that is cut off leaves a doubt behind, and is over soon.
        """
        if kind is not EffectKind.MODEL:
            yield
            return
        call = asyncio.timeout(None)
        try:
            async with call:
                self._calls[job_id].add(call)
                try:
                    yield
                finally:
                    self._forget(job_id, call)
        except TimeoutError:
            if call.expired():
                raise CancelRequested from None
            raise

    def _forget(self, job_id: str, call: asyncio.Timeout) -> None:
        calls = self._calls.get(job_id, set())
        calls.discard(call)
        if not calls:
            self._calls.pop(job_id, None)
