"""Pages of jobs: the list, one job with its timeline, and the wish to cancel."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from agentjobs.api import approvals
from agentjobs.api import jobs as api
from agentjobs.api.event_format import SNAPSHOT
from agentjobs.api.parts import LedgerPart, LinksPart, agents_of
from agentjobs.console.choices import PAGE_ROWS, chosen, identifier
from agentjobs.console.notices import Notice, done
from agentjobs.console.places import HOME
from agentjobs.console.rendering import page
from agentjobs.console.route import PageRoute, Submitting, Visit
from agentjobs.console.timeline import text_so_far, timeline
from agentjobs.domain.effects import EffectClass
from agentjobs.domain.events import EventType
from agentjobs.domain.states import LIVE, JobState
from agentjobs.ledger.jobs import Jobs
from agentjobs.ledger.records import EventRecord

EVENTS_AT_ONCE: Final = 1_000
EVENTS_LIMIT: Final = 5_000
"""An answer of many pages has fewer pieces. What lies behind is not shown."""

STREAMED: Final = (SNAPSHOT, *EventType)
"""A browser hands over only events whose names were asked for."""

router = APIRouter(prefix="/jobs", route_class=PageRoute)


@router.get("")
async def jobs(
    request: Request,
    visit: Visit,
    ledger: LedgerPart,
    links: LinksPart,
    state: str = "",
    agent: str = "",
    cursor: str | None = None,
) -> Response:
    """Newest first."""
    listed = await api.jobs(
        visit.caller,
        ledger,
        links,
        state=chosen(JobState, state, "state"),
        agent=identifier(agent, "agent"),
        cursor=cursor,
        limit=PAGE_ROWS,
    )
    agents = agents_of(request).names()
    given = {"state": state, "agent": agent}
    return page(
        request, "jobs.html", listed=listed, states=list(JobState), agents=agents, given=given, cursor=cursor
    )


@router.get("/{id}")
async def job(id: str, request: Request, visit: Visit, ledger: LedgerPart, links: LinksPart) -> Response:
    """Where it stands, how it got there, and what it did."""
    shown = await api.status(id, visit.caller, ledger, links)
    attempts = (await api.attempts(id, visit.caller, ledger)).items
    events = await _events(ledger.jobs, id)
    effects = [
        effect for effect in await ledger.jobs.effects(id) if effect.effect_class is not EffectClass.READ_ONLY
    ]
    return page(
        request,
        "job.html",
        job=shown,
        is_live=shown.state in LIVE,
        entries=timeline(attempts, events),
        text=text_so_far(events) if shown.state in LIVE else "",
        effects=effects,
        approvals=(await approvals.approvals_of_job(id, visit.caller, ledger)).items,
        events=STREAMED,
    )


@router.post("/{id}/cancel")
async def cancel(id: str, visit: Submitting, ledger: LedgerPart, links: LinksPart) -> Response:
    """As the API does it."""
    await api.cancel(id, visit.caller, ledger, links)
    return done(f"{HOME}jobs/{id}", Notice.CANCEL_ASKED)


async def _events(jobs: Jobs, job_id: str) -> list[EventRecord]:
    events: list[EventRecord] = []
    while len(events) < EVENTS_LIMIT:
        after = events[-1].seq if events else 0
        more = await jobs.events(job_id, after=after, limit=EVENTS_AT_ONCE)
        events += more
        if len(more) < EVENTS_AT_ONCE:
            break
    return events
