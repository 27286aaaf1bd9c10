"""Which IP addresses are of the public internet, which of our own network, and which are neither.

An IPv4 address within an IPv6 one is judged as what it leads to.
"""

import ipaddress
from typing import Final, TypeAlias

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

_Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"


def _networks(*names: str) -> tuple[_Network, ...]:
    return tuple(ipaddress.ip_network(name) for name in names)


# The last 32 bits are an IPv4 address: NAT64 (RFC 6052) and IPv4-compatible (RFC 4291, section 2.5.5.1).
_IPV4_AT_THE_END: Final = _networks("64:ff9b::/96", "::/96")
_GLOBAL_IPV6: Final = ipaddress.ip_network("2000::/3")  # all that IANA has given out as global unicast

_NOT_PUBLIC: Final = _networks(
    "168.63.129.16/32",  # a cloud's service for its machines, though of a public range
    "192.0.0.0/24",  # of protocols (RFC 6890), and a cloud's metadata service
    "192.88.99.0/24",  # 6to4 relays (RFC 7526)
    "3fff::/20",  # documentation (RFC 9637)
)
_INSIDE: Final = _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
_METADATA: Final = _networks("100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::/32")
"""Where clouds tell a machine its credentials, as far as not link-local."""


def is_public(address: Address) -> bool:
    """Whether a stranger may send us there."""
    real = innermost(address)
    if isinstance(real, ipaddress.IPv6Address) and real not in _GLOBAL_IPV6:
        return False
    return real.is_global and not real.is_multicast and not _is_of(real, _NOT_PUBLIC)


def is_inside(address: Address) -> bool:
    """Whether it is of our own network: neither this machine, nor its link, nor a cloud's metadata service."""
    real = innermost(address)
    return _is_of(real, _INSIDE) and not _is_of(real, _METADATA)


def innermost(address: Address) -> Address:
    """The address that packets to this one end up at."""
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback or address.is_unspecified:
        return address
    if any(address in network for network in _IPV4_AT_THE_END):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def _is_of(address: Address, networks: tuple[_Network, ...]) -> bool:
    return any(address in network for network in networks)
