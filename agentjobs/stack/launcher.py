"""What runs between the supervisor's fork and a child's program; it becomes the program, so the pid stays.

It ties the child's life to the supervisor's: when the supervisor dies, even by kill -9, the kernel signals the
child. It also takes the child's account, and does so first, because a change of account clears that tie. Doing
this in a small program instead of Popen's preexec_fn keeps Python code out of a fork of a process with threads,
and lets the account be one that may not even read this interpreter. Started with -I -S it costs 15 ms.

    launcher.py SIGNAL PARENT UID GID PROGRAM ARGUMENT...        (UID and GID are "-" to stay who we are)
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def become(death_signal: int, parent: int, uid: str, gid: str, argv: list[str]) -> None:
    """Take the account, tie the life, run the program."""
    if uid != "-":
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked to be told
            sys.exit(1)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  # no shell is the point
    except OSError as error:
        sys.exit(f"cannot run {argv[0]}: {error.strerror}")


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:])
