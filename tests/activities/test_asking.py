"""Which model is asked, whether it may be, and what a failed call costs."""

from decimal import Decimal
from typing import Any

import pytest

from activities.asking import Access
from activities.executor import Executor
from activities.inputs import JobRef
from activities.model_calls import ModelCalls
from agentjobs.agents.catalogue import built_in_agents
from agentjobs.domain import keys
from agentjobs.domain.admission import Limits
from agentjobs.domain.budget import Usage
from agentjobs.domain.failures import Category, JobError, MalformedReply, PermanentError, RetryableError
from agentjobs.domain.job import Budget
from agentjobs.providers.models import Models
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.trackers.postgres import PostgresTracker
from tests.activities.stage import FIRST, Attempt, Stage, failed, reference, told
from tests.fakes import USAGE, ScriptedProvider
from tests.world import NoFence

DOWN = RetryableError(Category.UNAVAILABLE, "down")
BUSY = RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=600, nothing_happened=True)
MALFORMED = MalformedReply("subject: missing", paid=Usage(tokens_in=30, tokens_out=12, usd=Decimal("0.5")))


class Desk:
    """Two models, `first` and `second`, over one ledger."""

    def __init__(self, stage: Stage, *errors: JobError, limits: Limits | None = None, price: str = "0") -> None:
        self._stage = stage
        self.first = ScriptedProvider(errors=errors, metered=True, usd_a_token=price)
        self.second = ScriptedProvider(metered=True)
        self._models = {"first": self.first, "second": self.second}
        self._limits = limits or Limits()

    async def plan(self, job_id: str, attempt: Attempt = FIRST, *, only_first: bool = False) -> Any:
        """One attempt of the plan."""
        ledger = self._stage.scene.ledger
        names = ("first",) if only_first else ("first", "second")
        access = Access(Models(names, self._models.__getitem__), ledger, self._limits)
        tools = built_in_tools(PostgresTracker(ledger.tickets))
        calls = ModelCalls(Executor(ledger, attempt.failpoints, NoFence()), access, built_in_agents(), tools)
        return await attempt.environment(keys.PLAN).run(calls.plan, JobRef(**reference(job_id)))


@pytest.mark.parametrize(
    "trouble",
    [
        DOWN,
        RetryableError(Category.TIMEOUT, "slow"),
        BUSY,
        PermanentError(Category.NOT_FOUND, "retired"),
    ],
    ids=lambda error: error.category,
)
async def test_where_a_model_is_in_trouble_the_next_one_is_asked_at_once(stage: Stage, trouble: JobError) -> None:
    job = await stage.scene.accept()
    desk = Desk(stage, trouble)

    error = await failed(desk.plan(job.id))
    await desk.plan(job.id, Attempt(number=2))

    assert error.next_retry_delay is not None
    assert error.next_retry_delay.total_seconds() < 1
    assert (desk.first.calls, desk.second.calls) == (["plan"], ["plan"])
    attempts = await stage.scene.ledger.jobs.attempts(job.id)
    assert [(a.model, a.outcome) for a in attempts] == [("first", "failed"), ("scripted", "succeeded")]


@pytest.mark.parametrize(
    "category",
    [Category.CONTENT_REFUSED, Category.INVALID_INPUT, Category.ACCESS_DENIED, Category.PAYLOAD_TOO_LARGE],
)
async def test_a_refusal_is_not_taken_to_another_model(stage: Stage, category: Category) -> None:
    job = await stage.scene.accept()
    desk = Desk(stage, PermanentError(category, "no"))

    answer = await told(desk.plan(job.id))

    assert answer == (category, False)
    assert desk.second.calls == []


async def test_a_model_that_told_everybody_to_wait_is_passed_over_by_other_jobs_too(stage: Stage) -> None:
    one, other = await stage.scene.accept(), await stage.scene.accept()
    desk = Desk(stage, BUSY)
    await failed(desk.plan(one.id))

    await desk.plan(other.id)

    assert (desk.first.calls, desk.second.calls) == (["plan"], ["plan"])


async def test_what_is_held_back_is_not_called_costs_nothing_and_says_until_when(stage: Stage) -> None:
    one, other = await stage.scene.accept(), await stage.scene.accept()
    desk = Desk(stage, BUSY)
    await failed(desk.plan(one.id, only_first=True))

    error = await failed(desk.plan(other.id, only_first=True))

    now = await stage.scene.job(other.id)
    assert (error.type, error.non_retryable, desk.first.calls) == ("rate_limited", False, ["plan"])
    assert (now.state, now.tokens_reserved, now.usage) == ("retry_wait", 0, Usage())
    assert now.failure is not None
    assert now.failure.message.startswith("held back: model first is parked until")


async def test_a_malformed_reply_is_paid_for_and_its_fault_is_told_to_the_model(stage: Stage) -> None:
    job = await stage.scene.accept()
    desk = Desk(stage, MALFORMED)

    await failed(desk.plan(job.id))
    after_one = await stage.scene.job(job.id)
    await desk.plan(job.id, Attempt(number=2))

    assert (after_one.usage, after_one.tokens_reserved) == (MALFORMED.paid, 0)
    assert [brief.correction for brief in desk.first.briefs] == [None, "subject: missing"]
    assert (await stage.scene.job(job.id)).usage == Usage(tokens_in=40, tokens_out=17, usd=Decimal("0.5"))
    assert desk.second.calls == []


async def test_the_third_malformed_reply_is_the_last(stage: Stage) -> None:
    job = await stage.scene.accept()
    desk = Desk(stage, MALFORMED, MALFORMED, MALFORMED)

    answers = [await told(desk.plan(job.id, Attempt(number=number))) for number in (1, 2, 3)]

    assert answers == [("bad_output", True), ("bad_output", True), ("bad_output", False)]
    assert (await stage.scene.job(job.id)).usage.tokens == 3 * 42


async def test_money_is_held_back_by_the_price_of_the_dearest_candidate(stage: Stage) -> None:
    job = await stage.scene.accept(budget=Budget(usd=Decimal("0.15")))
    desk = Desk(stage, price="0.00001")  # 16,000 tokens: 0.16

    answer = await told(desk.plan(job.id))

    assert (answer, desk.first.calls) == (("budget_exceeded", False), [])


async def test_a_call_in_flight_takes_the_only_place(stage: Stage) -> None:
    one, other = await stage.scene.accept(), await stage.scene.accept()
    desk = Desk(stage, limits=Limits(calls_at_once=1))
    held = await stage.scene.begin_attempt(one.id)
    await stage.scene.ledger.admission.admit("first", held, tokens=1, limits=Limits(calls_at_once=1))

    error = await failed(desk.plan(other.id, only_first=True))

    assert (error.type, desk.first.calls) == ("rate_limited", [])
    assert "1 call at once" in error.message


async def test_a_reply_is_booked_with_what_it_really_cost(stage: Stage) -> None:
    job = await stage.scene.accept()

    await Desk(stage).plan(job.id)

    now = await stage.scene.job(job.id)
    assert (now.usage, now.tokens_reserved) == (USAGE, 0)


async def test_where_both_models_are_in_trouble_attempts_wait(stage: Stage) -> None:
    job = await stage.scene.accept()
    desk = Desk(stage, RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=600))
    desk.second.fail_at("plan", RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=300))
    await failed(desk.plan(job.id))

    second = await failed(desk.plan(job.id, Attempt(number=2)))
    third = await failed(desk.plan(job.id, Attempt(number=3)))

    for error in (second, third):
        assert error.next_retry_delay is not None
        assert error.next_retry_delay.total_seconds() >= 250
    assert desk.second.calls == ["plan"]


async def test_a_model_that_has_only_no_place_is_waited_for(stage: Stage) -> None:
    one, other = await stage.scene.accept(), await stage.scene.accept()
    desk = Desk(stage, limits=Limits(calls_at_once=1))
    held = await stage.scene.begin_attempt(one.id)
    await stage.scene.ledger.admission.admit("first", held, tokens=1, limits=Limits(calls_at_once=1))

    error = await failed(desk.plan(other.id))

    assert error.type == "rate_limited"
    assert error.next_retry_delay is not None
    assert error.next_retry_delay.total_seconds() > 0.1
    assert desk.second.calls == []


async def test_a_reply_is_kept_although_its_report_could_not_be_written(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await stage.scene.accept()
    desk = Desk(stage)

    async def broken(*_: object, **__: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(type(stage.scene.ledger.admission), "report", broken)

    await desk.plan(job.id)

    assert desk.first.calls == ["plan"]
    assert await stage.scene.outcomes(job.id) == [("succeeded", None)]
