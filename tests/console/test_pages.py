"""What the pages show."""

import pytest
from structlog.testing import capture_logs

from agentjobs.domain.states import JobState
from tests.api.front import UI
from tests.console.scenery import ANSWER, MODEL, RECEIPT, TICKET, Scenery
from tests.console.visitors import Console, Visitor


@pytest.fixture
def scenery(console: Console) -> Scenery:
    return Scenery(console.scene)


@pytest.fixture
async def rita(console: Console) -> Visitor:
    return await console.visitor("rita")


async def test_empty_pages_have_a_sentence(rita: Visitor) -> None:
    told = {path: (await rita.see(path)).text for path in ("", "jobs", "dead", "redrives", "usage", "dead/report")}

    assert "There is no job yet." in told[""]
    assert "Nothing waits." in told[""]
    assert "There is no job yet." in told["jobs"]
    assert "Nothing is dead." in told["dead"]
    assert "There was no bulk redrive yet." in told["redrives"]
    assert "No model was asked this month." in told["usage"]
    assert "Nothing died and nothing was decided" in told["dead/report"]


async def test_a_filter_that_finds_nothing_says_so(rita: Visitor) -> None:
    told = [await rita.see(path) for path in ("jobs?state=dead", "dead?reason=bug", "audit?actor=nobody")]

    assert [page.text.count("Show all.") for page in told] == [1, 1, 1]


async def test_the_overview_counts_jobs_by_state(console: Console, rita: Visitor) -> None:
    for state in (JobState.RUNNING, JobState.RUNNING, JobState.RETRY_WAIT, JobState.CANCELLED):
        await console.scene.move((await console.scene.accept()).id, state)
    await console.scene.dead()

    text = (await rita.see("")).text

    counted = {"0 ○ pending", "2 ▶ running", "1 ↻ retry wait", "0 ✓ succeeded", "1 ✕ dead", "1 \u2013 cancelled"}
    assert [count for count in counted if count not in text] == []
    assert "1 open" in text


async def test_counting_stops_where_nobody_counts_any_more(
    console: Console, rita: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentjobs.ledger.overview.COUNTED_AT_MOST", 2)
    for _ in range(3):
        await console.scene.accept()

    text = (await rita.see("")).text

    assert "2+" in text.replace(" ", "")


async def test_a_job_tells_how_it_got_there(scenery: Scenery, rita: Visitor) -> None:
    job_id = await scenery.succeeded()

    page = await rita.see(f"jobs/{job_id}")

    order = ["Accepted", "plan", "step-1.search_tickets", TICKET, "unavailable", f"{TICKET} attempt 2", "answer ✓"]
    timeline = page.text[page.text.index("Timeline") :]
    places = [timeline.casefold().index(word.casefold()) for word in order]
    assert places == sorted(places)
    assert "next after 4.0 s" in timeline
    assert "1 460 + 188 tokens" in timeline
    assert timeline.count(MODEL) == 2
    assert "$0.001136 of $0.50" in page.text
    assert " ".join(ANSWER.split()) in page.text
    assert RECEIPT["url"] in page.links
    assert f"{UI}/namespaces/default/workflows/agent-job-{job_id}" in page.links
    assert page.actions == ["/console/sign-out"]


async def test_a_waiting_job_says_for_what_and_until_when(scenery: Scenery, rita: Visitor) -> None:
    job_id = await scenery.waiting()

    page, overview = await rita.see(f"jobs/{job_id}"), await rita.see("")

    told = "Attempt 2 of step-2.create_ticket failed: unavailable , the tracker answered 503"
    assert told in page.text
    assert "The next one begins in" in page.text
    assert "1 for unavailable" in overview.text


async def test_an_answer_shows_while_it_is_written(scenery: Scenery, rita: Visitor) -> None:
    job_id = await scenery.writing()

    page = await rita.see(f"jobs/{job_id}")

    assert "Answer, as it is written" in page.text
    assert ANSWER[:60] in page.text
    assert f'data-stream="/console/jobs/{job_id}/stream"' in page.html


async def test_a_call_that_waits_for_a_person_shows_what_would_be_done(scenery: Scenery, rita: Visitor) -> None:
    job_id = await scenery.asked()

    page, overview = await rita.see(f"jobs/{job_id}"), await rita.see("")

    assert "subject Charged twice in May" in page.text
    assert f"/console/jobs/{job_id}/approvals/{TICKET}" in page.actions
    assert "wants to create ticket" in overview.text


async def test_the_request_of_a_letter_shows_only_when_it_is_asked_for(console: Console, rita: Visitor) -> None:
    letter = await console.scene.dead(text="My own secret words")

    closed = await rita.see(f"dead/{letter}")
    before = await console.ledger.audit.page("acme")
    opened = await rita.see(f"dead/{letter}?show=request")
    after = await console.ledger.audit.page("acme")

    assert "secret words" not in closed.html
    assert "My own secret words" in opened.text
    assert before == []
    assert [(entry.actor, entry.action, entry.target) for entry in after] == [("rita", "read_dead_letter", letter)]


async def test_a_page_that_was_asked_to_show_a_request_does_not_ask_again(console: Console, rita: Visitor) -> None:
    letter = await console.scene.dead()

    opened = await rita.see(f"dead/{letter}?show=request")

    assert 'id="pulse"' not in opened.html


async def test_the_report_draws_what_came_and_went(console: Console, rita: Visitor) -> None:
    await Scenery(console.scene, most=2).dead()

    page = await rita.see("dead/report?window=720")

    assert "died 8" in page.text
    assert page.html.count('class="died"') == 30 + 1
    assert "access denied 2" in page.text
    assert "/console/dead?reason=access_denied" in page.links


async def test_usage_is_told_by_agent_and_model(console: Console, scenery: Scenery, rita: Visitor) -> None:
    await console.ledger.budgets.set("acme", tokens=100_000, usd=None, actor="adam")
    await scenery.succeeded()

    page = await rita.see("usage")

    assert "2 556 of 100 000" in page.text
    assert f"support-triage {MODEL} 1 2 2 272 284 $0.001136" in page.text


async def test_a_long_list_goes_on_on_the_next_page(console: Console, rita: Visitor) -> None:
    job_ids = [(await console.scene.accept()).id for _ in range(51)]

    first = await rita.see("jobs?state=pending")
    older = next(link for link in first.links if "cursor=" in link)
    second = await rita.see(older.removeprefix("/console/"))

    shown = [[job_id for job_id in job_ids if f'title="{job_id}"' in page.html] for page in (first, second)]
    assert [len(ids) for ids in shown] == [50, 1]
    assert "state=pending" in older


async def test_a_refused_cursor_is_a_page(rita: Visitor) -> None:
    page = await rita.see("jobs?cursor=nonsense", status=422)

    assert "unchanged" in page.text


async def test_every_page_with_something_on_it_is_small_and_clean(console: Console, rita: Visitor) -> None:
    shown = await Scenery(console.scene, most=1).put_up()

    paths = ["", "jobs", "dead", "redrives", "usage", "audit", "dead/report", f"redrives/{shown['redrive']}"]
    pages = [
        await rita.see(path) for path in [*paths, *(f"jobs/{shown[name]}" for name in ("retry_wait", "running"))]
    ]

    assert [page.status for page in pages] == [200] * 10
    assert not [page for page in pages if "None" in page.text or "Undefined" in page.text]


async def test_a_page_is_told_with_its_whole_route(rita: Visitor) -> None:
    with capture_logs() as events:
        await rita.see("jobs")

    assert [event["route"] for event in events if event["event"] == "request"] == ["/console/jobs"]
