"""Routes of bulk redrives: try out, start, watch, approve, pause, resume, cancel. For reviewers of the tenant."""

import uuid

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from agentjobs.api.authentication import Reviewer
from agentjobs.api.cursors import Cursor, Limit, page_of, position_of
from agentjobs.api.declared import headers, problems, problems_with_body
from agentjobs.api.idempotency_key import idempotency_key, key_header
from agentjobs.api.parts import LedgerPart, LinksPart, found
from agentjobs.api.problems import Problem, not_found, unacceptable
from agentjobs.api.redrives_given import BulkApproval, NewBulkRedrive
from agentjobs.api.redrives_shown import (
    PreviewShown,
    RedrivePage,
    RedriveShown,
    preview_shown,
    redrive_listed,
    redrive_shown,
)
from agentjobs.api.shown import Links
from agentjobs.api.strict_route import StrictRoute
from agentjobs.domain.bulk import RedriveState
from agentjobs.domain.keys import fingerprint
from agentjobs.ledger.identity import Caller
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.redrive_records import (
    LetterFilter,
    NoLetters,
    RedriveKeyReused,
    RedriveOrder,
    SamePerson,
    Word,
    WordRefused,
)
from agentjobs.tracing.contexts import current_traceparent

router = APIRouter(prefix="/v1/redrives", tags=["bulk redrives"], route_class=StrictRoute)

_KEY_HEADER = key_header("Under one key a request makes one bulk redrive, however often it is sent.")
_TRIED = {"model": PreviewShown, "description": "A dry run: what would be done. Nothing was."}


@router.post(
    "",
    status_code=202,
    response_model=RedriveShown,
    operation_id="startRedrive",
    summary="Redrive many dead letters, a few first",
    responses={
        200: _TRIED,
        202: {"headers": headers({"Location": "The bulk redrive's status."})},
        **problems_with_body(409),
    },
    openapi_extra={"parameters": [_KEY_HEADER]},
)
async def start(
    new: NewBulkRedrive,
    caller: Reviewer,
    request: Request,
    response: Response,
    ledger: LedgerPart,
    links: LinksPart,
) -> RedriveShown | Response:
    """The letters are chosen now, once. Letters with an unsafe effect in doubt are left out without `again`."""
    key = idempotency_key(request)
    if new.dry_run:
        return JSONResponse((await tried_out(new, caller, request, ledger)).model_dump(mode="json"))
    shown = await started(new, caller, key, request, ledger, links)
    response.headers["Location"] = f"/v1/redrives/{shown.id}"
    return shown


async def tried_out(new: NewBulkRedrive, caller: Caller, request: Request, ledger: Ledger) -> PreviewShown:
    """What it would do, and nothing done."""
    letters = await ledger.redrives.preview(caller.tenant, _filter(new))
    above: int = request.app.state.redrive_approval_above
    return preview_shown(letters, again=new.again, approval_above=above)


async def started(
    new: NewBulkRedrive, caller: Caller, key: str | None, request: Request, ledger: Ledger, links: Links
) -> RedriveShown:
    """Accepted, or the first one under this key."""
    if new.note is None:
        raise unacceptable("/note", "Say why: the note is kept with every letter.")
    above: int = request.app.state.redrive_approval_above
    return await _accepted(_order(new, new.note, caller, key), above, ledger, links)


@router.get(
    "",
    response_model=RedrivePage,
    operation_id="listRedrives",
    summary="Bulk redrives, newest first",
    responses=problems(),
)
async def redrives(
    caller: Reviewer,
    ledger: LedgerPart,
    links: LinksPart,
    state: RedriveState | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> RedrivePage:
    """Of the whole tenant."""
    rows = await ledger.redrives.page(caller.tenant, state=state, before=position_of(cursor), limit=limit + 1)
    page, following = page_of(rows, limit, "created_at")
    return RedrivePage(items=[redrive_listed(record, links) for record in page], next_cursor=following)


@router.get(
    "/{id}",
    response_model=RedriveShown,
    operation_id="readRedrive",
    summary="Where a bulk redrive stands",
    responses=problems(404),
)
async def redrive(id: str, caller: Reviewer, ledger: LedgerPart, links: LinksPart) -> RedriveShown:
    """With its letters counted by what has become of them."""
    return await _shown(caller.tenant, id, ledger, links)


@router.post(
    "/{id}/approve",
    response_model=RedriveShown,
    operation_id="approveRedrive",
    summary="Let a large bulk redrive begin",
    responses=problems_with_body(404, 409),
)
async def approve(
    id: str, approval: BulkApproval, caller: Reviewer, ledger: LedgerPart, links: LinksPart
) -> RedriveShown:
    """By another person than the one who ordered it."""
    return await _change(Word.APPROVE, id, caller, approval.note, ledger, links)


@router.post(
    "/{id}/pause",
    response_model=RedriveShown,
    operation_id="pauseRedrive",
    summary="Touch no further letter for now",
    responses=problems(404, 409),
)
async def pause(id: str, caller: Reviewer, ledger: LedgerPart, links: LinksPart) -> RedriveShown:
    """It holds when the answer is there; jobs that were redriven before go on."""
    return await _change(Word.PAUSE, id, caller, None, ledger, links)


@router.post(
    "/{id}/resume",
    response_model=RedriveShown,
    operation_id="resumeRedrive",
    summary="Go on where it was paused",
    responses=problems(404, 409),
)
async def resume(id: str, caller: Reviewer, ledger: LedgerPart, links: LinksPart) -> RedriveShown:
    """Only a paused one: what has stopped is started anew, with a canary of its own."""
    return await _change(Word.RESUME, id, caller, None, ledger, links)


@router.post(
    "/{id}/cancel",
    response_model=RedriveShown,
    operation_id="cancelRedrive",
    summary="Touch no further letter for good",
    responses=problems(404, 409),
)
async def cancel(id: str, caller: Reviewer, ledger: LedgerPart, links: LinksPart) -> RedriveShown:
    """The letters that still wait stay open, and are free for another bulk redrive."""
    return await _change(Word.CANCEL, id, caller, None, ledger, links)


async def _accepted(order: RedriveOrder, approval_above: int, ledger: Ledger, links: Links) -> RedriveShown:
    try:
        record = await ledger.redrives.accept(order, approval_above=approval_above)
    except NoLetters:
        detail = "No open letter is left to take: a dry run says what the filter finds and what is left out."
        raise Problem(409, "no_letters", detail) from None
    except RedriveKeyReused:
        detail = "This Idempotency-Key was used for another request: choose a new key, or send the first request."
        raise Problem(422, "idempotency_key_reused", detail) from None
    return await _shown(order.tenant, record.id, ledger, links)


async def _change(
    word: Word, id: str, caller: Caller, note: str | None, ledger: Ledger, links: Links
) -> RedriveShown:
    try:
        known = await ledger.redrives.change(word, caller.tenant, id, actor=caller.user, note=note)
    except SamePerson:
        detail = "You have ordered it: another reviewer of the tenant approves it."
        raise Problem(403, "second_person_needed", detail) from None
    except WordRefused as refused:
        detail = f"The bulk redrive is {refused.state}: it does not take this word now."
        raise Problem(409, "word_refused", detail) from None
    if not known:
        raise not_found()
    return await _shown(caller.tenant, id, ledger, links)


async def _shown(tenant: str, id: str, ledger: Ledger, links: Links) -> RedriveShown:
    record = found(await ledger.redrives.read(tenant, id))
    standing = await ledger.redrives.standing(record)
    return redrive_shown(record, standing, await ledger.redrives.skipped(id), links)


def _filter(new: NewBulkRedrive) -> LetterFilter:
    return LetterFilter.model_validate(new.filter.model_dump())


def _order(new: NewBulkRedrive, note: str, caller: Caller, key: str | None) -> RedriveOrder:
    return RedriveOrder(
        id=str(uuid.uuid4()),
        tenant=caller.tenant,
        created_by=caller.user,
        filter=_filter(new),
        key=key,
        fingerprint=fingerprint(new.model_dump(mode="json")),
        traceparent=current_traceparent(),
        note=note,
        **new.model_dump(exclude={"filter", "note", "dry_run"}),
    )
