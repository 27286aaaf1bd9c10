"""What people wrote, through the whole stack, with a real model that is often wrong: the record stays true."""

from collections import Counter

import pytest

from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectKind
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from tests.model.conftest import Played
from tests.model.play import OnRecord

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1200)]

# What a weak model may make a job die of. Anything else would be a fault of ours.
_FAULTS_OF_THE_MODEL = {
    Category.BAD_OUTPUT,
    Category.BUDGET_EXCEEDED,
    Category.UNKNOWN_TOOL,
    Category.RETRIES_EXHAUSTED,
    Category.PAYLOAD_TOO_LARGE,  # what it wrote in earlier steps no longer fits its own context
}


def with_state(played: Played, state: JobState) -> list[OnRecord]:
    """The ordinary jobs that ended so."""
    return [record for record in played.jobs.values() if record.job.state is state]


async def test_every_request_comes_to_an_end_and_most_succeed(played: Played) -> None:
    ends = Counter(record.job.state for record in played.jobs.values())

    assert set(ends) <= {JobState.SUCCEEDED, JobState.DEAD}
    assert ends.total() == len(played.jobs)
    assert ends[JobState.SUCCEEDED] > ends[JobState.DEAD]


async def test_each_ticket_is_named_by_one_receipt(played: Played) -> None:
    for record in played.everything:
        assert record.receipts == [f"T-{number}" for number in record.tickets]


async def test_a_job_that_succeeded_has_its_ticket_its_answer_and_a_whole_record(played: Played) -> None:
    for record in with_state(played, JobState.SUCCEEDED):
        assert record.job.result is not None
        answer = record.job.result["answer"]
        assert answer.strip()
        assert len(record.tickets) == 1
        assert all(effect.result is not None for effect in record.effects)
        assert record.letter is None


async def test_a_job_that_died_says_of_what_in_its_letter(played: Played) -> None:
    for record in with_state(played, JobState.DEAD):
        assert record.letter is not None
        assert record.letter.state == "open"
        assert record.letter.reason in _FAULTS_OF_THE_MODEL
        assert record.job.failure is not None
        assert record.letter.message == record.job.failure.message


async def test_a_request_longer_than_the_models_context_dies_of_that_at_once(played: Played) -> None:
    record = played.too_long

    assert record.job.state is JobState.DEAD
    assert record.letter is not None
    assert record.letter.reason == Category.PAYLOAD_TOO_LARGE
    assert [attempt.outcome for attempt in record.attempts] == ["failed"]
    assert record.job.usage == Usage()
    assert record.job.tokens_reserved == 0


async def test_every_call_that_the_server_saw_is_an_attempt_on_record(played: Played) -> None:
    sent = sum(len(record.sent) for record in played.everything)

    assert len(played.play.witness.calls) == sent


async def test_the_tokens_on_record_are_those_that_the_server_counted(played: Played) -> None:
    attempts = [attempt for record in played.everything for attempt in record.calls]
    recorded = Counter((attempt.tokens_in, attempt.tokens_out) for attempt in attempts if attempt.tokens_in)
    told = Counter((usage.tokens_in, usage.tokens_out) for usage in played.play.witness.costs)
    total = sum((record.job.usage for record in played.everything), Usage())

    assert recorded == told
    assert total == played.served
    assert total.tokens_out > 0


async def test_only_model_calls_cost_tokens(played: Played) -> None:
    for record in played.everything:
        spent = sum((attempt.tokens_in + attempt.tokens_out for attempt in record.calls), 0)

        assert spent == record.job.usage.tokens
        assert {effect.kind for effect in record.effects} <= {EffectKind.MODEL, EffectKind.TOOL}
