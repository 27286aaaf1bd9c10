"""Ports on 127.0.0.1: the stack checks its own before it starts anything, tests ask for free ones."""

import random
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import islice

from agentjobs.stack.errors import PortTakenError, StackError

LOOPBACK = "127.0.0.1"

STEADY_PORTS = range(20_000, 32_768)
"""Below those that systems give to connections on their way out: a server that is started again finds its port."""


def require_free(ports: Mapping[str, int]) -> None:
    """Check each option's port, so that a clash is one line and not a child's traceback half a minute later."""
    owners: dict[int, str] = {}
    for option, port in ports.items():
        if port in owners:
            raise StackError(f"{owners[port]} and {option} both ask for port {port}: give them different ones")
        owners[port] = option
        if not is_free(port):
            raise PortTakenError(port, option)


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a connection of the stack before that lingers in TIME_WAIT does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """That many different free ports: all are held until the last is found."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def free_port() -> int:
    """One free port."""
    return free_ports(1)[0]


def steady_ports(count: int) -> list[int]:
    """That many different free ports, for servers that come back to theirs after a crash."""
    drawn = random.sample(STEADY_PORTS, len(STEADY_PORTS))
    return list(islice((port for port in drawn if is_free(port)), count))
