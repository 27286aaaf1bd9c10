"""Bulk redrives: try out, start, watch, and what a person says to them."""

import uuid

from fastapi import APIRouter, Request
from starlette.responses import Response

from agentjobs.api import redrives as api
from agentjobs.api.parts import LedgerPart, LinksPart, agents_of
from agentjobs.api.redrives_given import BulkApproval, NewBulkRedrive
from agentjobs.console.charts import share
from agentjobs.console.choices import PAGE_ROWS, identifier
from agentjobs.console.forms import Form, given
from agentjobs.console.notices import Notice, done
from agentjobs.console.places import HOME
from agentjobs.console.rendering import page
from agentjobs.console.route import PageRoute, Reviewing, Sent
from agentjobs.domain.bulk import FINAL
from agentjobs.domain.failures import Category

router = APIRouter(prefix="/redrives", route_class=PageRoute)


@router.get("")
async def redrives(
    request: Request,
    visit: Reviewing,
    ledger: LedgerPart,
    links: LinksPart,
    reason: str = "",
    agent: str = "",
    cursor: str | None = None,
) -> Response:
    """Newest first, under a form for another one."""
    listed = await api.redrives(visit.caller, ledger, links, cursor=cursor, limit=PAGE_ROWS)
    return page(
        request,
        "redrives.html",
        listed=listed,
        reasons=list(Category),
        agents=agents_of(request).names(),
        given={"reason": reason, "agent": agent},
        cursor=cursor,
    )


@router.post("/try")
async def try_out(form: Sent, request: Request, visit: Reviewing, ledger: LedgerPart) -> Response:
    """What it would do. Nothing is done, and the form to do it stands below."""
    new = given(NewBulkRedrive, _ordered(form))
    tried = await api.tried_out(new, visit.caller, request, ledger)
    return page(request, "redrive_preview.html", order=new, tried=tried, key=str(uuid.uuid4()))


@router.post("")
async def start(form: Sent, request: Request, visit: Reviewing, ledger: LedgerPart, links: LinksPart) -> Response:
    """As the API does it. The preview's key makes two clicks one bulk redrive."""
    new = given(NewBulkRedrive, _ordered(form))
    key = identifier(form.text("key") or "", "key")
    shown = await api.started(new, visit.caller, key, request, ledger, links)
    return done(f"{HOME}redrives/{shown.id}", Notice.BULK_STARTED)


@router.get("/{id}")
async def redrive(id: str, request: Request, visit: Reviewing, ledger: LedgerPart, links: LinksPart) -> Response:
    """How far it has come."""
    shown = await api.redrive(id, visit.caller, ledger, links)
    return page(request, "redrive.html", redrive=shown, is_over=shown.state in FINAL, share=share)


@router.post("/{id}/approve")
async def approve(id: str, form: Sent, visit: Reviewing, ledger: LedgerPart, links: LinksPart) -> Response:
    """By another person than the one who ordered it."""
    approval = given(BulkApproval, {"note": form.text("note")})
    await api.approve(id, approval, visit.caller, ledger, links)
    return done(f"{HOME}redrives/{id}", Notice.BULK_APPROVED)


@router.post("/{id}/pause")
async def pause(id: str, visit: Reviewing, ledger: LedgerPart, links: LinksPart) -> Response:
    """For now."""
    await api.pause(id, visit.caller, ledger, links)
    return done(f"{HOME}redrives/{id}", Notice.BULK_PAUSED)


@router.post("/{id}/resume")
async def resume(id: str, visit: Reviewing, ledger: LedgerPart, links: LinksPart) -> Response:
    """A paused one."""
    await api.resume(id, visit.caller, ledger, links)
    return done(f"{HOME}redrives/{id}", Notice.BULK_RESUMED)


@router.post("/{id}/cancel")
async def cancel(id: str, visit: Reviewing, ledger: LedgerPart, links: LinksPart) -> Response:
    """For good."""
    await api.cancel(id, visit.caller, ledger, links)
    return done(f"{HOME}redrives/{id}", Notice.BULK_CANCELLED)


def _ordered(form: Form) -> dict[str, object]:
    wanted = {
        "reason": form.text("reason"),
        "agent": form.text("agent"),
        "policy_version": form.text("policy_version"),
        "died_after": form.moment("died_after"),
        "died_before": form.moment("died_before"),
        "ids": form.several("ids"),
    }
    return {
        "filter": {name: value for name, value in wanted.items() if value is not None},
        "note": form.text("note"),
        "policy": form.text("policy"),
        "again": form.is_set("again"),
        "canary": form.whole("canary"),
        "share": _part(form, "share_percent"),
        "rate_per_second": form.number("rate_per_second"),
        "failure_limit": _part(form, "failure_percent"),
        "verdict_seconds": form.whole("verdict_seconds"),
    }


def _part(form: Form, name: str) -> float | None:
    percent = form.number(name)
    return None if percent is None else percent / 100
