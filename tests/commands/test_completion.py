"""Completion in a shell, for the program as an installed console script has it: named `agentjobs`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_bash_completes_commands_options_and_states(environment: dict[str, str]) -> None:
    lines = [
        "source <(agentjobs --show-completion bash)",
        'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _agentjobs_completion agentjobs; echo "$COMPREPLY"; }',
        "try agentjobs redrives sta",
        "try agentjobs list --sta",
        "try agentjobs list --state retr",
    ]  # fmt: skip

    shown = said("bash", "-c", "\n".join(lines), environment=environment)

    assert shown.splitlines() == ["start", "--state", "retry_wait"]


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
