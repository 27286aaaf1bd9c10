"""What the tenant has spent this month, and on what."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from agentjobs.api import budget
from agentjobs.api.parts import LedgerPart
from agentjobs.console.rendering import page
from agentjobs.console.route import PageRoute, Visit
from agentjobs.console.spending import bars_of
from agentjobs.ledger.overview import Overview

router = APIRouter(prefix="/usage", route_class=PageRoute)


@router.get("")
async def usage(request: Request, visit: Visit, ledger: LedgerPart) -> Response:
    """Of the whole tenant, as the API tells it to anybody of it."""
    month = await budget.read(visit.caller, ledger)
    lines = await Overview(ledger.database).usage(visit.caller.tenant)
    return page(request, "usage.html", month=month, bars=bars_of(month), lines=lines)
