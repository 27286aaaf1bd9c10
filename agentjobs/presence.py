"""A worker's presence: the session whose advisory lock says that it lives.

It also hears which jobs are cancelled. It is a connection of its own, outside the pool. When it breaks (a restart
of the database, a cut network) it is opened again at once. If the worker was given up meanwhile, it goes on under
a new id: what it began under the old one is fenced, and done by another worker.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import asyncpg
import structlog

from agentjobs.domain.effects import EffectKind
from agentjobs.ledger.workers import CANCELLED_CHANNEL, Workers
from agentjobs.wanted import Wanted

log = structlog.get_logger()

LOOK_SECONDS = 0.2
"""How often the session is looked at, and how long between two tries to open it: sooner than anybody gives the
worker up for it (takeover.py: twice missing)."""

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 2.0


class Presence:
    """The id under which this worker begins effects now."""

    def __init__(self, dsn: str, workers: Workers, identity: str) -> None:
        self._dsn = dsn
        self._workers = workers
        self._identity = identity
        self._session: asyncpg.Connection[asyncpg.Record] | None = None
        self._wanted = Wanted()
        self.id = ""

    def while_wanted(self, job_id: str, kind: EffectKind) -> AbstractAsyncContextManager[None]:
        """Cuts the block off with CancelRequested as soon as somebody cancels the job."""
        return self._wanted.while_wanted(job_id, kind)

    @asynccontextmanager
    async def held(self) -> AsyncIterator["Presence"]:
        """Present while the block runs, and properly gone after it."""
        self._session = await self._open()
        self.id = await self._workers.register(self._session, self._identity)
        keeping = asyncio.create_task(self._keep())
        try:
            yield self
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            with suppress(asyncpg.PostgresError, OSError):
                await self._workers.mark_stopped(self.id)
            self._session.terminate()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                if isinstance(error, TimeoutError) and self._session is not None:
                    # Half open: the other side may have given this session up long ago.
                    self._session.terminate()

    async def _look(self) -> None:
        if self._session is None or self._session.is_closed():
            await self._reopen()
        elif await self._workers.is_lost(self._session, self.id):
            # Given up just when it came back: with the old id it could begin nothing any more.
            await self._hold_again(self._session)

    async def _reopen(self) -> None:
        session = await self._open()
        try:
            await self._hold_again(session)
        except (
            BaseException
        ):  # five tries a second while the database is unwell: none leaves its session to chance
            session.terminate()
            raise

    async def _hold_again(self, session: "asyncpg.Connection[asyncpg.Record]") -> None:
        if not await self._workers.hold_again(session, self.id):
            self.id = await self._workers.register(session, self._identity)
            log.warning("worker_was_given_up", new_id=self.id)
        self._session = session

    async def _open(self) -> "asyncpg.Connection[asyncpg.Record]":
        session = await asyncpg.connect(
            self._dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_SECONDS,
            server_settings={"application_name": "agentjobs-worker-presence"},
        )
        await session.add_listener(CANCELLED_CHANNEL, self._heard)
        return session

    def _heard(self, _connection: object, _pid: int, _channel: str, job_id: object) -> None:
        self._wanted.no_longer(str(job_id))
