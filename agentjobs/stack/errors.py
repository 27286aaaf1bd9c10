"""What keeps the embedded stack from running; each message is one line that says what to do.

StackError
├── HomeInUseError       another stack runs in this home
├── PortTakenError       a port the stack needs is held by something else
├── ChildFailedError     a child process did not come up
└── InstallationError    a server's files, or the account it runs as, are missing
"""

from pathlib import Path

START = ".venv/bin/python starter.py dev"
"""What `make dev` runs, which takes no options itself."""


class StackError(Exception):
    """The stack cannot run. Show the message; correct what it names; start again."""


class HomeInUseError(StackError):
    """Another stack runs in this home: stop it, or give this one its own --home."""

    def __init__(self, home: Path, holder: str) -> None:
        super().__init__(
            f"{home} is in use by another stack (pid {holder}): stop it or give this one another place, as by "
            f"`{START} --home DIR`"
        )


class PortTakenError(StackError):
    """Something else listens on the port: stop it, or choose another port with the option named."""

    def __init__(self, port: int, option: str) -> None:
        super().__init__(
            f"port {port} on 127.0.0.1 is in use: stop what holds it or choose another, as by `{START} {option} N`"
        )


class ChildFailedError(StackError):
    """A child did not come up; its last log line is quoted, the rest is in its log file."""

    def __init__(self, name: str, what: str, last_line: str, log: Path) -> None:
        super().__init__(f"{name} {what}: {last_line or 'it wrote nothing'} (log: {log})")


class InstallationError(StackError):
    """A server the stack starts is not installed, or not usable as it is installed."""
