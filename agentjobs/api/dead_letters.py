"""Routes of dead letters: list, report, show, redrive, discard. For reviewers of the tenant."""

from typing import Annotated

from fastapi import APIRouter, Query

from agentjobs.api.authentication import Reviewer
from agentjobs.api.cursors import Cursor, Limit, page_of, position_of
from agentjobs.api.declared import problems, problems_with_body
from agentjobs.api.given import DiscardOrder, RedriveOrder
from agentjobs.api.parts import LedgerPart, LinksPart, found
from agentjobs.api.problems import Problem, not_found
from agentjobs.api.schemas import (
    DeadLetterPage,
    DeadLetterShown,
    DeadLetterWithInput,
    ReportLineShown,
    ReportShown,
    SpentShown,
)
from agentjobs.api.shown import Links, dead_letter_shown
from agentjobs.api.strict_route import StrictRoute
from agentjobs.domain.failures import Category
from agentjobs.domain.job import IDENTIFIER_PATTERN
from agentjobs.ledger.dead_letters import Action, NotOpen
from agentjobs.ledger.identity import Caller
from agentjobs.ledger.ledger import Ledger

Payload = dict[str, str | bool]

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
async def report(caller: Reviewer, ledger: LedgerPart) -> ReportShown:
    """Open ones by reason, agent and version; all by state."""
    counted = await ledger.dead_letters.report(caller.tenant)
    return ReportShown(
        open=[ReportLineShown(**line.model_dump()) for line in counted.open],
        by_state=counted.by_state,
        open_count=sum(line.count for line in counted.open),
    )


@router.get(
    "/{id}",
    response_model=DeadLetterWithInput,
    operation_id="readDeadLetter",
    summary="One dead letter with the original request and what was spent on what",
    responses=problems(404),
)
async def letter(id: str, caller: Reviewer, ledger: LedgerPart, links: LinksPart) -> DeadLetterWithInput:
    """The request is somebody's own words, so each reading is on record."""
    record = found(await ledger.dead_letters.read(caller.tenant, id))
    text = found(await ledger.dead_letters.read_input(caller.tenant, id, actor=caller.user))
    spent = [SpentShown(**line.model_dump()) for line in await ledger.dead_letters.spent(caller.tenant, id)]
    return DeadLetterWithInput(**dead_letter_shown(record, links).model_dump(), input={"text": text}, spent=spent)


@router.post(
    "/{id}/redrive",
    status_code=202,
    response_model=DeadLetterShown,
    operation_id="redriveDeadLetter",
    summary="Run the dead job again",
    responses=problems_with_body(404, 409),
)
async def redrive(
    id: str, order: RedriveOrder, caller: Reviewer, ledger: LedgerPart, links: LinksPart
) -> DeadLetterShown:
    """It keeps its keys: only what is missing is done."""
    payload: Payload = {"policy": order.policy, "again": order.again}
    return await _ask("redrive", id, caller, order.note, payload, ledger, links)


@router.post(
    "/{id}/discard",
    status_code=202,
    response_model=DeadLetterShown,
    operation_id="discardDeadLetter",
    summary="Give the dead job up",
    responses=problems_with_body(404, 409),
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
    payload: dict[str, str | bool],
    ledger: Ledger,
    links: Links,
) -> DeadLetterShown:
    try:
        known = await ledger.dead_letters.request(
            action, caller.tenant, id, actor=caller.user, note=note, payload=payload
        )
    except NotOpen as taken:
        detail = f"The letter is {taken.state} already; only an open one takes a word."
        raise Problem(409, "letter_not_open", detail) from None
    if not known:
        raise not_found()
    return dead_letter_shown(found(await ledger.dead_letters.read(caller.tenant, id)), links)
