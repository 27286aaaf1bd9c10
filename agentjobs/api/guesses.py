"""Wrong keys, counted by the peer that sends them: a bucket each, in this process, that fills again with time.

A key has 256 random bits, so nobody guesses one; but each guess costs a look-up in the database that all share.
Behind a proxy all callers are one peer: there the proxy is to limit its own.
"""

import ipaddress
import math
from collections.abc import Callable
from typing import Final

from agentjobs.api.problems import Problem

AT_ONCE: Final = 50
A_SECOND: Final = 5.0
PEERS_LIMIT: Final = 10_000
"""A few hundred kB. Beyond it the buckets that were not used for the longest time are forgotten."""

IPV6_PREFIX_BITS: Final = 64
"""One subscriber has all addresses of such a network."""


class Guesses:
    """How many wrong keys each peer may still send."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # By peer, the one used last at the end: what was left, and when that was.
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, peer: str) -> None:
        """Let one pass. Raises Problem 429 when there is none left."""
        network = _network(peer)
        left = self._now_left(network)
        if left < 1:
            seconds = str(math.ceil((1 - left) / A_SECOND))
            detail = "Too many wrong keys have come from this address: check the key, and wait."
            raise Problem(429, "too_many_wrong_keys", detail, headers={"Retry-After": seconds})
        self._keep(network, left - 1)

    def give_back(self, peer: str) -> None:
        """It was no wrong key after all."""
        network = _network(peer)
        self._keep(network, self._now_left(network) + 1)

    def _now_left(self, network: str) -> float:
        left, at = self._left.get(network, (AT_ONCE, 0.0))
        return min(AT_ONCE, left + (self._clock() - at) * A_SECOND)

    def _keep(self, network: str, left: float) -> None:
        self._left.pop(network, None)
        if left >= AT_ONCE:
            return
        if len(self._left) >= PEERS_LIMIT:
            del self._left[next(iter(self._left))]
        self._left[network] = (left, self._clock())


def _network(peer: str) -> str:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer
    if address.version == 4:
        return peer
    return str(ipaddress.ip_network((address, IPV6_PREFIX_BITS), strict=False).network_address)
