"""Routes of quotas: anybody may see them; the first admin key, and no admin of a tenant, sets them."""

from typing import Annotated

from fastapi import APIRouter, Query

from agentjobs.api.authentication import Admin, Anyone
from agentjobs.api.declared import problems, problems_with_body
from agentjobs.api.given import QuotaLimits
from agentjobs.api.parts import LedgerPart, QuotasPart, found
from agentjobs.api.problems import Problem
from agentjobs.api.schemas import OwnLimitsShown, QuotaShown, QuotaUseShown, RunningShown
from agentjobs.api.strict_route import StrictRoute
from agentjobs.domain.job import IDENTIFIER_PATTERN
from agentjobs.domain.quotas import Limits
from agentjobs.ledger.identity import Caller
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.quotas import OwnLimits, QuotaRecord

router = APIRouter(prefix="/v1/quota", tags=["quota"], route_class=StrictRoute)

OfTenant = Annotated[
    str | None,
    Query(pattern=IDENTIFIER_PATTERN, description="Default: your own. Another one: for the first admin key only."),
]


@router.get(
    "",
    response_model=QuotaShown,
    operation_id="readQuota",
    summary="What you and your tenant may have at once, and have",
    responses=problems(404),
)
async def read(
    caller: Anyone, ledger: LedgerPart, installation: QuotasPart, tenant: OfTenant = None
) -> QuotaShown:
    """What is counted of a user is counted of the key's user."""
    if tenant not in {None, caller.tenant}:
        await _require_first(caller, ledger, "see the quota of another tenant")
    return await _shown(tenant or caller.tenant, caller, ledger, installation)


@router.put(
    "",
    response_model=QuotaShown,
    operation_id="setQuota",
    summary="Set what a tenant and its users may have at once",
    responses=problems_with_body(404),
)
async def replace(
    wanted: QuotaLimits, caller: Admin, ledger: LedgerPart, installation: QuotasPart, tenant: OfTenant = None
) -> QuotaShown:
    """It holds from the next submission on; what is accepted stays accepted. Repeating it changes nothing."""
    await _require_first(caller, ledger, "set a quota, also that of its own tenant")
    concerned = tenant or caller.tenant
    limits = OwnLimits(running_cap=wanted.running, **wanted.model_dump(exclude={"running"}))
    if not await ledger.quotas.set(concerned, limits, by=caller):
        raise Problem(404, "unknown_tenant", "There is no such tenant: creating a key for it makes it.")
    return await _shown(concerned, caller, ledger, installation)


async def _require_first(caller: Caller, ledger: Ledger, what: str) -> None:
    if not await ledger.identity.may_make_tenants(caller.key_id):
        raise Problem(403, "first_key_needed", f"Only the first admin key may {what}.")


async def _shown(tenant: str, caller: Caller, ledger: Ledger, installation: Limits) -> QuotaShown:
    record: QuotaRecord = found(await ledger.quotas.read(tenant, caller.user, installation))
    uses = {use.quota.value: QuotaUseShown(limit=use.limit, in_use=use.in_use) for use in record.quotas}
    return QuotaShown(
        tenant=record.tenant,
        user=caller.user,
        **uses,
        running=RunningShown(limit=record.running_cap, in_use=record.running),
        own=OwnLimitsShown(**record.model_dump(include={"in_flight", "per_minute", "queue_length"})),
    )
