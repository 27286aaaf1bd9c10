"""Routes of dead letters: list, report, show, redrive, discard. For reviewers of the tenant."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from agentjobs.agents.spec import AgentRegistry, UnknownAgent
from agentjobs.api.authentication import Reviewer
from agentjobs.api.cursors import Cursor, Limit, page_of, position_of
from agentjobs.api.declared import problems, problems_with_body
from agentjobs.api.given import DiscardOrder, RedriveOrder
from agentjobs.api.letter_schemas import (
    AttemptCountShown,
    DeadLetterWithInput,
    DeathShown,
    InputChangeShown,
    ReportShown,
)
from agentjobs.api.parts import LedgerPart, LinksPart, agents_of, found
from agentjobs.api.problems import Problem, not_found, unacceptable
from agentjobs.api.schemas import DeadLetterPage, DeadLetterShown, EffectShown, SpentShown
from agentjobs.api.shown import Links, dead_letter_shown
from agentjobs.api.strict_route import StrictRoute
from agentjobs.domain.failures import Category
from agentjobs.domain.job import IDENTIFIER_PATTERN, Budget
from agentjobs.ledger.corrections import BeingUndone, Correction, InputChange, NotRaised
from agentjobs.ledger.dead_letters import Action, NotOpen
from agentjobs.ledger.identity import Caller
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.letter_report import WINDOW_HOURS, WINDOW_HOURS_LIMIT
from agentjobs.ledger.records import DeadLetterRecord
from agentjobs.tracing import contexts, names, spans

Payload = dict[str, str | bool]
Window = Annotated[
    int, Query(ge=1, le=WINDOW_HOURS_LIMIT, description="Up to 72 it is told by the hour, beyond that by the day.")
]

router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"], route_class=StrictRoute)


@router.get(
    "",
    response_model=DeadLetterPage,
    operation_id="listDeadLetters",
    summary="Open dead letters, latest death first",
    responses=problems(),
)
async def letters(
    caller: Reviewer,
    ledger: LedgerPart,
    links: LinksPart,
    reason: Category | None = None,
    agent: Annotated[str | None, Query(pattern=IDENTIFIER_PATTERN)] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> DeadLetterPage:
    """Of the whole tenant."""
    rows = await ledger.dead_letters.page(
        caller.tenant, reason=reason, agent=agent, before=position_of(cursor), limit=limit + 1
    )
    page, following = page_of(rows, limit, "died_at")
    return DeadLetterPage(items=[dead_letter_shown(letter, links) for letter in page], next_cursor=following)


@router.get(
    "/report",
    response_model=ReportShown,
    operation_id="reportDeadLetters",
    summary="Dead letters, counted",
    responses=problems(),
)
async def report(caller: Reviewer, ledger: LedgerPart, window_hours: Window = WINDOW_HOURS) -> ReportShown:
    """Open ones whole; what came and went, and what became of decisions, within the window. All at one moment."""
    counted = await ledger.dead_letters.report(caller.tenant, window_hours=window_hours)
    return ReportShown.model_validate(counted.model_dump())


@router.get(
    "/{id}",
    response_model=DeadLetterWithInput,
    operation_id="readDeadLetter",
    summary="One dead letter with the original request and what was spent on what",
    responses=problems(404, 410),
)
async def letter(id: str, caller: Reviewer, ledger: LedgerPart, links: LinksPart) -> DeadLetterWithInput:
    """The request is somebody's own words, so each reading is on record."""
    letters, tenant = ledger.dead_letters, caller.tenant
    record = found(await letters.read(tenant, id))
    text = found(await letters.read_input(tenant, id, actor=caller.user))
    return DeadLetterWithInput(
        **dead_letter_shown(record, links).model_dump(),
        input={"text": text},
        input_changes=[_change_shown(change) for change in await letters.input_changes(tenant, id)],
        spent=[SpentShown(**line.model_dump()) for line in await letters.spent(tenant, id)],
        tried=[AttemptCountShown(**line.model_dump()) for line in await letters.tried(tenant, id)],
        deaths=[DeathShown(**death.model_dump()) for death in await letters.deaths(tenant, id)],
        effects=[EffectShown.model_validate(effect) for effect in await letters.effects_at_end(tenant, id)],
    )


def _change_shown(change: InputChange) -> InputChangeShown:
    return InputChangeShown(**change.model_dump(exclude={"old_text"}), old_input={"text": change.old_text})


@router.post(
    "/{id}/redrive",
    status_code=202,
    response_model=DeadLetterShown,
    operation_id="redriveDeadLetter",
    summary="Run the dead job again",
    responses=problems_with_body(404, 409, 410),
)
async def redrive(
    id: str, order: RedriveOrder, caller: Reviewer, request: Request, ledger: LedgerPart, links: LinksPart
) -> DeadLetterShown:
    """It keeps its keys: only what is missing is done. With another input, what is not done is asked anew."""
    payload: Payload = {"policy": order.policy, "again": order.again}
    correction = _correction(order)
    if correction.text is not None:
        payload["input_corrected"] = True
    if correction.budget.steps is not None:
        letter = found(await ledger.dead_letters.read(caller.tenant, id))
        _check_steps(correction.budget.steps, letter, order, agents_of(request))
    return await _ask("redrive", id, caller, order.note, payload, ledger, links, correction)


def _correction(order: RedriveOrder) -> Correction:
    budget = Budget() if order.budget is None else Budget(**order.budget.model_dump())
    return Correction(text=None if order.input is None else order.input.text, budget=budget)


def _check_steps(steps: int, letter: DeadLetterRecord, order: RedriveOrder, agents: AgentRegistry) -> None:
    try:
        current = order.policy == "current"
        spec = agents.current(letter.agent) if current else agents.version(letter.agent, letter.policy_version)
    except UnknownAgent:
        return  # it dies again, and says of what
    if steps > spec.max_steps:
        detail = f"This version of the agent takes {spec.max_steps} steps at most: a new version may take more."
        raise unacceptable("/budget/steps", detail)


@router.post(
    "/{id}/discard",
    status_code=202,
    response_model=DeadLetterShown,
    operation_id="discardDeadLetter",
    summary="Give the dead job up",
    responses=problems_with_body(404, 409, 410),
)
async def discard(
    id: str, order: DiscardOrder, caller: Reviewer, ledger: LedgerPart, links: LinksPart
) -> DeadLetterShown:
    """What it did is undone where that is possible."""
    return await _ask("discard", id, caller, order.note, {}, ledger, links)


async def _ask(
    action: Action,
    id: str,
    caller: Caller,
    note: str,
    payload: Payload,
    ledger: Ledger,
    links: Links,
    correction: Correction | None = None,
) -> DeadLetterShown:
    try:
        known = await ledger.dead_letters.request(
            action,
            caller.tenant,
            id,
            actor=caller.user,
            note=note,
            payload=payload,
            correction=correction,
            traceparent=contexts.current_traceparent(),
        )
    except BeingUndone:
        detail = "The job only goes on to be undone: redrive it without another input, or discard it."
        raise Problem(409, "being_undone", detail) from None
    except NotRaised as low:
        raise unacceptable(f"/budget/{low.limit}", _told_of(low)) from None
    except NotOpen as taken:
        found(await ledger.dead_letters.read(caller.tenant, id))  # an erased one is gone, and not taken
        detail = f"The letter is {taken.state} already; only an open one takes a word."
        raise Problem(409, "letter_not_open", detail) from None
    if not known:
        raise not_found()
    spans.about({names.JOB: id})
    return dead_letter_shown(found(await ledger.dead_letters.read(caller.tenant, id)), links)


def _told_of(low: NotRaised) -> str:
    if low.least is None:
        return "The job has no such limit: leave it out."
    return f"Name more than {low.least}: what the limit is, or what is spent and held back already."
