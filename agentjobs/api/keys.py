"""Routes of API keys. For admins of the tenant."""

from datetime import timedelta

from fastapi import APIRouter, Request, Response

from agentjobs.api.authentication import Admin
from agentjobs.api.declared import headers, problems, problems_with_body
from agentjobs.api.given import NewKey
from agentjobs.api.parts import LedgerPart, found
from agentjobs.api.problems import Problem
from agentjobs.api.schemas import KeyList, KeyMade, KeyShown
from agentjobs.api.shown import key_shown
from agentjobs.api.strict_route import StrictRoute
from agentjobs.ledger.identity import Caller
from agentjobs.ledger.ledger import Ledger

router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=StrictRoute)


@router.post(
    "",
    status_code=201,
    response_model=KeyMade,
    operation_id="createKey",
    summary="Make an API key",
    responses={201: {"headers": headers({"Location": "The key's record."})}, **problems_with_body()},
)
async def create(new: NewKey, caller: Admin, response: Response, ledger: LedgerPart) -> KeyMade:
    """The answer is the only place that shows the key."""
    tenant = await _tenant_for(new, caller, ledger)
    lifetime = timedelta(seconds=new.expires_in_seconds) if new.expires_in_seconds else None
    plain, record = await ledger.identity.create_key(
        tenant, new.user, frozenset(new.roles), lifetime=lifetime, by=caller
    )
    response.headers["Location"] = f"/v1/keys/{record.id}"
    return KeyMade(**key_shown(record).model_dump(), key=plain)


@router.get("", response_model=KeyList, operation_id="listKeys", summary="All keys", responses=problems())
async def keys(caller: Admin, ledger: LedgerPart) -> KeyList:
    """Also the revoked ones."""
    return KeyList(items=[key_shown(key) for key in await ledger.identity.keys(caller.tenant)])


@router.get("/{id}", response_model=KeyShown, operation_id="readKey", summary="One key", responses=problems(404))
async def key(id: str, caller: Admin, ledger: LedgerPart) -> KeyShown:
    """Without its secret."""
    return key_shown(found(await ledger.identity.key(caller.tenant, id)))


@router.delete("/{id}", status_code=204, operation_id="revokeKey", summary="Revoke a key", responses=problems(404))
async def revoke(id: str, caller: Admin, request: Request, ledger: LedgerPart) -> None:
    """Refused from now on; by other processes of this API within five seconds. Repeating it changes nothing."""
    found(await ledger.identity.revoke_key(caller.tenant, id, by=caller))
    request.app.state.authenticator.forget(id)


async def _tenant_for(new: NewKey, caller: Caller, ledger: Ledger) -> str:
    if new.tenant is None or new.tenant == caller.tenant:
        return caller.tenant
    if not await ledger.identity.may_make_tenants(caller.key_id):
        raise Problem(403, "other_tenant", "Only the first admin key may make keys for another tenant.")
    await ledger.identity.create_tenant(new.tenant, by=caller)
    return new.tenant
