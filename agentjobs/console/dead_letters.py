"""The dead-letter desk: letters, one letter, the report, and a reviewer's word."""

from decimal import Decimal, InvalidOperation
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from agentjobs.api import dead_letters as api
from agentjobs.api.given import DiscardOrder, RedriveOrder
from agentjobs.api.parts import LedgerPart, LinksPart, agents_of, found
from agentjobs.api.problems import Problem, unacceptable
from agentjobs.api.shown import dead_letter_shown
from agentjobs.console.charts import bars, columns
from agentjobs.console.choices import PAGE_ROWS, chosen, identifier
from agentjobs.console.forms import Form, given
from agentjobs.console.notices import Notice, done
from agentjobs.console.places import HOME
from agentjobs.console.rendering import page
from agentjobs.console.route import PageRoute, Reviewing, Sent
from agentjobs.domain.failures import Category

WINDOWS: Final = {"24": "24 hours", "72": "3 days", "336": "14 days", "720": "30 days", "2160": "90 days"}

router = APIRouter(prefix="/dead", route_class=PageRoute)


@router.get("")
async def letters(
    request: Request,
    visit: Reviewing,
    ledger: LedgerPart,
    links: LinksPart,
    reason: str = "",
    agent: str = "",
    cursor: str | None = None,
) -> Response:
    """Latest death first."""
    listed = await api.letters(
        visit.caller,
        ledger,
        links,
        reason=chosen(Category, reason, "reason"),
        agent=identifier(agent, "agent"),
        cursor=cursor,
        limit=PAGE_ROWS,
    )
    return page(
        request,
        "dead.html",
        listed=listed,
        reasons=list(Category),
        agents=agents_of(request).names(),
        given={"reason": reason, "agent": agent},
        cursor=cursor,
    )


@router.get("/report")
async def report(request: Request, visit: Reviewing, ledger: LedgerPart, window: str = "336") -> Response:
    """What is open, what came and went, and what became of decisions."""
    if window not in WINDOWS:
        raise unacceptable("query:window", "There is no such choice.")
    counted = await api.report(visit.caller, ledger, int(window))
    drawn = columns(counted.flow)
    return page(
        request,
        "dead_report.html",
        report=counted,
        columns=drawn,
        most=max((max(column.died, column.decided) for column in drawn), default=0),
        bars=bars(counted.open),
        windows=WINDOWS,
        window=window,
    )


@router.get("/{id}")
async def letter(
    id: str, request: Request, visit: Reviewing, ledger: LedgerPart, links: LinksPart, show: str = ""
) -> Response:
    """What somebody needs to decide. The request itself only when it is asked for, since that is put on record."""
    kept, tenant = ledger.dead_letters, visit.caller.tenant
    record = found(await kept.read(tenant, id))
    shown = await api.letter(id, visit.caller, ledger, links) if show == "request" else None
    return page(
        request,
        "dead_letter.html",
        letter=dead_letter_shown(record, links),
        full=shown,
        spent=await kept.spent(tenant, id),
        tried=await kept.tried(tenant, id),
        deaths=await kept.deaths(tenant, id),
        trail=await ledger.audit.page(tenant, target=id, limit=20),
    )


@router.post("/{id}/redrive")
async def redrive(
    id: str, form: Sent, visit: Reviewing, request: Request, ledger: LedgerPart, links: LinksPart
) -> Response:
    """As the API does it."""
    order = given(RedriveOrder, _redrive(form))
    await api.redrive(id, order, visit.caller, request, ledger, links)
    return done(f"{HOME}dead/{id}", Notice.REDRIVE_ASKED)


@router.post("/{id}/discard")
async def discard(id: str, form: Sent, visit: Reviewing, ledger: LedgerPart, links: LinksPart) -> Response:
    """As the API does it."""
    order = given(DiscardOrder, {"note": form.text("note")})
    await api.discard(id, order, visit.caller, ledger, links)
    return done(f"{HOME}dead/{id}", Notice.DISCARD_ASKED)


def _redrive(form: Form) -> dict[str, object]:
    budget = {"tokens": form.whole("tokens"), "usd": _usd(form), "steps": form.whole("steps")}
    raised = {name: value for name, value in budget.items() if value is not None}
    text = form.text("text")
    return {
        "note": form.text("note"),
        "policy": form.text("policy"),
        "again": form.is_set("again"),
        "input": None if text is None else {"text": text},
        "budget": raised or None,
    }


def _usd(form: Form) -> Decimal | None:
    text = form.text("usd")
    try:
        return None if text is None else Decimal(text)
    except InvalidOperation:
        raise Problem(422, "invalid_input", "Give the amount as digits, such as 12.50.") from None
