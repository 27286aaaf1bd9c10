"""A person's word on a dead job: heard once, recorded with who gave it, and seen by the right tenant only."""

import asyncio
from collections import Counter

import pytest

from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.ledger.dead_letters import Action, NotOpen
from tests.ledger.scene import Scene


async def test_of_fifty_clicks_at_once_one_is_heard(scene: Scene) -> None:
    job_id = await scene.dead()

    answers = await asyncio.gather(*(_ask(scene, "redrive", job_id) for _ in range(50)), return_exceptions=True)

    assert answers.count(True) == 1
    assert Counter(str(answer) for answer in answers if answer is not True) == {
        "the letter is redrive_requested": 49
    }
    assert (await scene.topics()).count("redrive_job") == 1
    assert (await scene.events(job_id)).count("redrive_requested") == await scene.count("audit_log") == 1


async def test_of_a_redrive_and_a_discard_at_once_one_is_heard(scene: Scene) -> None:
    job_id = await scene.dead()

    answers = await asyncio.gather(
        *(_ask(scene, action, job_id) for action in ("redrive", "discard") * 10), return_exceptions=True
    )

    assert answers.count(True) == 1
    topics = await scene.topics()
    assert topics.count("redrive_job") + topics.count("discard_job") == 1


@pytest.mark.parametrize("action", ["redrive", "discard"])
async def test_a_word_is_recorded_with_who_gave_it_and_passed_on(scene: Scene, action: Action) -> None:
    job_id = await scene.dead()

    await scene.ledger.dead_letters.request(
        action, "acme", job_id, actor="rita", note="seen", payload={"policy": "current"}
    )

    letter = await scene.letter(job_id)
    assert (letter.state, letter.resolved_by, letter.note) == (f"{action}_requested", "rita", "seen")
    assert letter.resolved_at is None  # a word is not the deed
    assert (await scene.rows("SELECT topic, payload FROM outbox ORDER BY id"))[-1] == {
        "topic": f"{action}_job",
        "payload": {"policy": "current", "generation": 1},
    }
    assert await scene.rows("SELECT actor, action, target, note FROM audit_log") == [
        {"actor": "rita", "action": action, "target": job_id, "note": "seen"}
    ]


async def test_a_word_waits_until_it_is_carried_out(scene: Scene) -> None:
    job_id = await scene.dead()
    waits = scene.ledger.dead_letters.still_requested

    before = await waits(job_id, 1)
    await _ask(scene, "redrive", job_id)
    asked = await waits(job_id, 1), await waits(job_id, 2)
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")

    assert (before, asked, await waits(job_id, 1)) == (False, (True, False), False)


@pytest.mark.parametrize("action", ["redrive", "discard"])
async def test_a_letter_that_is_closed_takes_no_word(scene: Scene, action: Action) -> None:
    redriven, discarded = await scene.dead(), await scene.dead()
    await scene.ledger.outcomes.resume(redriven, generation=1, policy_version="1")
    await scene.ledger.outcomes.finish(discarded, JobState.DISCARDED)

    for job_id, state in ((redriven, "redriven"), (discarded, "discarded")):
        with pytest.raises(NotOpen) as refused:
            await _ask(scene, action, job_id)
        assert refused.value.state == state


async def test_another_tenants_letter_is_not_there(scene: Scene) -> None:
    job_id = await scene.dead()

    assert not await scene.ledger.dead_letters.request(
        "discard", "other", job_id, actor="mallory", note="", payload={}
    )
    assert await scene.ledger.dead_letters.read("other", job_id) is None
    assert await scene.ledger.dead_letters.page("other") == []
    assert (await scene.letter(job_id)).state == "open"


async def test_who_reads_the_request_of_a_letter_is_on_record(scene: Scene) -> None:
    job_id = await scene.dead(text="My printer is on fire")
    read = scene.ledger.dead_letters.read_input

    texts = await read("acme", job_id, actor="rita"), await read("other", job_id, actor="mallory")

    assert texts == ("My printer is on fire", None)
    assert await scene.rows("SELECT actor, action, target FROM audit_log") == [
        {"actor": "rita", "action": "read_dead_letter", "target": job_id}
    ]


async def test_a_job_that_never_died_has_no_letter(scene: Scene) -> None:
    job_id = await scene.running()

    assert not await _ask(scene, "redrive", job_id)


async def test_pages_go_latest_death_first_without_gap_or_repetition(scene: Scene) -> None:
    jobs = [await scene.dead() for _ in range(5)]
    await scene.execute("UPDATE dead_letters SET died_at = now()")  # the same moment for all: the id decides

    seen: list[str] = []
    before = None
    while page := await scene.ledger.dead_letters.page("acme", before=before, limit=2):
        seen += [letter.id for letter in page]
        before = (page[-1].died_at, page[-1].id)

    assert seen == sorted(jobs, reverse=True)


async def test_a_page_shows_what_waits_for_a_person_and_on_request_what_was_redriven(scene: Scene) -> None:
    waiting, redriven, discarded = [await scene.dead() for _ in range(3)]
    await scene.ledger.outcomes.resume(redriven, generation=1, policy_version="1")
    await scene.ledger.outcomes.finish(discarded, JobState.DISCARDED)
    page = scene.ledger.dead_letters.page

    assert [letter.id for letter in await page("acme")] == [waiting]
    assert {letter.id for letter in await page("acme", closed=True)} == {waiting, redriven}


async def test_a_page_can_be_narrowed_to_a_reason_and_an_agent(scene: Scene) -> None:
    bug, other = (await scene.accept(agent="a")).id, (await scene.accept(agent="b")).id
    await scene.bury(bug, reason=Category.BUG)
    await scene.bury(other, reason=Category.NOT_FOUND)
    page = scene.ledger.dead_letters.page

    assert [letter.id for letter in await page("acme", reason="bug")] == [bug]
    assert [letter.id for letter in await page("acme", agent="b")] == [other]
    assert await page("acme", reason="bug", agent="b") == []


async def test_somebody_is_told_of_each_death_once(scene: Scene) -> None:
    job_id = await scene.dead()
    letters = scene.ledger.dead_letters
    before = await letters.is_alerted(job_id, 1)

    await letters.mark_alerted(job_id, 1)
    first = (await scene.letter(job_id)).alerted_at
    await letters.mark_alerted(job_id, 1)

    assert (before, await letters.is_alerted(job_id, 1)) == (False, True)
    assert (await scene.letter(job_id)).alerted_at == first


async def test_an_old_deaths_alert_does_not_count_for_the_next(scene: Scene) -> None:
    job_id = await scene.dead()
    letters = scene.ledger.dead_letters
    await letters.mark_alerted(job_id, 1)
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    await scene.bury(job_id, generation=1)

    await letters.mark_alerted(job_id, 1)  # late

    assert (await letters.is_alerted(job_id, 1), await letters.is_alerted(job_id, 2)) == (True, False)


async def _ask(scene: Scene, action: Action, job_id: str) -> bool:
    return await scene.ledger.dead_letters.request(action, "acme", job_id, actor="rita", note="", payload={})
