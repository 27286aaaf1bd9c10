"""The pages of the documentation, and what can be picked out of them."""

import re
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
README = CHECKOUT / "README.md"
CHANGELOG = CHECKOUT / "CHANGELOG.md"
PAGES = (README, CHANGELOG, CHECKOUT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))


def name_of(page: Path) -> str:
    """How a page is called in a test's id."""
    return page.relative_to(CHECKOUT).as_posix()


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next one of any level."""
    found = re.search(
        rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found, f"{name_of(page)} has no heading {heading!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of every table row whose first cell is code, without the backticks of that one."""
    found = re.findall(r"^\| `([^`]+)` \|(.*)\|$", text, re.MULTILINE)
    return [[first, *(cell.strip() for cell in rest.split(" | "))] for first, rest in found]


def marked_block(page: Path, mark: str) -> str:
    """The fenced block under the comment with this mark."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w+\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert found, f"{name_of(page)} has no block marked {mark!r}"
    return found[1]


def commands(page: Path, program: str) -> list[str]:
    """What stands after the program's name, in fenced blocks and in code within a line."""
    text = page.read_text("utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    inline = [" ".join(code.split()) for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    called = [re.match(rf"{re.escape(program)} (.+)", code.strip()) for code in [*lines, *inline]]
    return [found[1] for found in called if found]


def files() -> list[Path]:
    """Every file of the repository, also those not added yet."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (CHECKOUT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]
