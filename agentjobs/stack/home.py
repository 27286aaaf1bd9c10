"""The home directory: all that one stack keeps, and the lock that lets only one stack use it.

keys.json       the dev tenant's API keys; outlive restarts
stack.json      StackInfo while the stack runs
children.json   who our processes are, for the start after a crash
lock            held (flock) for the life of the supervisor; holds its pid
logs/           one file for each child
postgres/       the database and its password
temporal/       the Temporal server's file
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from agentjobs.stack.errors import HomeInUseError
from agentjobs.stack.info import DevKeys, StackInfo
from agentjobs.stack.private_file import write_private


class Home:
    """One stack's directory."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self.logs = self.path / "logs"
        self.temporal_file = self.path / "temporal" / "temporal.db"
        self.children_file = self.path / "children.json"
        self._keys_file = self.path / "keys.json"
        self._stack_file = self.path / "stack.json"
        self._lock_file = self.path / "lock"
        self._log = structlog.get_logger()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory and keep every other stack out. The kernel drops the lock however we die."""
        self._make()
        descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def keys(self) -> DevKeys | None:
        """The keys made at the first start of this home, if there was one."""
        if not self._keys_file.exists():
            return None
        return DevKeys.model_validate_json(self._keys_file.read_text(encoding="utf-8"))

    def keep_keys(self, keys: DevKeys) -> None:
        """Store the keys, so that they stay valid over restarts."""
        if keys != self.keys():
            write_private(self._keys_file, keys.model_dump_json())

    def publish(self, info: StackInfo) -> None:
        """Tell the client commands where the stack is and who its processes are."""
        write_private(self._stack_file, info.model_dump_json(indent=2))

    def retract(self) -> None:
        """The stack no longer runs."""
        self._stack_file.unlink(missing_ok=True)

    def _make(self) -> None:
        new = not self.path.exists() or not any(self.path.iterdir())
        self.path.mkdir(parents=True, exist_ok=True)
        if new or self._lock_file.exists():
            # As root PostgreSQL runs as another account, which must pass through to its own directory: it may
            # enter, not list. Everything in here is closed to others by itself.
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        else:
            # Somebody's directory with other things in it: its mode is not ours to change.
            self._log.warning("home_mode_left", path=str(self.path))
        for directory in (self.logs, self.temporal_file.parent):
            directory.mkdir(mode=0o700, exist_ok=True)

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode() or "not known yet"
            raise HomeInUseError(self.path, holder) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        with suppress(FileNotFoundError):  # left by a stack that crashed: its processes are not these
            self._stack_file.unlink()
