"""The API as a process: `python -m agentjobs.api`."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator

import structlog
import uvicorn
from fastapi import FastAPI

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.api.app import create_app
from agentjobs.api.event_feed import EventFeed
from agentjobs.api.event_stream import STREAMS_LIMIT, OpenStreams
from agentjobs.api.metrics import MetricsAccess
from agentjobs.api.open_files import streams_that_fit
from agentjobs.api.shown import Links
from agentjobs.api.wire import BoundedProtocol
from agentjobs.console.app import mount
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.database import as_job_error, is_unavailable
from agentjobs.ledger.events import Bell
from agentjobs.ledger.ledger import Ledger
from agentjobs.processes import started
from agentjobs.settings import Settings, StartError

log = structlog.get_logger()

LOCK_SECONDS = 2.0
"""Less than a caller waits for an answer: who waits for somebody's transaction hears so."""

GRACE_SECONDS = 10
"""How long requests in flight may take at the end: each is a few statements."""

DEAF_MILLISECONDS = 30_000
"""Streams write every 15 s; a peer that acknowledges nothing for so long is gone."""


class Server(uvicorn.Server):
    """Ends by itself on SIGTERM or SIGINT; uvicorn's own would raise the signal again and end in its code."""

    def __init__(self, config: uvicorn.Config, streams: OpenStreams) -> None:
        super().__init__(config)
        self._streams = streams

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop taking connections, end the streams, finish the requests in flight."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """From now on it answers."""
        await super().startup(sockets)
        log.info("api_started", host=self.config.host, port=self.config.port)

    def _stop(self) -> None:
        self.should_exit = True
        self._streams.close()


async def serve(settings: Settings) -> None:
    """Answer until SIGTERM or SIGINT; then finish the requests in flight."""
    streams = OpenStreams(per_tenant=settings.streams_per_tenant, in_all=streams_that_fit(STREAMS_LIMIT))
    listening = listening_on(settings.api_host, settings.api_port)
    ledger = await Ledger.open(
        settings.dsn,
        size=settings.database_pool_size,
        application_name="agentjobs-api",
        lock_seconds=LOCK_SECONDS,
    )
    try:
        await _require_schema(ledger)
        app = create_app(
            ledger,
            built_in_agents(),
            links=Links(settings.temporal_ui_url, settings.temporal_namespace),
            failpoints=Failpoints.parse(settings.failpoints),
            redrive_approval_above=settings.redrive_approval_above,
            quotas=settings.quotas,
            streams=streams,
            webhooks_private=settings.webhooks_private,
            metrics_access=MetricsAccess(settings.metrics_secret, is_open=settings.metrics_open),
        )
        mount(app)
        async with read_for_streams(app, ledger, settings.dsn):
            await Server(_config(app, settings), streams).serve(sockets=[listening])
    finally:
        await ledger.close()
    log.info("stopped")


@contextlib.asynccontextmanager
async def read_for_streams(app: FastAPI, ledger: Ledger, dsn: str) -> AsyncIterator[None]:
    """Read events for the streams of the application while the block runs."""
    feed: EventFeed = app.state.event_feed
    bell = Bell(ledger.database, dsn, "agentjobs-api-listen")
    reading = [
        asyncio.create_task(feed.run()),
        asyncio.create_task(feed.listen(bell.listen, app.state.streams.any)),
    ]
    try:
        yield
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


def _config(app: object, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # uvicorn has protocols of its own for ASGI
        host=settings.api_host,  # for the log: the socket is open already
        port=settings.api_port,
        loop="none",
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # ours is an event with the route and no query
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


async def _require_schema(ledger: Ledger) -> None:
    try:
        await ledger.outbox.backlog()
    except Exception as error:
        if is_unavailable(error) or as_job_error(error) is None:
            raise
        why = f"the database has not this version's tables ({type(error).__name__})"
        raise StartError(f"{why}; run `python -m agentjobs.ledger`") from None


def listening_on(host: str, port: int) -> socket.socket:
    """A socket for the server, whose connections end when their other end is gone. Raises StartError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Its connections have it from here: one whose other end is gone is not kept for a quarter of an hour.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAF_MILLISECONDS)
    try:
        listening.bind((host, port))
    except OSError as error:
        why = f"cannot listen on {host}:{port} ({error.strerror}); set AGENTJOBS_API_PORT to a free port"
        raise StartError(why) from None
    return listening


if __name__ == "__main__":
    sys.exit(started("api", serve))
