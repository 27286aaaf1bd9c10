"""Tests in several processes: the longest begin first, and no port is given twice."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentjobs.stack import ports
from tests.ports import free_port
from tests.spreading import longest_first

CHECKOUT = Path(__file__).parents[1]
TAKE_A_PORT = "import sys; from tests.ports import free_port; print(free_port(), flush=True); sys.stdin.read()"


class Item(pytest.Item):
    """A test that uses these fixtures and has these marks."""

    def having(self, *fixtures: str, mark: str = "") -> "Item":
        self.fixturenames = fixtures
        if mark:
            self.add_marker(mark)
        return self

    def runtest(self) -> None:
        raise AssertionError


def test_the_longest_begin_first_and_the_rest_keeps_its_order(request: pytest.FixtureRequest) -> None:
    def item(name: str) -> Item:
        return Item.from_parent(request.session, name=name)

    items: list[pytest.Item] = [
        item("first").having("tmp_path"),
        item("second").having(),
        item("waits").having("skipping_world", "monkeypatch"),
        item("stack").having("shared", mark="e2e"),
        item("third").having(),
        item("kills").having("rig", mark="chaos_short"),
    ]

    longest_first(items)

    assert [item.name for item in items] == ["stack", "kills", "waits", "first", "second", "third"]


def test_a_port_that_another_process_was_given_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TAKE_A_PORT], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        taken = int(other.stdout.readline())
        free = ports.free_port()
        found = iter([taken, taken, free])
        monkeypatch.setattr(ports, "free_port", lambda: next(found))
        given = free_port()
        other.communicate("")

    assert given == free
