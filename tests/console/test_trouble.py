"""When something breaks there is a page all the same, and it says nothing of what broke."""

import pytest

from agentjobs.ledger.overview import Overview
from tests.console.visitors import Console


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (RuntimeError("secret words"), 500, "This is a fault of ours"),
        (OSError("secret words"), 503, "The database does not answer."),
        (TimeoutError("secret words"), 503, "The database does not answer."),
    ],
    ids=str,
)
async def test_what_breaks_is_a_page(
    console: Console, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, told: str
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Overview, "by_state", broken)
    rita = await console.visitor("rita")

    page = await rita.see("", status)

    assert told in page.text
    assert "secret words" not in page.html
