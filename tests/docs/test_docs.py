"""Pages say what the code says."""

import re
import tomllib
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic.fields import FieldInfo

from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import MESSAGE_LIMIT, RETRYABLE, Category
from agentjobs.domain.waits import ATTEMPT_LIMITS
from agentjobs.failpoints import NAMES
from agentjobs.settings import ClientSettings, Settings
from agentjobs.temporal import SEARCH_ATTRIBUTES
from agentjobs.tools.tool import Tool, ToolRegistry
from tests.docs.pages import CHECKOUT, DOCS, PAGES, files, marked_block, name_of, rows, section
from tests.e2e.conftest import run
from workflows import options

BOUNDARIES = DOCS / "failure-boundaries.md"
FAILURES = DOCS / "failures.md"
OPERATIONS = DOCS / "operations.md"

WORDS = (
    "job", "run", "step", "attempt", "effect", "effect class", "in doubt", "idempotency key", "step key", "ledger",
    "outbox", "relay", "retryable", "permanent", "dead letter", "desk", "redrive", "discard", "compensate",
    "principal", "tenant", "user", "grant", "generation", "receipt", "boundary",
)  # fmt: skip


def test_every_failpoint_has_its_row_and_no_other() -> None:
    named = [row[0] for row in rows(section(BOUNDARIES, "Failpoints"))]

    assert sorted(named) == sorted(NAMES)


def test_every_category_has_its_row_and_says_whether_it_is_retried() -> None:
    told = {row[0]: row[1] for row in rows(section(FAILURES, "Categories"))}

    assert told == {category.value: "yes" if category in RETRYABLE else "no" for category in Category}


def test_the_length_of_a_message_is_the_one_of_the_code() -> None:
    assert f"at most {MESSAGE_LIMIT} characters" in FAILURES.read_text("utf-8")


@pytest.mark.parametrize(
    ("kind", "option_set", "attempts"),
    [
        ("model call", options.MODEL_CALL, str(ATTEMPT_LIMITS[EffectKind.MODEL])),
        ("tool call", options.TOOL_CALL, str(ATTEMPT_LIMITS[EffectKind.TOOL])),
        ("undo", options.UNDO, str(ATTEMPT_LIMITS[EffectKind.UNDO])),
        ("record", options.RECORD, "unlimited"),
    ],
)
def test_the_limits_of_a_kind_are_those_of_the_code(kind: str, option_set: options.Options, attempts: str) -> None:
    row = re.search(rf"^\| {kind} \| (.*) \|$", section(FAILURES, "Limits"), re.MULTILINE)

    assert row
    assert row[1].split(" | ") == [
        _told(option_set["start_to_close_timeout"]),
        _told(option_set.get("schedule_to_close_timeout"), "what remains of the job's deadline"),
        _told(option_set.get("heartbeat_timeout"), "none"),
        attempts,
    ]
    assert option_set["retry_policy"].maximum_attempts == 0  # counted by the ledger


def _told(duration: timedelta | None, otherwise: str = "") -> str:
    if duration is None:
        return otherwise
    if duration < timedelta(days=1):
        return f"{duration.total_seconds():.0f} s"
    return f"{duration.days} day" + ("s" if duration.days > 1 else "")


def test_every_setting_has_its_row_and_no_other() -> None:
    told = [row[0] for row in rows(section(OPERATIONS, "Settings"))]
    fields = Settings.model_fields | ClientSettings.model_fields

    assert sorted(told) == sorted([*(_variable(name, field) for name, field in fields.items()), "AGENTJOBS_HOME"])


def test_every_default_is_the_one_of_the_code() -> None:
    told = {row[0]: row[1].strip("`") for row in rows(section(OPERATIONS, "Settings"))}

    for name, field in Settings.model_fields.items():
        default = "required" if field.is_required() else str(field.default)
        expected = {"None": "none", "": "empty"}.get(default, default)
        assert told[_variable(name, field)] == expected, name


def _variable(name: str, field: FieldInfo) -> str:
    # A setting that belongs to Temporal's own has the name that it has there.
    return str(field.validation_alias or f"AGENTJOBS_{name.upper()}")


def test_every_search_attribute_is_named() -> None:
    text = section(OPERATIONS, "Temporal")

    assert [
        key.name for key in SEARCH_ATTRIBUTES if f"`{key.name}`" not in text or f" {key.name}" not in text
    ] == []


def test_the_layers_are_those_that_are_enforced() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    enforced = next(c["layers"] for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")

    drawn = [line.split("  ", 1)[0] for line in marked_block(DOCS / "architecture.md", "layers").splitlines()]

    assert drawn == enforced


def test_every_statement_that_the_architecture_names_exists() -> None:
    named = re.findall(r"`([a-z]+(?:_[a-z]+)+)`", section(DOCS / "architecture.md", "The way of the data"))
    sql = "\n".join(path.read_text("utf-8") for path in (CHECKOUT / "agentjobs/ledger/queries").glob("*.sql"))
    known = set(re.findall(r"^-- name: (\w+)", sql, re.MULTILINE))

    assert len(named) > 10
    assert [name for name in named if name not in known] == []


def test_the_glossary_has_the_words_of_the_design_in_order() -> None:
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)

    assert [word for word in WORDS if word not in words] == []
    assert words == sorted(set(words))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    for path, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text("utf-8")):
        assert re.search(rf"^(?:async )?def {test}\(", (CHECKOUT / path).read_text("utf-8"), re.MULTILINE), test


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in _anchors(target), link


def _anchors(page: Path) -> list[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`((?:agentjobs|activities|workflows|tests|docs)/[\w/.-]+)`", page.read_text("utf-8"))

    assert [path for path in named if "NNNN" not in path and not (CHECKOUT / path).exists()] == []


def test_decisions_are_numbered_without_a_gap() -> None:
    pages = sorted((DOCS / "adr").glob("*.md"))

    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for number, page in enumerate(pages, start=1):
        text = page.read_text("utf-8")
        assert text.startswith(f"# {number}. ")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequences",
            "What would change our mind",
        ]


@pytest.mark.parametrize("effect_class", EffectClass)
def test_the_tool_shown_for_a_class_is_taken_by_the_registry(effect_class: EffectClass) -> None:
    shown = marked_block(DOCS / "tools.md", f"tool: {effect_class.value}")

    tool = _tool_of(shown)

    assert len(shown.strip().splitlines()) < 30
    assert tool.effect_class is effect_class
    assert ToolRegistry((tool,)).get(tool.name) is tool


def test_the_registry_refuses_a_tool_without_a_class() -> None:
    shown = marked_block(DOCS / "tools.md", "tool: read_only")
    tool = _tool_of(shown.replace("EffectClass.READ_ONLY", "None"))

    with pytest.raises(TypeError, match="effect class"):
        ToolRegistry((tool,))


def _tool_of(shown: str) -> Tool[Any]:
    module = ModuleType("shown")
    exec(marked_block(DOCS / "tools.md", "tool: imports"), module.__dict__)
    exec(shown, module.__dict__)
    name = re.findall(r"^class (\w+)", shown, re.MULTILINE)[-1]
    tool: Tool[Any] = getattr(module, name)(None)
    return tool


async def test_the_first_key_is_made_as_shown(database_url: str) -> None:
    shown = r"^python (-m agentjobs\.ledger first-key \S+ \S+)$"
    words = re.search(shown, OPERATIONS.read_text("utf-8"), re.MULTILINE)
    assert words is not None

    first = await run(*words[1].split(), environment={"AGENTJOBS_DATABASE_URL": database_url})
    second = await run(*words[1].split(), environment={"AGENTJOBS_DATABASE_URL": database_url})

    assert (first.code, first.out.startswith("ajk_")) == (0, True)
    assert (second.code, second.out) == (1, "")
    assert "keys already" in second.err


# Put together here, so that this file does not match itself.
_REGISTRIES = (
    "py" + "pi.org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "proxy.golang" + ".org",
    "crates" + ".io",
)
_PLACES = tuple("/" + root + "/" for root in ("work", "root", "home"))
_MACHINE = re.compile(rf"(?<![\w.:/-])(?:{'|'.join(_PLACES)})[A-Za-z]|" + "|".join(map(re.escape, _REGISTRIES)))


def test_no_file_names_a_registry_or_a_place_of_one_machine() -> None:
    naming = {}
    for path in files():
        text = path.read_bytes().decode("utf-8", "replace")
        if found := _MACHINE.findall(text):
            naming[path.relative_to(CHECKOUT).as_posix()] = found[:3]

    assert naming == {}
