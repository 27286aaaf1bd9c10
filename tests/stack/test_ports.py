"""A port that is taken is told before anything starts."""

import socket

import pytest

from agentjobs.stack.errors import PortTakenError, StackError
from agentjobs.stack.ports import STEADY_PORTS, free_port, free_ports, is_free, require_free, steady_ports


def test_a_taken_port_is_named_with_the_option_that_changes_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]

        with pytest.raises(PortTakenError, match=f"port {port} .* as by `.+ starter.py dev --ui-port N`"):
            require_free({"--api-port": free_port(), "--ui-port": port})


def test_a_port_taken_on_every_address_is_taken_on_loopback_too() -> None:
    with socket.create_server(("0.0.0.0", 0)) as holder:
        assert not is_free(holder.getsockname()[1])


def test_two_options_cannot_share_a_port() -> None:
    port = free_port()

    with pytest.raises(StackError, match="--api-port and --ui-port both ask"):
        require_free({"--api-port": port, "--ui-port": port})


def test_free_ports_are_all_different() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
    assert all(is_free(port) for port in ports)


def test_steady_ports_are_free_and_not_those_of_connections_on_their_way_out() -> None:
    found = steady_ports(3)

    assert len(set(found)) == 3
    assert all(port in STEADY_PORTS and is_free(port) for port in found)
