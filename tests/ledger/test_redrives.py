"""Bulk redrives in the ledger: the set is frozen, each letter is asked once, and a person's word holds at once."""

import asyncio
import contextlib
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from agentjobs.domain.bulk import Counts, RedriveState, StopReason
from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.ledger.dead_letters import NotOpen
from agentjobs.ledger.redrive_records import (
    LetterFilter,
    NoLetters,
    RedriveKeyReused,
    RedriveOrder,
    RedriveRecord,
    SamePerson,
    Word,
    WordRefused,
)
from tests.ledger.scene import CREATE_TICKET, Scene


def order(**changes: Any) -> RedriveOrder:
    wanted = LetterFilter.model_validate(changes.pop("filter", {}))
    return RedriveOrder.model_validate(
        {
            **{"id": str(uuid4()), "tenant": "acme", "created_by": "rita", "note": "it is back", "filter": wanted},
            **{"policy": "original", "again": False, "canary": 1, "share": 0.1, "rate_per_second": 1.0},
            **{"failure_limit": 0.2, "verdict_seconds": 600, "key": None, "fingerprint": "f"},
            **changes,
        }
    )


async def accept(scene: Scene, *, approval_above: int = 1_000, **changes: Any) -> RedriveRecord:
    return await scene.ledger.redrives.accept(order(**changes), approval_above=approval_above)


async def letters_of(scene: Scene, redrive: RedriveRecord) -> set[str]:
    rows = await scene.rows("SELECT job_id FROM redrive_items WHERE redrive_id = $1", redrive.id)
    return {row["job_id"] for row in rows}


async def read(scene: Scene, redrive: RedriveRecord) -> RedriveRecord:
    record = await scene.ledger.redrives.read("acme", redrive.id)
    assert record is not None
    return record


async def counts(scene: Scene, redrive: RedriveRecord) -> Counts:
    return (await scene.ledger.redrives.standing(await read(scene, redrive))).counts


async def say(scene: Scene, word: Word, redrive: RedriveRecord, actor: str = "rita") -> bool:
    return await scene.ledger.redrives.change(word, "acme", redrive.id, actor=actor, note="a word")


async def in_doubt(scene: Scene, effect_class: EffectClass) -> str:
    """A job that died with an effect of this class in doubt."""
    job_id = await scene.running()
    await scene.begin(job_id, CREATE_TICKET, effect_class=effect_class)
    await scene.bury(job_id, reason=Category.OUTCOME_UNKNOWN)
    return job_id


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["denied", "denied_2", "timeout"]),
        ({"reason": "access_denied"}, ["denied", "denied_2"]),
        ({"agent": "support-triage"}, ["denied", "timeout"]),
        ({"policy_version": "2"}, ["timeout"]),
        ({"died_before": "2026-01-02T00:00:00Z"}, ["denied"]),
        ({"died_after": "2026-01-02T00:00:00Z"}, ["denied_2", "timeout"]),
        ({"reason": "access_denied", "agent": "other"}, ["denied_2"]),
    ],
)
async def test_the_filter_takes_what_it_says(scene: Scene, wanted: dict[str, str], found: list[str]) -> None:
    await scene.dead(id="denied")
    await scene.dead(id="denied_2", agent="other")
    await scene.accept(id="timeout", policy_version="2")
    await scene.bury("timeout", reason=Category.TIMEOUT)
    await scene.execute("UPDATE dead_letters SET died_at = '2026-01-01' WHERE id = 'denied'")

    redrive = await accept(scene, filter=wanted)

    assert sorted(await letters_of(scene, redrive)) == found
    assert redrive.letters == len(found)


async def test_ids_take_only_letters_of_the_tenant_that_are_open(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("globex")
    dead, other = await scene.dead(), await scene.dead()
    foreign = await scene.dead(tenant="globex")
    live = (await scene.accept()).id
    await scene.ledger.dead_letters.request("discard", "acme", other, actor="rita", note="n", payload={})

    redrive = await accept(scene, filter={"ids": [dead, other, foreign, live, "unknown"]})

    assert await letters_of(scene, redrive) == {dead}


async def test_letters_that_come_later_are_not_taken(scene: Scene) -> None:
    first = await scene.dead()

    redrive = await accept(scene)
    await scene.dead()

    assert await letters_of(scene, redrive) == {first}


async def test_nothing_to_take_is_refused_and_leaves_nothing(scene: Scene) -> None:
    with pytest.raises(NoLetters):
        await accept(scene, filter={"reason": "bug"})

    assert (await scene.count("redrives"), await scene.count("audit_log")) == (0, 0)


@pytest.mark.parametrize(
    ("effect_class", "again", "taken"),
    [
        (EffectClass.UNSAFE, False, False),
        (EffectClass.UNSAFE, True, True),
        (EffectClass.RECONCILABLE, False, True),  # its destination will be asked
        (EffectClass.IDEMPOTENT, False, True),
    ],
)
async def test_what_would_die_again_of_its_doubt_is_left_out(
    scene: Scene, effect_class: EffectClass, again: bool, taken: bool
) -> None:
    clear, doubtful = await scene.dead(), await in_doubt(scene, effect_class)

    previewed = await scene.ledger.redrives.preview("acme", LetterFilter())
    redrive = await accept(scene, again=again)

    assert {letter.id: letter.unsafe for letter in previewed} == {
        clear: False,
        doubtful: effect_class is EffectClass.UNSAFE,
    }
    assert (doubtful in await letters_of(scene, redrive)) is taken


async def test_the_word_is_the_same_as_a_persons(scene: Scene) -> None:
    job_id = await scene.dead()
    redrive = await accept(scene, policy="current")

    await scene.ledger.redrives.ask(redrive.id, up_to=1)

    letter = await scene.letter(job_id)
    payload = {"policy": "current", "again": False, "redrive_id": redrive.id}
    audited = await scene.rows("SELECT actor, note, details FROM audit_log WHERE action = 'redrive'")
    queued = await scene.rows("SELECT payload FROM outbox WHERE topic = 'redrive_job'")
    assert (letter.state, letter.resolved_by, letter.note) == ("redrive_requested", "rita", "it is back")
    assert audited == [{"actor": "rita", "note": "it is back", "details": payload}]
    assert queued == [{"payload": {**payload, "generation": 1}}]
    assert (await scene.events(job_id))[-1] == "redrive_requested"


async def test_no_more_than_was_said_are_asked_however_often_and_by_however_many(scene: Scene) -> None:
    for _ in range(12):
        await scene.dead()
    redrive = await accept(scene)

    await asyncio.gather(*(scene.ledger.redrives.ask(redrive.id, up_to=7) for _ in range(4)))
    await scene.ledger.redrives.ask(redrive.id, up_to=7)

    asked = await scene.rows("SELECT job_id FROM job_events WHERE type = 'redrive_requested'")
    assert len(asked) == len({row["job_id"] for row in asked}) == 7
    assert await counts(scene, redrive) == Counts(waiting=5, asked=7)
    numbers = await scene.rows("SELECT asked_number FROM redrive_items WHERE state = 'asked' ORDER BY 1")
    assert [row["asked_number"] for row in numbers] == list(range(1, 8))


async def test_many_workers_ask_all_of_them_once(scene: Scene) -> None:
    for _ in range(20):
        await scene.dead()
    redrive = await accept(scene)

    await asyncio.gather(*(scene.ledger.redrives.ask(redrive.id, up_to=20) for _ in range(4)))

    assert await counts(scene, redrive) == Counts(asked=20)
    assert await scene.rows("SELECT count(*) FROM outbox WHERE topic = 'redrive_job'") == [{"count": 20}]


async def test_those_that_are_dead_for_longest_come_first(scene: Scene) -> None:
    jobs = [await scene.dead() for _ in range(3)]
    await scene.execute("UPDATE dead_letters SET died_at = now() - interval '1 day' WHERE id = $1", jobs[2])
    redrive = await accept(scene)

    await scene.ledger.redrives.ask(redrive.id, up_to=1)

    assert (await scene.letter(jobs[2])).state == "redrive_requested"


async def test_letters_that_are_no_longer_as_they_were_are_passed_over(scene: Scene) -> None:
    again, discarded, fresh = [await scene.dead() for _ in range(3)]
    redrive = await accept(scene)
    await scene.ledger.dead_letters.request("redrive", "acme", again, actor="ann", note="n", payload={})
    await scene.ledger.outcomes.resume(again, generation=1, policy_version="1")
    await scene.bury(again, generation=1)
    await scene.ledger.dead_letters.request("discard", "acme", discarded, actor="ann", note="n", payload={})

    await scene.ledger.redrives.ask(redrive.id, up_to=3)

    assert await counts(scene, redrive) == Counts(asked=1, skipped=2)
    assert await scene.ledger.redrives.skipped(redrive.id) == {"died_again_meanwhile": 1, "discard_requested": 1}
    assert (await scene.letter(again)).state == "open"
    assert (await scene.letter(fresh)).state == "redrive_requested"


async def test_a_person_who_is_quicker_is_heard_once(scene: Scene) -> None:
    jobs = [await scene.dead() for _ in range(6)]
    redrive = await accept(scene)

    async def click(job_id: str) -> None:
        with contextlib.suppress(NotOpen):
            await scene.ledger.dead_letters.request("redrive", "acme", job_id, actor="ann", note="n", payload={})

    await asyncio.gather(scene.ledger.redrives.ask(redrive.id, up_to=6), *(click(job_id) for job_id in jobs))

    became = await counts(scene, redrive)
    assert became.asked + became.skipped == 6
    assert await scene.rows("SELECT count(*) FROM outbox WHERE topic = 'redrive_job'") == [{"count": 6}]


@pytest.mark.parametrize("word", [Word.PAUSE, Word.CANCEL])
async def test_a_word_holds_at_once(scene: Scene, word: Word) -> None:
    for _ in range(3):
        await scene.dead()
    redrive = await accept(scene)
    await scene.ledger.redrives.ask(redrive.id, up_to=1)

    await say(scene, word, redrive)
    await scene.ledger.redrives.ask(redrive.id, up_to=3)

    assert await counts(scene, redrive) == Counts(waiting=2, asked=1)


async def test_a_word_waits_for_the_letter_in_hand_and_then_none_is_touched(scene: Scene) -> None:
    jobs = [await scene.dead() for _ in range(4)]
    redrive = await accept(scene)
    async with scene.held(jobs[1]):
        asking = asyncio.create_task(scene.ledger.redrives.ask(redrive.id, up_to=4))
        await scene.until_under_way([asking])
        await say(scene, Word.PAUSE, redrive)
    await asking

    assert await counts(scene, redrive) == Counts(waiting=3, asked=1)


async def test_a_failure_in_the_middle_leaves_the_letter_as_it_was(scene: Scene) -> None:
    job_id = await scene.dead()
    redrive = await accept(scene)
    await scene.execute("ALTER TABLE audit_log ADD CONSTRAINT full_disk CHECK (action <> 'redrive') NOT VALID")

    with pytest.raises(asyncpg.CheckViolationError):
        await scene.ledger.redrives.ask(redrive.id, up_to=1)
    await scene.execute("ALTER TABLE audit_log DROP CONSTRAINT full_disk")
    open_after = (await scene.letter(job_id)).state
    await scene.ledger.redrives.ask(redrive.id, up_to=1)

    assert open_after == "open"
    assert (await read(scene, redrive)).asked == 1
    assert (await scene.events(job_id)).count("redrive_requested") == 1


async def test_two_at_once_never_take_the_same_letter(scene: Scene) -> None:
    jobs = [await scene.dead() for _ in range(30)]
    halves: list[dict[str, Any]] = [{"ids": jobs[:20]}, {"ids": jobs[10:]}, {"reason": "access_denied"}, {}]

    made = await asyncio.gather(*(accept(scene, filter=half) for half in halves), return_exceptions=True)

    accepted = [redrive for redrive in made if isinstance(redrive, RedriveRecord)]
    taken = [letter for redrive in accepted for letter in await letters_of(scene, redrive)]
    assert len(taken) == len(set(taken)) == 30
    assert all(isinstance(one, RedriveRecord | NoLetters) for one in made)
    assert [redrive.letters for redrive in accepted] == [len(await letters_of(scene, one)) for one in accepted]


async def test_the_database_itself_refuses_a_letter_in_two_of_them(scene: Scene) -> None:
    await scene.dead(id="wanted")
    await accept(scene)
    await scene.dead()
    other = await accept(scene)

    with pytest.raises(asyncpg.UniqueViolationError, match="redrive_items_one_redrive_at_a_time"):
        await scene.execute(
            "INSERT INTO redrive_items (redrive_id, job_id, generation, place) VALUES ($1, 'wanted', 1, 9)",
            other.id,
        )


@pytest.mark.parametrize("ending", ["cancelled", "stopped", "completed"])
async def test_when_one_has_ended_its_letters_are_free(scene: Scene, ending: str) -> None:
    job_id = await scene.dead()
    first = await accept(scene)
    with pytest.raises(NoLetters):
        await accept(scene)

    match ending:
        case "cancelled":
            await say(scene, Word.CANCEL, first)
        case "stopped":
            await scene.ledger.redrives.end(first.id, RedriveState.STOPPED, StopReason.CANARY_FAILED)
        case _:
            await scene.ledger.redrives.end(first.id, RedriveState.COMPLETED, None)

    assert (await read(scene, first)).state == ending
    assert await letters_of(scene, await accept(scene)) == {job_id}


async def test_a_person_who_was_first_is_not_overruled_by_its_end(scene: Scene) -> None:
    await scene.dead()
    redrive = await accept(scene)
    await say(scene, Word.PAUSE, redrive)

    await scene.ledger.redrives.end(redrive.id, RedriveState.STOPPED, StopReason.CANARY_FAILED)

    assert (await read(scene, redrive)).state is RedriveState.PAUSED


async def test_counts_tell_what_became_of_each(scene: Scene) -> None:
    jobs = [await scene.dead() for _ in range(6)]
    redrive = await accept(scene, canary=2)
    await scene.ledger.redrives.ask(redrive.id, up_to=5)
    for job_id in jobs[:4]:
        await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    await scene.ledger.outcomes.finish(jobs[0], JobState.SUCCEEDED)
    await scene.bury(jobs[1], generation=1)
    await scene.ledger.outcomes.finish(jobs[2], JobState.CANCELLED)

    standing = await scene.ledger.redrives.standing(await read(scene, redrive))

    assert standing.counts == Counts(waiting=1, asked=2, recovered=1, died_again=1, cancelled=1)
    assert (standing.canary_failed, standing.lately_decided, standing.lately_failed) == (1, 3, 1)


async def test_after_its_time_a_job_counts_as_alive_or_as_not_taken(scene: Scene) -> None:
    alive, lost = await scene.dead(), await scene.dead()
    redrive = await accept(scene, canary=2)
    await scene.ledger.redrives.ask(redrive.id, up_to=2)
    await scene.ledger.outcomes.resume(alive, generation=1, policy_version="1")
    await scene.execute("UPDATE redrive_items SET asked_at = now() - interval '601 seconds'")

    standing = await scene.ledger.redrives.standing(await read(scene, redrive))

    assert standing.counts == Counts(no_verdict=1, not_taken=1)
    assert standing.canary_failed == 1
    assert (await scene.letter(lost)).state == "redrive_requested"


async def test_a_second_death_after_the_verdict_does_not_change_it(scene: Scene) -> None:
    job_id = await scene.dead()
    redrive = await accept(scene)
    await scene.ledger.redrives.ask(redrive.id, up_to=1)
    for generation in (1, 2):
        await scene.ledger.outcomes.resume(job_id, generation=generation, policy_version="1")
        await scene.bury(job_id, generation=generation)

    assert await counts(scene, redrive) == Counts(died_again=1)


@pytest.mark.parametrize(("count", "state"), [(2, RedriveState.RUNNING), (3, RedriveState.AWAITING_APPROVAL)])
async def test_many_letters_wait_for_a_second_person(scene: Scene, count: int, state: RedriveState) -> None:
    for _ in range(count):
        await scene.dead()

    redrive = await accept(scene, approval_above=2)
    await scene.ledger.redrives.ask(redrive.id, up_to=1)

    assert redrive.state is state
    assert (await scene.topics()).count("call_redrive") == (state is RedriveState.RUNNING)
    assert (await counts(scene, redrive)).waiting == (1 if state is RedriveState.RUNNING else 3)


async def test_who_ordered_it_cannot_approve_it_and_another_can(scene: Scene) -> None:
    await scene.dead()
    redrive = await accept(scene, approval_above=0)

    with pytest.raises(SamePerson):
        await say(scene, Word.APPROVE, redrive)
    refused = await read(scene, redrive)
    await say(scene, Word.APPROVE, redrive, actor="rolf")

    approved = await read(scene, redrive)
    audited = await scene.rows("SELECT actor, target, note FROM audit_log WHERE action = 'bulk_redrive_approve'")
    assert (refused.state, refused.approved_by) == (RedriveState.AWAITING_APPROVAL, None)
    assert (approved.state, approved.approved_by, approved.approval_note) == (
        RedriveState.RUNNING,
        "rolf",
        "a word",
    )
    assert audited == [{"actor": "rolf", "target": redrive.id, "note": "a word"}]
    assert (await scene.topics())[-1] == "call_redrive"


@pytest.mark.parametrize(
    ("before", "word"),
    [
        ([], Word.APPROVE),
        ([Word.CANCEL], Word.PAUSE),
        ([Word.CANCEL], Word.RESUME),
        ([Word.PAUSE], Word.APPROVE),
    ],
)
async def test_a_word_that_does_not_fit_is_refused(scene: Scene, before: list[Word], word: Word) -> None:
    await scene.dead()
    redrive = await accept(scene)
    for one in before:
        await say(scene, one, redrive)
    state = (await read(scene, redrive)).state

    with pytest.raises(WordRefused):
        await say(scene, word, redrive, actor="rolf")

    assert (await read(scene, redrive)).state is state


@pytest.mark.parametrize("word", [Word.PAUSE, Word.CANCEL])
async def test_a_word_that_is_repeated_is_on_record_once(scene: Scene, word: Word) -> None:
    await scene.dead()
    redrive = await accept(scene)

    answers = [await say(scene, word, redrive) for _ in range(2)]

    audited = await scene.rows("SELECT action FROM audit_log ORDER BY id")
    assert answers == [True, True]
    assert [row["action"] for row in audited] == ["bulk_redrive", f"bulk_redrive_{word}"]


async def test_another_tenants_is_unknown(scene: Scene) -> None:
    await scene.dead()
    redrive = await accept(scene)

    assert await scene.ledger.redrives.read("globex", redrive.id) is None
    assert not await scene.ledger.redrives.change(Word.CANCEL, "globex", redrive.id, actor="gus")
    assert (await read(scene, redrive)).state is RedriveState.RUNNING


async def test_one_key_makes_one(scene: Scene) -> None:
    for _ in range(2):
        await scene.dead()

    made = await asyncio.gather(*(accept(scene, key="k") for _ in range(5)))

    assert len({redrive.id for redrive in made}) == 1
    assert await scene.count("redrives") == 1
    with pytest.raises(RedriveKeyReused):
        await accept(scene, key="k", fingerprint="other")


async def test_one_at_which_nobody_looks_is_called_again_once(scene: Scene) -> None:
    await scene.dead()
    redrive = await accept(scene)
    await scene.execute("DELETE FROM outbox")

    called = [await scene.ledger.redrives.call_again(silent_seconds=0) for _ in range(2)]
    await scene.execute("DELETE FROM outbox")
    await scene.ledger.redrives.looked_at(redrive.id)
    not_yet = await scene.ledger.redrives.call_again(silent_seconds=60)

    assert (called, not_yet) == ([1, 0], 0)


async def test_the_relays_other_lanes_pass_calls_over(scene: Scene) -> None:
    await scene.dead()
    await accept(scene)

    async with scene.ledger.database.transaction() as connection:
        commands = await scene.ledger.outbox.claim_commands(connection, 32)
        starts = await scene.ledger.outbox.claim_starts(connection, 32)
        calls = await scene.ledger.redrives.claim_calls(connection, 32)

    assert "call_redrive" not in {row.topic for row in [*commands, *starts]}
    assert [call.tenant for call in calls] == ["acme"]
