"""Route of jobs that wait for their next attempt: which, for what, until when."""

from fastapi import APIRouter

from agentjobs.api.authentication import Anyone, visible_user
from agentjobs.api.cursors import Limit
from agentjobs.api.declared import problems
from agentjobs.api.parts import LedgerPart, LinksPart
from agentjobs.api.schemas import WaitCountShown, WaitingShown
from agentjobs.api.shown import job_shown
from agentjobs.api.strict_route import StrictRoute

router = APIRouter(prefix="/v1/waiting", tags=["jobs"], route_class=StrictRoute)


@router.get(
    "",
    response_model=WaitingShown,
    operation_id="listWaiting",
    summary="Jobs that wait, by the moment of their next attempt",
    responses=problems(),
)
async def waiting(caller: Anyone, ledger: LedgerPart, links: LinksPart, limit: Limit = 50) -> WaitingShown:
    """Your own jobs; with the role review or admin, the tenant's."""
    user = visible_user(caller)
    jobs = await ledger.waits.waiting(caller.tenant, user=user, limit=limit)
    counts = await ledger.waits.counts(caller.tenant, user=user)
    return WaitingShown(
        items=[job_shown(job, links) for job in jobs],
        counts=[WaitCountShown(**count.model_dump()) for count in counts],
        total=sum(count.count for count in counts),
        links=links.waiting(),
    )
