"""What others wrote is text, wherever it stands."""

import pytest

from agentjobs.domain import keys
from agentjobs.domain.failures import Category, failure
from agentjobs.domain.states import JobState
from tests.console.visitors import Console, Page
from tests.ledger.scene import CREATE_TICKET, MODEL_CALL

EVIL = (
    "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'{{ 'ab' * 9 }}</textarea></title>"
    "<svg/onload=alert(3)>"
)
JAVASCRIPT = "javascript:alert(4)"


@pytest.fixture
async def letter(console: Console) -> str:
    """A job all of whose texts are hostile, succeeded once and dead before."""
    scene = console.scene
    job_id = (await scene.accept(text=EVIL)).id
    await scene.done(job_id, keys.PLAN, {"subject": EVIL, EVIL: EVIL, "list": [EVIL]}, **MODEL_CALL)
    await scene.done(job_id, CREATE_TICKET, {"id": EVIL, "url": JAVASCRIPT, "at": f"https://x.test/?{EVIL}"})
    died = failure(Category.INVALID_INPUT, EVIL, CREATE_TICKET)
    await scene.ledger.outcomes.bury(job_id, generation=0, failure=died, worker=EVIL)
    return job_id


async def test_a_letters_words_are_text(console: Console, letter: str) -> None:
    rita = await console.visitor("rita")

    pages = [await rita.see(path) for path in ("", "jobs", f"jobs/{letter}", "dead", f"dead/{letter}", "audit")]
    shown = await rita.see(f"dead/{letter}?show=request")

    assert "<script>alert(1)</script>" in shown.text
    for page in (*pages, shown):
        harmless(page)
    assert JAVASCRIPT in shown.text


async def test_an_answer_and_its_pieces_are_text(console: Console) -> None:
    job_id = await console.scene.running(text=EVIL)
    intent = console.scene.intent(job_id, keys.ANSWER, **MODEL_CALL)
    begun = await console.scene.ledger.effects.begin(intent)
    assert begun.attempt_id is not None
    await console.scene.ledger.effects.write_text(intent, begun.attempt_id, EVIL)
    rita = await console.visitor("rita")

    written = await rita.see(f"jobs/{job_id}")
    await console.scene.ledger.effects.complete(intent, begun.attempt_id, {"text": EVIL})
    await console.scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
    answered = await rita.see(f"jobs/{job_id}")

    for page in (written, answered):
        harmless(page)
        assert "{{ 'ab' * 9 }}" in page.text


async def test_notes_are_text(console: Console, letter: str) -> None:
    rita = await console.visitor("rita")

    answer = await rita.send(f"dead/{letter}/redrive", note=EVIL)
    pages = [await rita.see(path) for path in (f"dead/{letter}", "audit", "dead", "redrives")]

    assert answer.status_code == 303
    assert EVIL.split("{{")[0] in pages[0].text.replace(" {{", "{{")
    for page in pages:
        harmless(page)


@pytest.mark.parametrize(
    "path", ["jobs?state=", "jobs?agent=", "dead?reason=", "audit?actor=", "jobs?cursor=", "?notice="]
)
async def test_what_an_address_says_is_not_repeated(console: Console, path: str) -> None:
    rita = await console.visitor("rita")

    answer = await rita.client.get(f"/console/{path}{'%3Cscript%3Ealert(1)%3C/script%3E'}")

    assert answer.status_code in {200, 422}
    assert "alert(1)" not in answer.text


def harmless(page: Page) -> None:
    """Nothing of EVIL has become an element, an attribute or a link that runs."""
    assert page.tags.count("script") == 1
    assert "ab" * 9 not in page.text
    assert page.tags.count("title") == 1
    assert page.tags.count("img") == 1
    assert not [link for link in page.links if not link.startswith(("/console/", "https://", "http://", "#main"))]
