"""Connections whose other end is gone without a word: packets are lost from now on, and no FIN comes."""

import ctypes
import os
import socket
import struct

import psutil

SO_ATTACH_FILTER = 26
_DROP_ALL = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
"""A packet filter of one instruction: accept nothing. The kernel drops what comes, and acknowledges nothing."""


def cut_off(opened: socket.socket) -> None:
    """Nothing that is sent to this socket arrives any more; it does not know."""
    program = struct.pack("HL", 1, ctypes.addressof(_DROP_ALL))
    opened.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def cut_off_from(port: int) -> int:
    """The same for every connection of this process to this port. Returns how many there were."""
    found = [one for one in psutil.Process().net_connections("tcp") if one.raddr and one.raddr.port == port]
    for one in found:
        with socket.socket(fileno=os.dup(one.fd)) as opened:
            cut_off(opened)
    return len(found)
