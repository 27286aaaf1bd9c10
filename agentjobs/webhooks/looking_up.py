"""From a host's name to its IP addresses."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

from agentjobs.webhooks.addresses import Address

LookUp: TypeAlias = Callable[[str, int], Awaitable[list[Address]]]
"""Host and port to the addresses, in order of preference. Raises OSError when there are none."""

THREADS: Final = 128
"""A look-up that was given up holds its thread for as long as the system asks its name servers, tens of seconds.
The event loop's own few threads would be used up by one tenant's slow name servers."""


class SystemLookUp:
    """By the system's resolver, in threads of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="webhook-names")

    async def __call__(self, host: str, port: int) -> list[Address]:
        """The addresses of the host."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _looked_up, host, port)
        return list(dict.fromkeys(ipaddress.ip_address(address) for address in found))

    def close(self) -> None:
        """Look nothing up any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _looked_up(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
