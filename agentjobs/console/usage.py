"""What the tenant has spent this month, on what, and what it may have at once; for the operator all tenants."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from agentjobs.api import budget, quota
from agentjobs.api.parts import LedgerPart, QuotasPart
from agentjobs.api.shown import month_shown
from agentjobs.console.rendering import page
from agentjobs.console.route import PageRoute, Visit
from agentjobs.console.spending import bars_of, quota_bars
from agentjobs.domain.quotas import Limits
from agentjobs.ledger.identity import Caller, Role
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.overview import Overview
from agentjobs.ledger.quotas import OwnLimits

TENANTS_SHOWN: Final = 200

router = APIRouter(prefix="/usage", route_class=PageRoute)


@router.get("")
async def usage(request: Request, visit: Visit, ledger: LedgerPart, installation: QuotasPart) -> Response:
    """Of the whole tenant, as the API tells it to anybody of it."""
    month = await budget.read(visit.caller, ledger)
    quotas = await quota.read(visit.caller, ledger, installation)
    return page(
        request,
        "usage.html",
        month=month,
        bars=bars_of(month),
        quota_bars=quota_bars(quotas),
        lines=await Overview(ledger.database).usage(visit.caller.tenant),
        tenants=await _tenants(visit.caller, ledger, installation),
        most_tenants=TENANTS_SHOWN,
    )


async def _tenants(caller: Caller, ledger: Ledger, installation: Limits) -> list[dict[str, object]]:
    """For the key that may see the quota of another tenant by the API: the first admin key."""
    if Role.ADMIN not in caller.roles or not await ledger.identity.may_make_tenants(caller.key_id):
        return []
    return [
        {"month": one, "bars": bars_of(month_shown(one)), "limits": _effective(one, installation)}
        for one in await Overview(ledger.database).tenants(limit=TENANTS_SHOWN)
    ]


def _effective(own: OwnLimits, installation: Limits) -> dict[str, int | None]:
    """The limits that hold; None is no limit."""
    default = installation.model_dump()
    return {
        name: default[name] if limit is None else limit or None
        for name, limit in own.model_dump(include=set(default)).items()
    }
