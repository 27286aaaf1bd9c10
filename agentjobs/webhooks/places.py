"""Where a webhook may go.

A name may be pointed at something inside our own network, at any moment (Standard Webhooks 1.0.0, "Server side
request forgery"). So what can be seen of an address itself is checked when it is given, and every IP address of
its name at every attempt (sending.py).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from agentjobs.webhooks.addresses import Address, innermost, is_inside, is_public

URL_LIMIT: Final = 2_048
_PRINTABLE: Final = re.compile(r"[\x21-\x5b\x5d-\x7e]+")  # no spaces, no backslash: readers differ on them
_NAME: Final = re.compile(r"(?=.{1,253}$)(?!-)[a-z0-9_-]{1,63}(\.(?!-)[a-z0-9_-]{1,63})*")
_NUMBER: Final = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")  # what a system may read as an IPv4 address
_LOCAL_NAME: Final = re.compile(r"[^.]+|.*\.(localhost|local|internal|home\.arpa)")
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


class Forbidden(ValueError):
    """The webhook must not go there. The message says what to change, and does not quote the address: its path may
    be a secret.
    """


@dataclass(frozen=True)
class Reach:
    """Where webhooks may go, beside public addresses by https."""

    loopback: bool = False
    """To this machine by its own name, by http too."""

    private: bool = False
    """Into our own network, by http too."""

    ports: frozenset[int] | None = None
    """None: any."""

    @classmethod
    def of_tenants(cls, *, private: bool) -> Reach:
        """For addresses that tenants give: strangers to us, unless this is a trial on a developer's machine."""
        return cls(loopback=True, private=True) if private else cls(ports=frozenset({443, 8443}))

    @classmethod
    def of_operators(cls, *, private: bool) -> Reach:
        """For addresses from the settings."""
        return cls(loopback=True, private=private)


@dataclass(frozen=True)
class Place:
    """A webhook's address, taken apart."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Place:
        """Raises Forbidden."""
        parts = _split(url)
        host = (parts.hostname or "").rstrip(".")
        if parts.scheme not in _DEFAULT_PORTS or not host:
            raise Forbidden("a webhook's address begins with https:// and a host")
        if "@" in parts.netloc or parts.fragment:
            raise Forbidden("a webhook's address has no credentials or fragment in it")
        if _literal(host) is None and (not _NAME.fullmatch(host) or _NUMBER.fullmatch(host)):
            raise Forbidden("a webhook's address has a name in ASCII, or an IP address in its usual form")
        query = f"?{parts.query}" if parts.query else ""
        return cls(parts.scheme, host, _port(parts), f"{parts.path or '/'}{query}")

    @property
    def authority(self) -> str:
        """As the header Host has it."""
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def literal(self) -> Address | None:
        """The IP address that it names itself."""
        return _literal(self.host)

    @property
    def is_loopback(self) -> bool:
        """By its own words: a name that merely leads to this machine is no such place."""
        return self.host == "localhost" or (self.literal is not None and self.literal.is_loopback)

    def at(self, address: Address) -> str:
        """The URL with the address that was checked in place of the name."""
        return f"{self.scheme}://{_bracketed(str(address))}:{self.port}{self.path}"


def checked_place(url: str, reach: Reach) -> Place:
    """What can be said without a look-up. Raises Forbidden."""
    place = Place.of(url)
    if reach.ports is not None and place.port not in reach.ports:
        ports = " or ".join(str(port) for port in sorted(reach.ports))
        raise Forbidden(f"a webhook's port is {ports}")
    if place.scheme == "http" and not reach.private and not (place.is_loopback and reach.loopback):
        raise Forbidden("a webhook goes by https")
    if place.literal is not None:
        check_address(place, place.literal, reach)
    elif not reach.private and _LOCAL_NAME.fullmatch(place.host) and not (place.is_loopback and reach.loopback):
        raise Forbidden("a webhook's host has a name of the public internet")
    return place


def check_address(place: Place, address: Address, reach: Reach) -> None:
    """Whether the place may be connected to by this address of its. Raises Forbidden."""
    if place.is_loopback and reach.loopback:
        if not innermost(address).is_loopback:
            raise Forbidden("the name of this machine leads elsewhere")
    elif is_public(address):
        if place.scheme != "https":
            raise Forbidden("a webhook to a public address goes by https")
    elif not reach.private or not is_inside(address):
        raise Forbidden("a webhook goes to public addresses only")


def _split(url: str) -> SplitResult:
    if len(url) > URL_LIMIT or not _PRINTABLE.fullmatch(url):
        raise Forbidden(f"a webhook's address has at most {URL_LIMIT} printable ASCII characters")
    try:
        return urlsplit(url)
    except ValueError:  # its own message quotes the host
        raise Forbidden("a webhook's address is not well formed") from None


def _port(parts: SplitResult) -> int:
    try:
        port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    except ValueError:  # its own message quotes the port
        port = 0
    if not port:
        raise Forbidden("a webhook's port is a number from 1 to 65535")
    return port


def _literal(host: str) -> Address | None:
    try:
        return None if "%" in host else ipaddress.ip_address(host)
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
