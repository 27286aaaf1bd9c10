"""A step tried in vain: what Temporal is told when its attempts are used up, or when a model will not do."""

from contextlib import suppress
from decimal import Decimal

import pytest
from temporalio.exceptions import ApplicationError

from agentjobs.domain import keys
from agentjobs.domain.budget import Usage
from agentjobs.domain.failures import Category, MalformedReply, RetryableError
from agentjobs.domain.job import Budget
from agentjobs.domain.states import JobState
from agentjobs.providers.model import Brief, Listener
from tests.activities.asked import PlayedProvider, ask_for_plan
from tests.activities.stage import Attempt, Destination, Stage, failed, told
from tests.ledger.scene import MODEL_CALL

RUN = Attempt().environment("plan").info.workflow_run_id
PAID = Usage(tokens_in=30, tokens_out=12, usd=Decimal("0.25"))


def malformed(number: int) -> MalformedReply:
    """A reply that cannot be used, and what is wrong with it."""
    return MalformedReply(f"urgency: not one of the three ({number})", paid=PAID)


async def refuse(brief: Brief, _: Listener) -> None:
    """Never the declared form; says how often that was told."""
    raise malformed(1 if brief.correction is None else 2)


async def test_after_six_crashes_of_a_model_call_temporal_is_told_that_it_is_over(stage: Stage) -> None:
    job = await stage.scene.accept()
    provider = PlayedProvider()
    same = keys.fingerprint({"agent": job.agent, "step": keys.PLAN})
    for number in range(6):
        await stage.scene.begin(job.id, keys.PLAN, attempt=number + 1, run_id=RUN, fingerprint=same, **MODEL_CALL)

    error = await failed(ask_for_plan(stage, job.id, provider, attempt=Attempt(number=7)))

    assert (error.type, error.non_retryable, error.next_retry_delay) == ("retries_exhausted", True, None)
    assert (error.details[0]["category"], error.details[0]["step"]) == ("timeout", "plan")
    assert provider.briefs == []


async def test_after_eight_crashes_of_a_tool_call_nothing_is_called(stage: Stage) -> None:
    job = await stage.scene.accept()
    destination = Destination()
    for number in range(8):
        await stage.scene.begin(job.id, attempt=number + 1, run_id=RUN)

    error = await failed(stage.carry_out(job.id, destination, attempt=Attempt(number=9)))

    assert (error.type, error.details[0]["category"], destination.calls) == ("retries_exhausted", "timeout", 0)


async def test_the_sixth_failure_of_a_model_call_is_its_last(stage: Stage) -> None:
    job = await stage.scene.accept()

    async def away(_brief: Brief, _listener: Listener) -> None:
        raise RetryableError(Category.UNAVAILABLE, "the model is away")

    provider = PlayedProvider(away)

    answers = [
        await told(ask_for_plan(stage, job.id, provider, attempt=Attempt(number=number))) for number in range(1, 7)
    ]

    assert answers == [("unavailable", True)] * 5 + [("retries_exhausted", False)]
    assert len(provider.briefs) == 6


async def test_a_model_that_is_busy_is_asked_again_and_again(stage: Stage) -> None:
    job = await stage.scene.accept()

    async def busy(_brief: Brief, _listener: Listener) -> None:
        raise RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=1, nothing_happened=True)

    provider = PlayedProvider(busy)

    answers = {
        await told(ask_for_plan(stage, job.id, provider, attempt=Attempt(number=number)))
        for number in range(1, 21)
    }

    assert answers == {("rate_limited", True)}
    assert (await stage.scene.job(job.id)).tokens_reserved == 0


async def test_a_model_is_asked_three_times_for_a_reply_in_its_form(stage: Stage) -> None:
    job = await stage.scene.accept()
    provider = PlayedProvider(refuse)

    answers = [
        await told(ask_for_plan(stage, job.id, provider, attempt=Attempt(number=number))) for number in (1, 2, 3)
    ]

    assert answers == [("bad_output", True), ("bad_output", True), ("bad_output", False)]
    assert len(provider.briefs) == 3


async def test_each_of_them_is_on_record_with_what_it_cost(stage: Stage) -> None:
    job = await stage.scene.accept()
    provider = PlayedProvider(refuse)
    for number in (1, 2, 3):
        await failed(ask_for_plan(stage, job.id, provider, attempt=Attempt(number=number)))

    attempts = await stage.scene.ledger.jobs.attempts(job.id)
    now = await stage.scene.job(job.id)

    assert [(a.outcome, a.category, a.tokens_in, a.tokens_out, a.usd) for a in attempts] == [
        ("failed", "bad_output", 30, 12, Decimal("0.25"))
    ] * 3
    assert now.usage == Usage(tokens_in=90, tokens_out=36, usd=Decimal("0.75"))
    assert (now.tokens_reserved, now.usd_reserved) == (0, Decimal(0))


async def test_the_next_attempt_tells_the_model_what_was_wrong_with_the_last(stage: Stage) -> None:
    job = await stage.scene.accept()
    provider = PlayedProvider(refuse)

    for number in (1, 2, 3):
        await failed(ask_for_plan(stage, job.id, provider, attempt=Attempt(number=number)))

    assert [brief.correction for brief in provider.briefs] == [
        None,
        "urgency: not one of the three (1)",
        "urgency: not one of the three (2)",
    ]


async def test_a_model_that_was_only_away_is_not_corrected(stage: Stage) -> None:
    job = await stage.scene.accept()
    failures = iter([malformed(1), RetryableError(Category.UNAVAILABLE, "away"), None])

    async def one_after_the_other(_brief: Brief, _listener: Listener) -> None:
        error = next(failures)
        if error is not None:
            raise error

    provider = PlayedProvider(one_after_the_other)
    for number in (1, 2):
        await failed(ask_for_plan(stage, job.id, provider, attempt=Attempt(number=number)))
    await ask_for_plan(stage, job.id, provider, attempt=Attempt(number=3))

    assert [brief.correction is None for brief in provider.briefs] == [True, False, True]


async def test_a_malformed_reply_is_asked_for_again_at_once(stage: Stage) -> None:
    job = await stage.scene.accept()

    error = await failed(ask_for_plan(stage, job.id, PlayedProvider(refuse)))

    now = await stage.scene.job(job.id)
    assert error.next_retry_delay is not None
    assert 0 < error.next_retry_delay.total_seconds() < 1
    assert now.state is JobState.RETRY_WAIT


async def test_what_malformed_replies_cost_counts_against_the_budget(stage: Stage) -> None:
    job = await stage.scene.accept(budget=Budget(tokens=16_041))
    provider = PlayedProvider(refuse)
    await failed(ask_for_plan(stage, job.id, provider))  # costs 42 of 16,041, and the next may take 16,000

    error = await failed(ask_for_plan(stage, job.id, provider, attempt=Attempt(number=2)))

    assert (error.type, len(provider.briefs)) == ("budget_exceeded", 1)
    assert "42 of 16041 tokens" in str(error)


@pytest.mark.parametrize("accepted_in_it", [True, False], ids=["this attempt", "an earlier one"])
async def test_a_model_that_is_asked_again_for_its_stored_answer_is_given_time(
    stage: Stage, accepted_in_it: bool
) -> None:
    job = await stage.scene.accept()

    async def away(_brief: Brief, listener: Listener) -> None:
        if accepted_in_it or not first.briefs[1:]:
            await listener.accepted("resp-1")
        raise RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=30)

    first, second = PlayedProvider(away, "m1"), PlayedProvider(name="m2")
    if not accepted_in_it:
        await failed(ask_for_plan(stage, job.id, first, second))
    error = await failed(ask_for_plan(stage, job.id, first, second, attempt=Attempt(number=2)))
    asked_before = len(first.briefs)
    with suppress(ApplicationError):
        await ask_for_plan(stage, job.id, first, second, attempt=Attempt(number=3))

    assert len(first.briefs) == asked_before + 1  # it has the answer, or soon will
    assert error.next_retry_delay is not None
    assert error.next_retry_delay.total_seconds() >= 30


async def test_a_stored_reply_that_is_of_no_use_is_not_fetched_again(stage: Stage) -> None:
    job = await stage.scene.accept()

    async def of_no_use(_brief: Brief, listener: Listener) -> None:
        await listener.accepted("resp-1")
        raise malformed(1)

    provider = PlayedProvider(of_no_use)
    for number in (1, 2):
        await failed(ask_for_plan(stage, job.id, provider, attempt=Attempt(number=number)))

    assert provider.briefs[1].correction is not None
    assert provider.briefs[1].response_id is None
