import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from agentjobs.commands.outside import Outside
from starter import app
from tests.commands.fake_api import ADMIN_KEY, API_KEY, NOW, URL, FakeApi


class CommandLine:
    """`python starter.py` in this process, against the fake API, in a home whose stack runs."""

    def __init__(self, api: FakeApi, home: Path) -> None:
        self.api = api
        self.home = home
        self.waits: list[float] = []
        self.interrupt_after: int | None = None
        self.write_stack_file(URL)

    def write_stack_file(self, url: str) -> None:
        self.home.mkdir(exist_ok=True)
        keys = {"api": url, "api_key": API_KEY, "admin_key": ADMIN_KEY, "pids": {}}
        (self.home / "stack.json").write_text(json.dumps(keys))

    def run(self, *arguments: str, stdin: str | bytes | None = None, env: dict[str, str] | None = None) -> Result:
        outside = Outside(self.api.transport, sleep=self._sleep, now=lambda: NOW, chance=lambda: 0.5)
        environment = {"AGENTJOBS_HOME": str(self.home), **(env or {})}
        return CliRunner().invoke(app, arguments, input=stdin, env=environment, obj=outside)

    def json(self, *arguments: str, exit_code: int = 0) -> Any:
        """The one JSON document on stdout."""
        result = self.run(*arguments, "--json")
        assert result.exit_code == exit_code, result.output
        return json.loads(result.stdout)

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        if self.interrupt_after is not None and len(self.waits) > self.interrupt_after:
            raise KeyboardInterrupt


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def command_line(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    for name in ("AGENTJOBS_API", "AGENTJOBS_API_KEY", "AGENTJOBS_ADMIN_KEY", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    yield CommandLine(api, tmp_path / "home")
