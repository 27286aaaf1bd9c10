"""A session of the database that ends when the other end of its connection is gone."""

import asyncio
import socket
from typing import TYPE_CHECKING, Any, Final

import asyncpg

if TYPE_CHECKING:
    _Connection = asyncpg.Connection[asyncpg.Record]
else:
    _Connection = asyncpg.Connection  # generic in its stubs only

PROBE_AFTER_SECONDS: Final = 10
PROBE_EVERY_SECONDS: Final = 5
PROBES: Final = 3
"""A connection that is used by nobody is dropped after 25 s without an answer. By default it would be after two
hours, and each of the pool's would fail one statement after the other, with its own timeout."""

UNANSWERED_MILLISECONDS: Final = 20_000
"""And so is one on which a statement is out. The kernel's own patience is a quarter of an hour."""


class Session(_Connection):
    """Made by asyncpg, for each connection that it opens."""

    def __init__(
        self,
        protocol: Any,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        addr: Any,
        config: Any,
        params: Any,
    ) -> None:
        super().__init__(protocol, transport, loop, addr, config, params)
        _notice_lost_peer(transport.get_extra_info("socket"))

    def get_reset_query(self) -> str:
        """Nothing: a round trip of four statements after each of ours, for what none of ours leaves behind.

        Locks and settings of the pool's sessions end with their transaction (tests/ledger/test_sessions.py). One
        that is still open is rolled back all the same: asyncpg does that by itself.
        """
        return ""


def _notice_lost_peer(opened: socket.socket) -> None:
    if opened.family == socket.AF_UNIX:
        return  # the kernel itself tells
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", PROBE_AFTER_SECONDS),
        ("TCP_KEEPINTVL", PROBE_EVERY_SECONDS),
        ("TCP_KEEPCNT", PROBES),
        ("TCP_USER_TIMEOUT", UNANSWERED_MILLISECONDS),
    ):
        if hasattr(socket, name):  # not every system has each
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
