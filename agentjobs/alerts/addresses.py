"""Where a webhook may go: looked up, checked, and then connected to by the address that was checked.

A name may be pointed at something inside our own network, at any moment (Standard Webhooks 1.0.0, "Server side
request forgery"). So every address is checked at every attempt, and none is looked up a second time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address


class Forbidden(Exception):
    """The webhook leads where it must not go. The message says what to change, and no address."""


@dataclass(frozen=True)
class Place:
    """A webhook's address, taken apart."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Place:
        """Raises ValueError, which does not quote the address: its path may be a secret."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("a webhook's address begins with https:// and a host")
        if parts.username or parts.password or parts.fragment:
            raise ValueError("a webhook's address has no credentials or fragment in it")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        query = f"?{parts.query}" if parts.query else ""
        return cls(parts.scheme, parts.hostname, port, f"{parts.path or '/'}{query}")

    @property
    def authority(self) -> str:
        """As the header Host has it."""
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """By its own words: a name that merely leads to this machine is no such place."""
        address = _literal(self.host)
        return self.host == "localhost" or (address is not None and address.is_loopback)

    def at(self, address: Address) -> str:
        """The URL with the address that was checked in place of the name."""
        return f"{self.scheme}://{_bracketed(str(address))}:{self.port}{self.path}"


def checked_place(url: str, *, private: bool) -> Place:
    """What can be said without a look-up. Raises ValueError as `Place.of`, also for http to a far place."""
    place = Place.of(url)
    if place.scheme == "http" and not place.is_loopback and not private:
        raise ValueError("a webhook goes by https, or to this machine")
    return place


async def allowed_addresses(place: Place, *, private: bool) -> list[Address]:
    """The addresses of the place, in the system's order.

    private: whether addresses inside our own network may be among them, by http too.
    Raises OSError when the name cannot be looked up, and Forbidden when one of its addresses is not allowed.
    """
    found = await asyncio.get_running_loop().getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(entry[4][0]) for entry in found]
    for address in addresses:
        _check(place, address, private=private)
    return list(dict.fromkeys(addresses))


def _check(place: Place, address: Address, *, private: bool) -> None:
    if place.is_loopback:
        if not address.is_loopback:
            raise Forbidden("the name of this machine leads elsewhere")
        return
    if is_public(address):
        if place.scheme != "https":
            raise Forbidden("a webhook to a public address goes by https")
        return
    if not private or address.is_loopback or address.is_link_local or address.is_unspecified:
        raise Forbidden("the webhook's name leads to a private address: AGENTJOBS_ALERT_WEBHOOK_PRIVATE allows it")


def is_public(address: Address) -> bool:
    """Whether the address is of the public internet, also by an IPv4 address within it."""
    if isinstance(address, ipaddress.IPv6Address):
        within = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if address in _NAT64:
            within = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if within is not None:
            return is_public(within)
    return address.is_global and not address.is_multicast


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
