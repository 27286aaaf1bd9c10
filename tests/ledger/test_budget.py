"""The budget is held back before a call and settled after it; calls at the same moment never exceed it."""

import asyncio
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentjobs.domain.budget import Reservation, Usage, fits
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.job import Budget
from tests.ledger.scene import CREATE_TICKET, RESERVE_TEN, Scene

SMALL = st.integers(min_value=0, max_value=6)
# Few amounts, so that sums meet the limit exactly again and again.
MONEY = st.sampled_from([Decimal(text) for text in ("0", "0.000001", "0.1", "0.2", "0.3", "1")])
BUDGETS = st.builds(
    Budget,
    tokens=st.none() | st.integers(min_value=1, max_value=12),
    usd=st.none() | MONEY.filter(lambda amount: amount > 0),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BUDGETS, st.tuples(SMALL, SMALL, SMALL), st.tuples(MONEY, MONEY), SMALL, MONEY)
async def test_the_ledger_and_the_domain_agree_on_what_fits(
    scene: Scene,
    budget: Budget,
    tokens: tuple[int, int, int],
    usd: tuple[Decimal, Decimal],
    wanted_tokens: int,
    wanted_usd: Decimal,
) -> None:
    job = await scene.accept(budget=budget)
    await scene.execute(
        "UPDATE jobs SET tokens_in = $2, tokens_out = $3, tokens_reserved = $4, usd = $5, usd_reserved = $6 "
        "WHERE id = $1",
        job.id,
        *tokens,
        *usd,
    )
    wanted = Reservation(tokens=wanted_tokens, usd=wanted_usd)

    begins = await _begins(scene, job.id, reserve=wanted)

    assert begins == fits(budget, Reservation(tokens=sum(tokens), usd=sum(usd, Decimal(0))), wanted)


async def test_a_call_that_does_not_fit_is_refused_and_on_record(scene: Scene) -> None:
    job = await scene.accept(budget=Budget(tokens=9))

    with pytest.raises(PermanentError) as refused:
        await scene.begin(job.id, reserve=RESERVE_TEN)

    assert refused.value.category is Category.BUDGET_EXCEEDED
    assert await scene.outcomes(job.id) == [("failed", "budget_exceeded")]
    assert (await scene.job(job.id)).tokens_reserved == 0


async def test_calls_at_the_same_moment_never_reserve_more_than_the_budget(scene: Scene) -> None:
    job = await scene.accept(budget=Budget(tokens=105))
    steps = [f"step-{number}.model" for number in range(20)]

    began = await asyncio.gather(*(_begins(scene, job.id, step, reserve=RESERVE_TEN) for step in steps))

    assert began.count(True) == 10
    assert (await scene.job(job.id)).tokens_reserved == 100


async def test_a_reservation_is_settled_by_what_the_call_cost(scene: Scene) -> None:
    job = await scene.accept()
    reserve = Reservation(tokens=10, usd=Decimal("0.5"))
    attempt_id = await scene.begin_attempt(job.id, reserve=reserve)
    held = await scene.job(job.id)

    await _complete(scene, job.id, attempt_id, Usage(tokens_in=3, tokens_out=1, usd=Decimal("0.1")))

    settled = await scene.job(job.id)
    assert (held.tokens_reserved, held.usd_reserved, held.usage.tokens) == (10, Decimal("0.5"), 0)
    assert (settled.tokens_reserved, settled.usd_reserved) == (0, Decimal(0))
    assert (settled.usage.tokens, settled.usage.usd) == (4, Decimal("0.1"))


async def test_what_a_call_cost_beyond_its_reservation_counts_too(scene: Scene) -> None:
    job = await scene.accept(budget=Budget(tokens=20))
    attempt_id = await scene.begin_attempt(job.id, reserve=RESERVE_TEN)

    await _complete(scene, job.id, attempt_id, Usage(tokens_in=15))

    assert not await _begins(scene, job.id, "step-2.model", reserve=RESERVE_TEN)
    assert await _begins(scene, job.id, "step-2.model", reserve=Reservation(tokens=5))


async def test_the_reservation_of_a_crashed_attempt_stays_held(scene: Scene) -> None:
    job = await scene.accept(budget=Budget(tokens=25))
    await scene.begin(job.id, reserve=RESERVE_TEN)

    await scene.begin(job.id, reserve=RESERVE_TEN, attempt=2)

    assert (await scene.job(job.id)).tokens_reserved == 20  # what the first one cost, nobody knows
    assert not await _begins(scene, job.id, reserve=RESERVE_TEN, attempt=3)


async def test_a_crashed_attempt_that_reports_back_after_all_is_settled(scene: Scene) -> None:
    job = await scene.accept()
    late = await scene.begin_attempt(job.id, reserve=RESERVE_TEN)
    await scene.begin(job.id, reserve=RESERVE_TEN, attempt=2)

    await _complete(scene, job.id, late, Usage(tokens_in=3))

    now = await scene.job(job.id)
    assert (now.tokens_reserved, now.usage.tokens) == (10, 3)


async def test_both_of_two_calls_that_came_back_are_paid_for(scene: Scene) -> None:
    job = await scene.accept()
    attempts = [await scene.begin_attempt(job.id, reserve=RESERVE_TEN) for _ in range(2)]

    for attempt_id in attempts:
        await _complete(scene, job.id, attempt_id, Usage(tokens_in=3))

    now = await scene.job(job.id)
    assert (now.tokens_reserved, now.usage.tokens) == (0, 6)


async def test_a_failed_call_that_may_have_cost_something_stays_held(scene: Scene) -> None:
    job = await scene.accept()

    await scene.fail(await scene.begin_attempt(job.id, reserve=RESERVE_TEN), release=False)

    assert (await scene.job(job.id)).tokens_reserved == 10


async def test_a_failed_call_that_cost_nothing_is_given_back_once(scene: Scene) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id, reserve=RESERVE_TEN)

    for _ in range(2):
        await scene.fail(attempt_id, release=True)

    assert (await scene.job(job.id)).tokens_reserved == 0


async def _begins(scene: Scene, job_id: str, step: str = CREATE_TICKET, **changes: object) -> bool:
    try:
        await scene.begin(job_id, step, **changes)
    except PermanentError as refused:
        assert refused.category is Category.BUDGET_EXCEEDED
        return False
    return True


async def _complete(scene: Scene, job_id: str, attempt_id: int, usage: Usage) -> None:
    await scene.ledger.effects.complete(scene.intent(job_id), attempt_id, {}, usage=usage)
