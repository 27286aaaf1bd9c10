"""Completion in a shell, for the program as an installed console script has it: named `agentjobs`."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import starter

CHECKOUT = Path(__file__).parents[2]
SCRIPT = f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(CHECKOUT)!r})\nfrom starter import app\napp()\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With the program on the path."""
    program = tmp_path / "agentjobs"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def said(*words: str, environment: dict[str, str]) -> str:
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def test_bash_completes_commands_options_states_and_reasons(environment: dict[str, str]) -> None:
    lines = [
        "source <(agentjobs --show-completion bash)",
        'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _agentjobs_completion agentjobs; echo "$COMPREPLY"; }',
        "try agentjobs redrives sta",
        "try agentjobs list --sta",
        "try agentjobs list --state retr",
        "try agentjobs dead list --reason outc",
        "try agentjobs redrives start --reason unav",
    ]  # fmt: skip

    shown = said("bash", "-c", "\n".join(lines), environment=environment)

    assert shown.splitlines() == ["start", "--state", "retry_wait", "outcome_unknown", "unavailable"]


@pytest.mark.parametrize(
    ("shell", "more"), [("zsh", {}), ("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"})], ids=["zsh", "fish"]
)
def test_the_other_shells_are_answered_in_their_form(
    environment: dict[str, str], shell: str, more: dict[str, str]
) -> None:
    asked = {"_AGENTJOBS_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "agentjobs que"}

    answer = said("agentjobs", environment=environment | asked | more)

    assert "queues" in answer
    assert "quota" not in answer


def test_the_project_installs_the_command_line_under_its_name() -> None:
    scripts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]

    loaded = {name: EntryPoint(name, value, "console_scripts").load() for name, value in scripts.items()}

    assert loaded == {"agentjobs": starter.app}
