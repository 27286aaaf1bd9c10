"""What a tenant may spend in a month: held back with each call, never exceeded, and right to the last token."""

from decimal import Decimal

import pytest

from agentjobs.domain import keys
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.ledger.budgets import MonthRecord
from tests.ledger.scene import MODEL_CALL, RESERVE_TEN, Scene
from tests.ledger.spending import begins, begun, complete, limit

_THIS_MONTH = "date_trunc('month', now() AT TIME ZONE 'UTC')::date"
_LAST_MONTH = "(date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month')::date"


async def month(scene: Scene) -> MonthRecord:
    """The tenant's month so far."""
    return await scene.ledger.budgets.read(scene.tenant)


async def test_a_call_that_does_not_fit_is_refused_and_on_record(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=9)

    with pytest.raises(PermanentError) as refused:
        await scene.begin(job.id, reserve=RESERVE_TEN, **MODEL_CALL)

    assert refused.value.category is Category.BUDGET_EXCEEDED
    assert await scene.outcomes(job.id) == [("failed", "budget_exceeded")]
    assert ((await month(scene)).tokens_reserved, (await scene.job(job.id)).tokens_reserved) == (0, 0)


async def test_a_budget_is_used_up_to_its_last_token(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=20)

    began = [await begins(scene, job.id, f"step-{number}.model") for number in (1, 2, 3)]

    assert [one is not None for one in began] == [True, True, False]
    assert (await month(scene)).tokens_reserved == 20


async def test_money_is_limited_like_tokens(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, usd="0.3")
    cents = Reservation(usd=Decimal("0.1"))

    began = [await begins(scene, job.id, f"step-{number}.model", cents) for number in (1, 2, 3, 4)]

    assert [one is not None for one in began] == [True, True, True, False]  # 0.1 three times is 0.3 exactly
    assert (await month(scene)).usd_reserved == Decimal("0.3")


async def test_both_limits_hold(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=100, usd="0.1")

    too_dear = await begins(scene, job.id, reserve=Reservation(tokens=1, usd=Decimal("0.2")))
    too_long = await begins(scene, job.id, reserve=Reservation(tokens=101))
    fitting = await begins(scene, job.id, reserve=Reservation(tokens=100, usd=Decimal("0.1")))

    assert (too_dear, too_long) == (None, None)
    assert fitting is not None


async def test_what_a_call_really_cost_is_what_counts(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=20, usd="1")
    attempt_id = await begun(scene, job.id, reserve=Reservation(tokens=20, usd=Decimal("0.5")))

    await complete(scene, job.id, attempt_id, Usage(tokens_in=7, tokens_out=4, usd=Decimal("0.25")))

    now = await month(scene)
    assert (now.tokens, now.tokens_reserved, now.usd, now.usd_reserved) == (11, 0, Decimal("0.25"), Decimal(0))
    assert await begins(scene, job.id, "step-1.model", Reservation(tokens=10)) is None
    assert await begins(scene, job.id, "step-1.model", Reservation(tokens=9)) is not None


@pytest.mark.parametrize(
    ("release", "paid", "spent", "held"),
    [
        (True, None, 0, 0),  # certainly without a cost
        (False, Usage(tokens_in=3), 3, 0),  # of a known cost
        (False, None, 0, 10),  # nobody knows
    ],
    ids=["free", "paid", "unknown"],
)
async def test_a_failed_call_counts_by_what_is_known_of_it(
    scene: Scene, release: bool, paid: Usage | None, spent: int, held: int
) -> None:
    job = await scene.accept()
    await limit(scene, tokens=20)
    attempt_id = await begun(scene, job.id)

    for _ in range(2):  # the second time it has failed already
        await scene.fail(attempt_id, release=release, paid=paid)

    now = await month(scene)
    assert (now.tokens, now.tokens_reserved) == (spent, held)


async def test_what_a_crashed_call_may_have_cost_stays_held_until_it_reports_back(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=25)
    late = await begun(scene, job.id)
    await begins(scene, job.id)
    held = (await month(scene)).tokens_reserved

    refused = await begins(scene, job.id)
    await complete(scene, job.id, late, Usage(tokens_in=1))

    now = await month(scene)
    assert (held, refused) == (20, None)
    assert (now.tokens, now.tokens_reserved) == (1, 10)


async def test_a_tool_holds_nothing_back_and_is_not_refused(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=5)

    await scene.done(job.id, "step-1.create_ticket", {})

    now = await month(scene)
    assert (now.tokens, now.tokens_reserved) == (0, 0)


async def test_another_tenant_is_unaffected(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("other")
    await limit(scene, tokens=5)
    job = await scene.accept(tenant="other")

    began = await begins(scene, job.id, reserve=Reservation(tokens=1_000_000))

    assert began is not None
    assert (await month(scene)).tokens_reserved == 0


async def test_a_tenant_without_a_budget_has_no_row_that_its_calls_wait_for(scene: Scene) -> None:
    job = await scene.accept()
    attempt_id = await begun(scene, job.id)
    held = await month(scene)

    await complete(scene, job.id, attempt_id, Usage(tokens_in=3, usd=Decimal("0.5")))

    now = await month(scene)
    assert await scene.count("tenant_months") == 0
    assert (held.tokens, held.tokens_reserved) == (0, 10)
    assert (now.tokens, now.tokens_reserved, now.usd) == (3, 0, Decimal("0.5"))  # the sum of its attempts


async def test_a_budget_set_in_mid_month_counts_what_was_spent_and_what_is_in_flight(scene: Scene) -> None:
    job = await scene.accept()
    spent, in_flight = await begun(scene, job.id), await begun(scene, job.id, "step-1.model")
    await complete(scene, job.id, spent, Usage(tokens_in=4, usd=Decimal("0.1")))

    await limit(scene, tokens=20)
    then = await month(scene)
    full = await begins(scene, job.id, "step-2.model")
    await complete(scene, job.id, in_flight, Usage(tokens_in=5), "step-1.model")

    now = await month(scene)
    assert (then.tokens, then.tokens_reserved, then.usd, full) == (4, 10, Decimal("0.1"), None)
    assert (now.tokens, now.tokens_reserved) == (9, 0)
    assert await begins(scene, job.id, "step-2.model") is not None


async def test_a_budget_that_is_changed_keeps_what_was_counted(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=10)
    attempt_id = await begun(scene, job.id)
    await complete(scene, job.id, attempt_id, Usage(tokens_in=8))

    await limit(scene, tokens=18)

    assert await begins(scene, job.id, "step-1.model") is not None
    assert await begins(scene, job.id, "step-2.model") is None


async def test_without_its_budget_a_tenant_spends_on_and_a_new_one_counts_that_too(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=10)
    first = await begun(scene, job.id)
    await limit(scene)
    rows = await scene.count("tenant_months")
    second = await begun(scene, job.id, "step-1.model")
    await complete(scene, job.id, first, Usage(tokens_in=6))

    await limit(scene, tokens=30)

    now = await month(scene)
    assert rows == 0
    assert (now.tokens, now.tokens_reserved) == (6, 10)
    await complete(scene, job.id, second, Usage(tokens_in=7), "step-1.model")
    now = await month(scene)
    assert (now.tokens, now.tokens_reserved) == (13, 0)


async def test_who_set_a_budget_is_in_the_audit_log(scene: Scene) -> None:
    await limit(scene, tokens=5, usd="0.5")

    assert await scene.rows("SELECT tenant, actor, action, target, note FROM audit_log") == [
        {"tenant": "acme", "actor": "root", "action": "set_budget", "target": "acme", "note": "tokens 5, usd 0.5"}
    ]


async def test_last_months_call_is_settled_in_last_month(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=100)
    attempt_id = await begun(scene, job.id)
    await move_to_last_month(scene)
    await begins(scene, job.id, "step-1.model")

    await complete(scene, job.id, attempt_id, Usage(tokens_in=7))

    assert await scene.rows(
        f"SELECT month = {_THIS_MONTH} AS current, tokens, tokens_reserved FROM tenant_months ORDER BY month"
    ) == [
        {"current": False, "tokens": 7, "tokens_reserved": 0},
        {"current": True, "tokens": 0, "tokens_reserved": 10},
    ]


async def test_a_new_month_begins_with_nothing_spent(scene: Scene) -> None:
    job = await scene.accept()
    await limit(scene, tokens=10)
    assert await begins(scene, job.id) is not None
    full = await begins(scene, job.id, "step-1.model")

    await move_to_last_month(scene)

    assert full is None
    assert (await month(scene)).tokens_reserved == 0
    assert await begins(scene, job.id, "step-1.model") is not None


async def test_a_budget_leaves_out_what_was_spent_last_month(scene: Scene) -> None:
    job = await scene.accept()
    attempt_id = await begun(scene, job.id)
    await complete(scene, job.id, attempt_id, Usage(tokens_in=9))
    await scene.execute("UPDATE attempts SET started_at = started_at - interval '32 days'")

    await limit(scene, tokens=10)

    assert (await month(scene)).tokens == 0
    assert await begins(scene, job.id, "step-1.model") is not None


async def move_to_last_month(scene: Scene) -> None:
    """As if all that has happened so far had happened a month ago."""
    await scene.execute(
        f"UPDATE attempts SET started_at = started_at - interval '32 days', budget_month = {_LAST_MONTH}"
    )
    await scene.execute(f"UPDATE tenant_months SET month = {_LAST_MONTH}")


async def test_an_attempt_knows_whether_its_tenant_has_a_budget(scene: Scene) -> None:
    open_job, budgeted_job = (await scene.accept()).id, (await scene.accept()).id

    before = await scene.begin(open_job, keys.PLAN, reserve=RESERVE_TEN, **MODEL_CALL)
    await limit(scene, tokens=1_000)
    after = await scene.begin(budgeted_job, keys.PLAN, reserve=RESERVE_TEN, **MODEL_CALL)

    assert (before.budgeted, after.budgeted) == (False, True)
