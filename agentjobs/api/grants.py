"""Routes of grants: what a user's jobs may do. For admins of the tenant."""

from typing import Annotated

from fastapi import APIRouter, Query

from agentjobs.api.authentication import Admin
from agentjobs.api.declared import problems, problems_with_body
from agentjobs.api.given import ACTION_PATTERN, NewGrant
from agentjobs.api.parts import LedgerPart
from agentjobs.api.problems import not_found
from agentjobs.api.schemas import GrantList, GrantShown
from agentjobs.api.shown import grant_shown
from agentjobs.api.strict_route import StrictRoute
from agentjobs.domain.job import IDENTIFIER_PATTERN

router = APIRouter(prefix="/v1/grants", tags=["grants"], route_class=StrictRoute)

User = Annotated[str, Query(pattern=IDENTIFIER_PATTERN)]
Action = Annotated[str, Query(pattern=ACTION_PATTERN)]


@router.post(
    "",
    status_code=201,
    response_model=GrantShown,
    operation_id="addGrant",
    summary="Let a user's jobs do something",
    responses=problems_with_body(),
)
async def add(new: NewGrant, caller: Admin, ledger: LedgerPart) -> GrantShown:
    """It counts from the next effect on. Repeating it changes nothing."""
    grant = await ledger.identity.add_grant(caller.tenant, new.user, new.action, granted_by=caller.user, by=caller)
    return grant_shown(grant)


@router.get("", response_model=GrantList, operation_id="listGrants", summary="All grants", responses=problems())
async def grants(
    caller: Admin, ledger: LedgerPart, user: Annotated[str | None, Query(pattern=IDENTIFIER_PATTERN)] = None
) -> GrantList:
    """Of the tenant, or of one user."""
    return GrantList(items=[grant_shown(grant) for grant in await ledger.identity.grants(caller.tenant, user)])


@router.delete(
    "", status_code=204, operation_id="revokeGrant", summary="Take a grant back", responses=problems(404)
)
async def revoke(caller: Admin, ledger: LedgerPart, user: User, action: Action) -> None:
    """Effects that begin from now on are refused."""
    if not await ledger.identity.revoke_grant(caller.tenant, user, action, by=caller):
        raise not_found()
