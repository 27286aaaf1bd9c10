"""Who did what, when and why."""

import re

from fastapi import APIRouter, Request
from starlette.responses import Response

from agentjobs.api import audit as api
from agentjobs.api.parts import LedgerPart
from agentjobs.api.problems import unacceptable
from agentjobs.console.choices import PAGE_ROWS, identifier
from agentjobs.console.rendering import page
from agentjobs.console.route import PageRoute, ReviewingOrAdmin

router = APIRouter(prefix="/audit", route_class=PageRoute)


@router.get("")
async def entries(
    request: Request,
    visit: ReviewingOrAdmin,
    ledger: LedgerPart,
    actor: str = "",
    action: str = "",
    target: str = "",
    cursor: str | None = None,
) -> Response:
    """Latest first."""
    listed = await api.entries(
        visit.caller,
        ledger,
        actor=identifier(actor, "actor"),
        action=identifier(action, "action"),
        target=_target(target),
        cursor=cursor,
        limit=PAGE_ROWS,
    )
    given = {"actor": actor, "action": action, "target": target}
    return page(request, "audit.html", listed=listed, given=given, cursor=cursor)


def _target(value: str) -> str | None:
    if value and not re.fullmatch(api.TARGET_PATTERN, value):
        raise unacceptable("query:target", "Give an id, or a user and an action.")
    return value or None
