"""The first page: how many jobs are in which state, what waits, and what is spent."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from agentjobs.api import approvals, budget, dead_letters, waiting
from agentjobs.api.authentication import visible_user
from agentjobs.api.parts import LedgerPart, LinksPart
from agentjobs.console.charts import share
from agentjobs.console.rendering import page
from agentjobs.console.route import PageRoute, Visit
from agentjobs.console.spending import bars_of
from agentjobs.ledger.identity import Role
from agentjobs.ledger.overview import Overview

ROWS_SHOWN: Final = 5

router = APIRouter(route_class=PageRoute)


@router.get("/")
async def overview(request: Request, visit: Visit, ledger: LedgerPart, links: LinksPart) -> Response:
    """Your own jobs; with the role review or admin, the tenant's."""
    caller = visit.caller
    counts = await Overview(ledger.database).by_state(caller.tenant, user=visible_user(caller))
    is_reviewer = visit.may(Role.REVIEW)
    report = await dead_letters.report(caller, ledger) if is_reviewer else None
    asked = (await approvals.approvals(caller, ledger, None, ROWS_SHOWN)).items if is_reviewer else []
    month = await budget.read(caller, ledger)
    return page(
        request,
        "overview.html",
        counts=counts,
        total=sum(count.count for count in counts),
        waiting=await waiting.waiting(caller, ledger, links, ROWS_SHOWN),
        report=report,
        asked=asked,
        month=month,
        bars=bars_of(month),
        share=share,
    )
