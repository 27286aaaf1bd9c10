"""The lane in which orders to erase are carried out: a batch of each, again and again."""

import asyncio

import structlog

from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger

log = structlog.get_logger()

LOOK_SECONDS = 1.0
"""Between two looks at jobs that are being cancelled or discarded."""


class ErasureSweep:
    """Several relays may run it: each job is erased by one of them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def run(self) -> None:
        """Erase until cancelled."""
        while True:
            try:
                erased = await self.run_once()
            except Exception as error:
                erased = 0
                if not is_unavailable(error):
                    log.error("erasure_failed", error_type=type(error).__name__)
            if erased == 0:
                await asyncio.sleep(LOOK_SECONDS)

    async def run_once(self) -> int:
        """One batch of each order; returns how many jobs were erased, cancelled or discarded."""
        return sum([await self._ledger.erasures.advance(one) for one in await self._ledger.erasures.under_way()])
