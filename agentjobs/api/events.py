"""The route of a job's event stream (docs/events.md)."""

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from agentjobs.api.authentication import Anyone, Authenticator, visible_user
from agentjobs.api.declared import headers, problems
from agentjobs.api.event_feed import EventFeed
from agentjobs.api.event_stream import EventStream, OpenStreams, Snapshot, Telling
from agentjobs.api.parts import LedgerPart, LinksPart, found
from agentjobs.api.problems import Problem
from agentjobs.api.shown import Links, job_shown
from agentjobs.api.strict_route import StrictRoute
from agentjobs.ledger.events import Events, Stand
from agentjobs.ledger.identity import Caller
from agentjobs.ledger.ledger import Ledger

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)

_SEQ_OR_NONE: Final = re.compile(r"^[0-9]{0,9}$")
_RESUME_HEADER: Final = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "The `id` of the last event that arrived: the stream goes on strictly after it.",
    "schema": {"type": "string", "pattern": _SEQ_OR_NONE.pattern},
}
_EVENT: Final = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_STREAM: Final = {
    "description": "The stream. Without an id to go on from, it begins with the event `snapshot`: the status. "
    "Then comes each event of the job: `id` is its seq, `event` its type, `data` one line of JSON with `seq`, "
    "`type`, `at` and what belongs to the type. It ends at a final state, or at `dead`.",
    "headers": headers({"X-Accel-Buffering": "That proxies are to pass events on at once."}),
    # One event of the stream, as OpenAPI 3.2 has it: the keyword `schema` would mean the whole stream.
    "content": {"text/event-stream": {"itemSchema": _EVENT}},
}
_OVER: Final = {"description": "The job is over or dead, and its last event is known: do not connect again."}


@router.get(
    "/{id}/events",
    status_code=200,
    response_class=EventStream,
    operation_id="streamEvents",
    summary="What happens to a job, as it happens",
    responses={200: _STREAM, 204: _OVER, **problems(400, 404, 410, 429)},
    openapi_extra={"parameters": [_RESUME_HEADER]},
)
async def events(
    id: str,
    caller: Anyone,
    request: Request,
    ledger: LedgerPart,
    links: LinksPart,
    last_event_id: Annotated[
        str | None,
        Query(
            description="As the header, for clients that cannot set one; the header wins.",
            json_schema_extra={"pattern": _SEQ_OR_NONE.pattern},
        ),
    ] = None,
) -> Response:
    """Server-sent events, resumable by Last-Event-ID."""
    return await streamed(id, caller, request, ledger, links, last_event_id, may_go_on=_holds(request, caller))


async def streamed(
    id: str,
    caller: Caller,
    request: Request,
    ledger: Ledger,
    links: Links,
    last_event_id: str | None,
    *,
    may_go_on: Callable[[], Awaitable[bool]],
) -> Response:
    """The stream, until the job's end or until the caller may not go on."""
    after = _last_seen(request, last_event_id)
    source = Events(ledger.database)

    async def stand() -> Stand | None:
        return await source.stand(caller.tenant, id, user=visible_user(caller))

    now = found(await stand())
    found(now.job)
    if after is not None and after > now.seq:
        raise Problem(
            400, "last_event_id_unknown", "The job has no such event yet: connect without Last-Event-ID."
        )
    if after == now.seq and now.resting:
        return Response(status_code=204)
    streams: OpenStreams = request.app.state.streams
    feed: EventFeed = request.app.state.event_feed
    streams.check_room(caller.tenant)
    telling = Telling(
        feed,
        id,
        begin=_snapshot(now, links) if after is None else after,
        again=_shown_anew(stand, links),
        may_go_on=may_go_on,
    )
    return EventStream(telling, streams, caller.tenant)


def _last_seen(request: Request, parameter: str | None) -> int | None:
    headers = request.headers.getlist("last-event-id")
    given = headers if parameter is None else [*headers, parameter]
    if len(headers) > 1 or not all(_SEQ_OR_NONE.fullmatch(one) for one in given):
        detail = "Last-Event-ID is the id of one event of this stream: give it as it came, or leave it out."
        raise Problem(400, "last_event_id_malformed", detail)
    return int(given[0]) if given and given[0] else None


def _snapshot(stand: Stand, links: Links) -> Snapshot:
    return Snapshot(job_shown(stand.job, links), stand.seq, is_end=stand.resting)


def _shown_anew(
    stand: Callable[[], Awaitable[Stand | None]], links: Links
) -> Callable[[], Awaitable[Snapshot | None]]:
    async def again() -> Snapshot | None:
        now = await stand()
        return None if now is None else _snapshot(now, links)

    return again


def _holds(request: Request, caller: Caller) -> Callable[[], Awaitable[bool]]:
    authenticator: Authenticator = request.app.state.authenticator
    key = request.headers["authorization"].partition(" ")[2].strip()

    async def holds() -> bool:
        return await authenticator.caller_of(key) == caller

    return holds
