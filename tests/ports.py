"""Free ports, each given once: several processes of tests look for theirs at the same moment."""

import socket
from typing import Final

from agentjobs.stack import ports

_leases: Final[list[socket.socket]] = []


def free_port() -> int:
    """One free port, which no other process of tests is given while this one lives.

    A server takes its port seconds after it was found, and again when a test has killed it. The lease is a UDP
    socket of the same number: it is in no server's way, and ends with the process, however that ends.
    """
    while True:
        port = ports.free_port()
        lease = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            lease.bind((ports.LOOPBACK, port))
        except OSError:
            lease.close()
            continue
        _leases.append(lease)
        return port


def free_ports(count: int) -> list[int]:
    """That many different ones."""
    return [free_port() for _ in range(count)]
