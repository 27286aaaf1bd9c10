"""Routes of the tenant's monthly budget: anybody may see it, admins set it."""

from fastapi import APIRouter

from agentjobs.api.authentication import Admin, Anyone
from agentjobs.api.declared import problems, problems_with_body
from agentjobs.api.given import MonthlyBudget
from agentjobs.api.parts import LedgerPart
from agentjobs.api.schemas import MonthShown
from agentjobs.api.shown import month_shown
from agentjobs.api.strict_route import StrictRoute

router = APIRouter(prefix="/v1/budget", tags=["budget"], route_class=StrictRoute)


@router.get(
    "",
    response_model=MonthShown,
    operation_id="readBudget",
    summary="What the tenant may spend this month, and has",
    responses=problems(),
)
async def read(caller: Anyone, ledger: LedgerPart) -> MonthShown:
    """Of the whole tenant, also what others of it have spent."""
    return month_shown(await ledger.budgets.read(caller.tenant))


@router.put(
    "",
    response_model=MonthShown,
    operation_id="setBudget",
    summary="Set what the tenant may spend in a month",
    responses=problems_with_body(),
)
async def replace(wanted: MonthlyBudget, caller: Admin, ledger: LedgerPart) -> MonthShown:
    """It counts from the next model call on. Both null: no budget. Repeating it changes nothing."""
    await ledger.budgets.set(caller.tenant, tokens=wanted.tokens, usd=wanted.usd, actor=caller.user)
    return month_shown(await ledger.budgets.read(caller.tenant))
