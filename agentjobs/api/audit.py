"""The route of the audit log: for reviewers and admins of the tenant."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from agentjobs.api.authentication import Having
from agentjobs.api.cursors import Cursor, Limit, page_of, position_of
from agentjobs.api.declared import problems
from agentjobs.api.parts import LedgerPart
from agentjobs.api.problems import unacceptable
from agentjobs.api.strict_route import StrictRoute
from agentjobs.domain.job import IDENTIFIER_PATTERN
from agentjobs.ledger.identity import Caller, Role

ID_DIGITS_LIMIT = 18
"""More do not fit the column."""

TARGET_PATTERN = r"^[A-Za-z0-9_:.\- ]{1,200}$"

router = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=StrictRoute)

ReviewerOrAdmin = Annotated[Caller, Depends(Having(Role.REVIEW, Role.ADMIN))]
Named = Annotated[str | None, Query(pattern=IDENTIFIER_PATTERN)]
Target = Annotated[
    str | None, Query(pattern=TARGET_PATTERN, description="What it was done to: a job, a key, a user's grant.")
]


class AuditEntryShown(BaseModel):
    """One deed: who did what to what, when, and why."""

    id: str
    at: datetime
    actor: str
    action: str
    target: str
    note: str | None
    details: dict[str, Any]


class AuditPage(BaseModel):
    """Deeds, latest first."""

    items: list[AuditEntryShown]
    next_cursor: str | None


@router.get(
    "",
    response_model=AuditPage,
    operation_id="listAudit",
    summary="Who looked, decided, allowed and changed",
    responses=problems(),
)
async def entries(
    caller: ReviewerOrAdmin,
    ledger: LedgerPart,
    actor: Named = None,
    action: Named = None,
    target: Target = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> AuditPage:
    """Of the whole tenant. Nothing of it is ever changed or taken back."""
    rows = await ledger.audit.page(
        caller.tenant, actor=actor, action=action, target=target, before=_before(cursor), limit=limit + 1
    )
    page, following = page_of(rows, limit, "at")
    return AuditPage(items=[AuditEntryShown(**entry.model_dump()) for entry in page], next_cursor=following)


def _before(cursor: str | None) -> int | None:
    position = position_of(cursor)
    if position is None:
        return None
    number = position[1]
    if not (number.isascii() and number.isdigit() and len(number) <= ID_DIGITS_LIMIT):
        raise unacceptable("query:cursor", "Give the `next_cursor` of a page, unchanged, or leave it out.")
    return int(number)
