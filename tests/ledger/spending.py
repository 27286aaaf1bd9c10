"""What tests of a tenant's monthly budget do to it."""

from decimal import Decimal

from agentjobs.domain import keys
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.failures import Category, PermanentError
from tests.ledger.scene import MODEL_CALL, RESERVE_TEN, Scene


async def limit(scene: Scene, tokens: int | None = None, usd: str | None = None) -> None:
    """The tenant may spend this much a month; without either, what it likes."""
    amount = None if usd is None else Decimal(usd)
    await scene.ledger.budgets.set(scene.tenant, tokens=tokens, usd=amount, actor="root")


async def begins(
    scene: Scene, job_id: str, step: str = keys.PLAN, reserve: Reservation = RESERVE_TEN
) -> int | None:
    """A model call's attempt, or None when the tenant's budget has no room for it."""
    try:
        return await scene.begin_attempt(job_id, step, reserve=reserve, **MODEL_CALL)
    except PermanentError as refused:
        assert (refused.category, "tenant" in str(refused)) == (Category.BUDGET_EXCEEDED, True)
        return None


async def begun(scene: Scene, job_id: str, step: str = keys.PLAN, reserve: Reservation = RESERVE_TEN) -> int:
    """A model call's attempt, for which there is room."""
    return await scene.begin_attempt(job_id, step, reserve=reserve, **MODEL_CALL)


async def complete(scene: Scene, job_id: str, attempt_id: int, usage: Usage, step: str = keys.PLAN) -> None:
    """The call came back, and cost this."""
    await scene.ledger.effects.complete(scene.intent(job_id, step, **MODEL_CALL), attempt_id, {}, usage=usage)
