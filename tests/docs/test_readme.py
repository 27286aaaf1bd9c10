"""Commands that the documentation shows exist and parse; versions agree."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

import agentjobs
from starter import app
from tests.docs.pages import CHANGELOG, CHECKOUT, PAGES, README, commands, name_of

MAKEFILE = CHECKOUT / "Makefile"
STARTER = [(page, command) for page in PAGES for command in commands(page, "python starter.py")]


def test_the_readme_begins_with_the_two_commands() -> None:
    shown = re.findall(r"^make \w+$", README.read_text("utf-8"), re.MULTILINE)

    assert shown[:2] == ["make demo", "make test"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_is_shown_exists(page: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", MAKEFILE.read_text("utf-8"), re.MULTILINE)
    # As code, or as a line of a block: "what make made" is prose.
    shown = re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)

    assert [target for target in shown if target not in targets] == []


@pytest.mark.parametrize(
    ("page", "command"), STARTER, ids=lambda value: value if isinstance(value, str) else name_of(value)
)
def test_every_command_that_is_shown_parses(page: Path, command: str) -> None:
    words = shlex.split(command, comments=True)
    if words == ["..."]:
        return
    known = get_command(app)
    while hasattr(known, "commands") and words and not words[0].startswith("-"):
        assert words[0] in known.commands, f"there is no command {words[0]!r}"
        known, words = known.commands[words[0]], words[1:]

    if "--help" not in words:
        known.make_context("starter.py", words)  # parses, and runs nothing


def test_the_readme_shows_every_command() -> None:
    shown = {command.split()[0] for page, command in STARTER if page == README}
    known = set(get_command(app).commands)  # type: ignore[attr-defined]

    assert known - {"dev", "demo"} == shown  # those two are shown by make


def test_the_version_is_the_same_everywhere() -> None:
    latest = re.search(r"^## \[(\d+\.\d+\.\d+)\]", CHANGELOG.read_text("utf-8"), re.MULTILINE)
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]

    assert latest
    assert {latest[1], project["version"]} == {agentjobs.__version__}


def test_the_readme_names_everything_at_the_top() -> None:
    tree = README.read_text("utf-8").split("## The tree", 1)[1]
    packages = [path.parent.name for path in (CHECKOUT / "agentjobs").glob("*/__init__.py")]

    assert [name for name in [*packages, "workflows", "activities", "tests"] if f"{name}/`" not in tree] == []
