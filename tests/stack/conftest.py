"""A home and ports of its own for each test; nothing of them is left behind."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentjobs.stack.options import StackOptions
from agentjobs.stack.postgres_place import remove_place
from tests.ports import free_ports


@pytest.fixture
def home() -> Iterator[Path]:
    with temporary_home() as path:
        yield path


@contextmanager
def temporary_home() -> Iterator[Path]:
    # Not tmp_path: pytest closes that to other accounts, and as root PostgreSQL runs as one.
    path = Path(tempfile.mkdtemp(prefix="agentjobs-test-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        remove_place(path / "postgres")
        shutil.rmtree(path)


@pytest.fixture
def options(home: Path) -> StackOptions:
    return options_for(home)


def options_for(home: Path) -> StackOptions:
    api, temporal, ui, postgres = free_ports(4)
    return StackOptions(home=home, api_port=api, temporal_port=temporal, ui_port=ui, postgres_port=postgres)
