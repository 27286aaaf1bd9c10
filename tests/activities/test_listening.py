"""What a provider tells while it answers: shown piece by piece under its attempt, and never after it."""

from typing import Any

import pytest

from activities.listening import AT_ONCE_CHARACTERS, TEXT_LIMIT, AttemptListener
from agentjobs.domain import keys
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.providers.model import Brief, Listener
from tests.activities.asked import PlayedProvider, ask_for_answer
from tests.activities.stage import SECOND, Stage, failed
from tests.ledger.scene import MODEL_CALL, Scene
from tests.world import eventually


async def listening(scene: Scene) -> tuple[str, int, AttemptListener]:
    """A job with an attempt to answer, and its listener."""
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id, keys.ANSWER, **MODEL_CALL)
    intent = scene.intent(job.id, keys.ANSWER, **MODEL_CALL)
    return job.id, attempt_id, AttemptListener(scene.ledger.effects, intent, attempt_id, "m1")


async def pieces(scene: Scene, job_id: str) -> list[dict[str, Any]]:
    """The data of the job's text events, in order."""
    return [event.data for event in await scene.ledger.jobs.events(job_id) if event.type == "text"]


async def text(scene: Scene, job_id: str) -> str:
    """All that was shown."""
    return "".join([piece["text"] for piece in await pieces(scene, job_id)])


async def test_text_is_shown_whole_and_under_its_attempt(scene: Scene) -> None:
    job_id, attempt_id, listener = await listening(scene)

    for piece in ("Thank", " you", ", Grüße 🙂"):
        await listener.wrote(piece)
    await listener.flush()

    assert await pieces(scene, job_id) == [
        {"step": keys.ANSWER, "attempt": 1, "attempt_id": attempt_id, "text": "Thank you, Grüße 🙂"}
    ]


async def test_a_fast_writer_costs_few_statements(scene: Scene) -> None:
    job_id, _, listener = await listening(scene)

    for number in range(2_000):
        await listener.wrote(f"{number:04} ")
    await listener.flush()

    shown = await pieces(scene, job_id)
    assert "".join(piece["text"] for piece in shown) == "".join(f"{number:04} " for number in range(2_000))
    assert 3 <= len(shown) <= 12  # 10,000 characters, 4,000 at most in one
    assert max(len(piece["text"]) for piece in shown) < AT_ONCE_CHARACTERS + 5


async def test_a_slow_writer_is_shown_before_the_answer_is_whole(scene: Scene) -> None:
    job_id, _, listener = await listening(scene)
    await listener.wrote("Thank")

    async def shown() -> str:
        await listener.wrote(".")
        return await text(scene, job_id)

    assert (await eventually(shown, "the first piece")).startswith("Thank.")


async def test_nothing_is_written_down_where_nothing_was_said(scene: Scene) -> None:
    job_id, _, listener = await listening(scene)
    before = (await scene.job(job_id)), await scene.events(job_id)

    await listener.wrote("")
    await listener.flush()

    assert ((await scene.job(job_id)), await scene.events(job_id)) == before


@pytest.mark.parametrize("size", [1, 997, TEXT_LIMIT * 2])
async def test_of_an_endless_answer_the_beginning_is_shown(scene: Scene, size: int) -> None:
    job_id, _, listener = await listening(scene)

    for _ in range(TEXT_LIMIT // size + 2):
        await listener.wrote("x" * size)
    await listener.flush()
    await listener.wrote("more")
    await listener.flush()

    assert await text(scene, job_id) == "x" * TEXT_LIMIT


@pytest.mark.parametrize("ends", ["crashed", "failed", "abandoned", "completed", "over"])
async def test_after_its_attempt_nothing_more_is_shown(scene: Scene, ends: str) -> None:
    job_id, attempt_id, listener = await listening(scene)
    await listener.wrote("in time")
    await listener.flush()
    await _end(scene, job_id, attempt_id, ends)
    events = await scene.events(job_id)

    await listener.wrote("too late")
    await listener.flush()

    assert await text(scene, job_id) == "in time"
    assert await scene.events(job_id) == events


async def test_events_stay_without_gaps(scene: Scene) -> None:
    job_id, _, listener = await listening(scene)
    for _ in range(5):
        await listener.wrote("x" * AT_ONCE_CHARACTERS)

    events = await scene.ledger.jobs.events(job_id)

    assert [event.seq for event in events] == list(range(1, 8))


async def test_the_text_of_a_failed_attempt_is_told_apart_from_the_next_ones(stage: Stage) -> None:
    job = await stage.scene.accept()

    async def breaks_off(_: Brief, listener: Listener) -> None:
        await listener.wrote("x" * AT_ONCE_CHARACTERS)
        raise RetryableError(Category.UNAVAILABLE, "away")

    async def writes(_: Brief, listener: Listener) -> None:
        await listener.wrote("Thank you.")

    await failed(ask_for_answer(stage, job.id, PlayedProvider(breaks_off)))
    await ask_for_answer(stage, job.id, PlayedProvider(writes), attempt=SECOND)

    first, second = await stage.scene.ledger.jobs.attempts(job.id)
    shown = await pieces(stage.scene, job.id)
    assert [(piece["attempt_id"], piece["attempt"]) for piece in shown] == [(first.id, 1), (second.id, 2)]
    assert (first.outcome, second.outcome, shown[1]["text"]) == ("failed", "succeeded", "Thank you.")


async def test_what_was_said_last_is_shown_before_the_step_is_completed(stage: Stage) -> None:
    job = await stage.scene.accept()

    async def writes(_: Brief, listener: Listener) -> None:
        await listener.wrote("Thank you.")

    await ask_for_answer(stage, job.id, PlayedProvider(writes))

    assert (await stage.scene.events(job.id))[-2:] == ["text", "step_completed"]


async def test_where_the_answer_is_written_is_durable_before_anybody_waits(stage: Stage) -> None:
    job = await stage.scene.accept()
    durable: list[dict[str, Any]] = []

    async def accepted(_: Brief, listener: Listener) -> None:
        await listener.accepted("resp-1")
        durable.extend(await stage.scene.rows("SELECT response_id, response_model FROM effects"))

    await ask_for_answer(stage, job.id, PlayedProvider(accepted, "m1"))

    assert durable == [{"response_id": "resp-1", "response_model": "m1"}]


async def test_a_later_attempt_fetches_the_answer_from_the_model_that_writes_it(stage: Stage) -> None:
    job = await stage.scene.accept()

    async def breaks_off(_: Brief, listener: Listener) -> None:
        await listener.accepted("resp-1")
        raise RetryableError(Category.UNAVAILABLE, "away")

    first, second = PlayedProvider(name="m2"), PlayedProvider(breaks_off, "m1")
    await failed(ask_for_answer(stage, job.id, second, first))

    await ask_for_answer(stage, job.id, first, PlayedProvider(name="m1"), attempt=SECOND)

    assert first.briefs == []  # although it stands first in the meantime


async def test_another_model_is_not_told_of_an_answer_that_is_not_its_own(stage: Stage) -> None:
    job = await stage.scene.accept()

    async def breaks_off(_: Brief, listener: Listener) -> None:
        await listener.accepted("resp-1")
        raise RetryableError(Category.UNAVAILABLE, "away")

    other, same = PlayedProvider(name="m2"), PlayedProvider(breaks_off, "m1")
    await failed(ask_for_answer(stage, job.id, same))
    await failed(ask_for_answer(stage, job.id, same, attempt=SECOND))
    await ask_for_answer(stage, job.id, other, attempt=SECOND)

    assert [brief.response_id for brief in same.briefs] == [None, "resp-1"]
    assert [brief.response_id for brief in other.briefs] == [None]


async def test_an_attempt_that_was_taken_over_does_not_wait_for_its_answer(stage: Stage) -> None:
    job = await stage.scene.accept()

    async def overtaken(_: Brief, listener: Listener) -> None:
        await stage.scene.execute("UPDATE attempts SET outcome = 'crashed', finished_at = now()")
        await listener.accepted("resp-1")
        raise AssertionError("it is not accepted, so nobody gets here")

    error = await failed(ask_for_answer(stage, job.id, PlayedProvider(overtaken)))

    assert (error.type, error.non_retryable) == ("unavailable", False)
    assert await stage.scene.rows("SELECT response_id FROM effects") == [{"response_id": None}]


async def _end(scene: Scene, job_id: str, attempt_id: int, ends: str) -> None:
    match ends:
        case "crashed":
            await scene.begin(job_id, keys.ANSWER, attempt=2, **MODEL_CALL)
        case "failed":
            await scene.fail(attempt_id, release=False)
        case "abandoned":
            await scene.ledger.effects.abandon_attempt(attempt_id)
        case "completed":
            await scene.ledger.effects.complete(scene.intent(job_id, keys.ANSWER, **MODEL_CALL), attempt_id, {})
        case "over":
            await scene.ledger.outcomes.finish(job_id, JobState.CANCELLED)
        case _:
            raise AssertionError(ends)


async def test_a_database_that_is_away_costs_no_answer(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await stage.scene.accept()
    attempt_id = await stage.scene.begin_attempt(job.id)
    effects = stage.scene.ledger.effects
    listener = AttemptListener(effects, stage.scene.intent(job.id), attempt_id, "m")

    async def away(*_: object) -> None:
        raise ConnectionResetError

    with monkeypatch.context() as broken:
        broken.setattr(type(effects), "write_text", away)
        await listener.wrote("Dear ")
        await listener.flush()
    await listener.wrote("Ann")
    await listener.flush()

    texts = [event.data["text"] for event in await stage.scene.ledger.jobs.events(job.id) if event.type == "text"]
    assert texts == ["Dear Ann"]
