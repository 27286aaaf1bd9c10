"""What a job may spend: a refusal says why in numbers, and neither crash nor redrive forgets what was spent."""

from decimal import Decimal

import pytest

from agentjobs.domain import keys
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.job import Budget
from agentjobs.domain.states import JobState
from tests.ledger.scene import MODEL_CALL, RESERVE_TEN, Scene


async def refused(scene: Scene, job_id: str, reserve: Reservation, **changes: object) -> str:
    """What the refusal says."""
    with pytest.raises(PermanentError) as error:
        await scene.begin(job_id, "step-9.model", reserve=reserve, **MODEL_CALL, **changes)
    assert error.value.category is Category.BUDGET_EXCEEDED
    return str(error.value)


async def test_the_refusal_names_what_is_spent_what_is_allowed_and_what_was_wanted(scene: Scene) -> None:
    job = await scene.accept(budget=Budget(tokens=100, usd=Decimal("0.5")))
    spent = await scene.begin_attempt(job.id, keys.PLAN, reserve=RESERVE_TEN, **MODEL_CALL)
    usage = Usage(tokens_in=40, tokens_out=7, usd=Decimal("0.25"))
    await scene.ledger.effects.complete(scene.intent(job.id, keys.PLAN, **MODEL_CALL), spent, {}, usage=usage)
    await scene.begin(job.id, "step-1.model", reserve=Reservation(tokens=13), **MODEL_CALL)  # held back

    tokens = await refused(scene, job.id, Reservation(tokens=41))
    usd = await refused(scene, job.id, Reservation(usd=Decimal("0.3")))
    both = await refused(scene, job.id, Reservation(tokens=41, usd=Decimal("0.3")))

    told_of_tokens = "60 of 100 tokens are spent or held back, the next call may take 41"
    assert tokens.endswith(": " + told_of_tokens)
    assert "USD" not in tokens
    assert "0.25" in usd and "0.5" in usd and "0.3" in usd and "USD" in usd
    assert "tokens" not in usd
    assert told_of_tokens in both and "USD" in both
    assert "\n" not in both


async def test_the_last_unit_fits(scene: Scene) -> None:
    job = await scene.accept(budget=Budget(tokens=10, usd=Decimal("0.3")))

    for number in range(3):
        await scene.begin(job.id, f"step-{number}.model", reserve=Reservation(usd=Decimal("0.1")), **MODEL_CALL)

    assert "USD" in await refused(scene, job.id, Reservation(usd=Decimal("0.000001")))
    assert await scene.begin_attempt(job.id, reserve=RESERVE_TEN, **MODEL_CALL)


async def test_what_a_crashed_attempt_may_have_cost_counts_until_it_reports_back(scene: Scene) -> None:
    job = await scene.accept(budget=Budget(tokens=25))
    late = await scene.begin_attempt(job.id, reserve=RESERVE_TEN, **MODEL_CALL)
    await scene.begin(job.id, reserve=RESERVE_TEN, attempt=2, **MODEL_CALL)
    full = await refused(scene, job.id, RESERVE_TEN)

    usage = Usage(tokens_in=1)
    await scene.ledger.effects.complete(scene.intent(job.id, **MODEL_CALL), late, {"by": "late"}, usage=usage)

    now = await scene.job(job.id)
    assert "20 of 25 tokens" in full
    assert (now.usage.tokens, now.tokens_reserved) == (1, 10)
    assert await scene.begin_attempt(job.id, "step-9.model", reserve=RESERVE_TEN, **MODEL_CALL)


async def test_a_redrive_does_not_forget_what_was_spent_and_held_back(scene: Scene) -> None:
    job = await scene.accept(budget=Budget(tokens=25))
    await scene.begin(job.id, reserve=RESERVE_TEN, **MODEL_CALL)
    paid = await scene.begin_attempt(job.id, reserve=RESERVE_TEN, attempt=2, **MODEL_CALL)
    await scene.fail(paid, release=False, wait_seconds=None, category=Category.BAD_OUTPUT, paid=Usage(tokens_in=6))
    await scene.bury(job.id)

    await scene.ledger.outcomes.resume(job.id, generation=1, policy_version="1")

    now = await scene.job(job.id)
    assert (now.state, now.usage.tokens, now.tokens_reserved) == (JobState.RUNNING, 6, 10)
    assert "16 of 25 tokens" in await refused(scene, job.id, RESERVE_TEN, run_id="run-2")


async def test_a_failed_attempt_of_a_known_cost_is_on_record_with_it(scene: Scene) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id, reserve=RESERVE_TEN, **MODEL_CALL)
    paid = Usage(tokens_in=3, tokens_out=2, usd=Decimal("0.000000001"))

    for _ in range(2):  # what is told twice is paid for once
        await scene.fail(attempt_id, release=False, category=Category.BAD_OUTPUT, paid=paid)

    attempt = (await scene.ledger.jobs.attempts(job.id))[0]
    now = await scene.job(job.id)
    assert (attempt.tokens_in, attempt.tokens_out, attempt.usd, attempt.tokens_reserved) == (3, 2, paid.usd, 0)
    assert (now.usage, now.tokens_reserved, now.state) == (paid, 0, JobState.RETRY_WAIT)
