"""For admins: who gets in and may do what, who is told, and what was erased."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from agentjobs.api import grants, keys, webhooks
from agentjobs.api.cursors import page_of, position_of
from agentjobs.api.given import NewGrant
from agentjobs.api.parts import LedgerPart
from agentjobs.console.choices import PAGE_ROWS
from agentjobs.console.forms import given
from agentjobs.console.notices import Notice, done
from agentjobs.console.places import HOME
from agentjobs.console.rendering import now_of, page
from agentjobs.console.route import Administering, PageRoute, Sent

ADMIN = f"{HOME}admin"

router = APIRouter(prefix="/admin", route_class=PageRoute)


@router.get("")
async def access(request: Request, visit: Administering, ledger: LedgerPart) -> Response:
    """Keys, those that hold first, and grants."""
    now = now_of(request)
    listed = (await keys.keys(visit.caller, ledger)).items
    over = {key.id for key in listed if key.revoked_at or (key.expires_at and key.expires_at <= now)}
    return page(
        request,
        "admin.html",
        keys=sorted(listed, key=lambda key: key.id in over),
        over=over,
        grants=(await grants.grants(visit.caller, ledger)).items,
    )


@router.post("/keys/{id}/revoke")
async def revoke_key(id: str, visit: Administering, request: Request, ledger: LedgerPart) -> Response:
    """As the API does it. Who revokes its own key is signed out by it."""
    await keys.revoke(id, visit.caller, request, ledger)
    return done(ADMIN, Notice.KEY_REVOKED)


@router.post("/grants")
async def add_grant(form: Sent, visit: Administering, ledger: LedgerPart) -> Response:
    """As the API does it."""
    new = given(NewGrant, {"user": form.text("user"), "action": form.text("action")})
    await grants.add(new, visit.caller, ledger)
    return done(ADMIN, Notice.GRANT_ADDED)


@router.post("/grants/revoke")
async def revoke_grant(form: Sent, visit: Administering, ledger: LedgerPart) -> Response:
    """As the API does it."""
    old = given(NewGrant, {"user": form.text("user"), "action": form.text("action")})
    await grants.revoke(visit.caller, ledger, old.user, old.action)
    return done(ADMIN, Notice.GRANT_REVOKED)


@router.get("/webhooks")
async def hooks(request: Request, visit: Administering, ledger: LedgerPart) -> Response:
    """Oldest first, with what is wrong with each."""
    return page(request, "webhooks.html", webhooks=(await webhooks.webhooks(visit.caller, ledger)).items)


@router.get("/webhooks/{id}")
async def hook(
    id: str, request: Request, visit: Administering, ledger: LedgerPart, cursor: str | None = None
) -> Response:
    """What it was told, and whether it arrived."""
    shown = await webhooks.webhook(id, visit.caller, ledger)
    listed = await webhooks.deliveries(id, visit.caller, ledger, cursor=cursor, limit=PAGE_ROWS)
    return page(request, "webhook.html", webhook=shown, listed=listed, cursor=cursor)


@router.post("/webhooks/{id}/enable")
async def enable_hook(id: str, visit: Administering, ledger: LedgerPart) -> Response:
    """As the API does it."""
    await webhooks.enable(id, visit.caller, ledger)
    return done(f"{ADMIN}/webhooks/{id}", Notice.WEBHOOK_ENABLED)


@router.post("/webhooks/{id}/test")
async def send_test(id: str, visit: Administering, ledger: LedgerPart) -> Response:
    """As the API does it."""
    await webhooks.send_test(id, visit.caller, ledger)
    return done(f"{ADMIN}/webhooks/{id}", Notice.WEBHOOK_TESTED)


@router.post("/webhooks/{id}/deliveries/{delivery}/replay")
async def replay(id: str, delivery: str, visit: Administering, ledger: LedgerPart) -> Response:
    """As the API does it."""
    await webhooks.replay(id, delivery, visit.caller, ledger)
    return done(f"{ADMIN}/webhooks/{id}", Notice.DELIVERY_REPLAYED)


@router.get("/erasures")
async def erasures(
    request: Request, visit: Administering, ledger: LedgerPart, cursor: str | None = None
) -> Response:
    """Latest first. One is ordered by the API or the command line, where nothing is a slip of the mouse."""
    before = position_of(cursor)
    rows = await ledger.erasures.page(visit.caller.tenant, before=before, limit=PAGE_ROWS + 1)
    shown, following = page_of(rows, PAGE_ROWS, "created_at")
    listed = {"items": shown, "next_cursor": following}
    return page(request, "erasures.html", listed=listed, cursor=cursor)
