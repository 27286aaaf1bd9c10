"""Routes of jobs: submit, status, list, attempts, cancel."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from agentjobs.agents.spec import AgentRegistry, AgentSpec, UnknownAgent
from agentjobs.api import rate_limits
from agentjobs.api.authentication import Anyone, Submitter, visible_user
from agentjobs.api.cursors import Cursor, Limit, page_of, position_of
from agentjobs.api.declared import Responses, headers, optional_headers, problems, problems_with_body
from agentjobs.api.idempotency_key import expiry_of, idempotency_key, key_header
from agentjobs.api.parts import (
    LedgerPart,
    LinksPart,
    agents_of,
    failpoints_of,
    found,
    ledger_of,
    links_of,
    quotas_of,
)
from agentjobs.api.problems import RETRY_SECONDS, Problem, erased, unacceptable
from agentjobs.api.schemas import AttemptList, AttemptShown, JobPage, JobShown
from agentjobs.api.shown import job_shown
from agentjobs.api.strict_route import DirectRoute, StrictRoute
from agentjobs.domain.job import IDENTIFIER_PATTERN, Principal
from agentjobs.domain.quotas import Limits, QuotaExceeded
from agentjobs.domain.request import NewJob
from agentjobs.domain.states import JobState
from agentjobs.ledger.acceptance import accept_for_certain
from agentjobs.ledger.jobs import Acceptance, JobErased, KeyInFlight, KeyReused, Submission
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.submissions import submission_of
from agentjobs.tracing import contexts, names, spans

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)

POLL_SECONDS = 1
"""When a first look at the status is worth while."""

_KEY_HEADER = key_header(
    "Under one key a request makes one job, however often it is sent: the answer is the first one again, with the "
    "same status, id and body. It is its user's own, and holds as long as the job lives and for 24 hours at least."
)
_TRACE_HEADER = {
    "name": "traceparent",
    "in": "header",
    "required": False,
    "description": "W3C Trace Context: the job joins this trace. One that is not valid is passed over.",
    "schema": {"type": "string"},
}
_ACCEPTED_HEADERS = {
    **headers({"Location": "The job's status.", "Retry-After": "Seconds until a look is worth while."}),
    **rate_limits.DECLARED,
    **optional_headers({"Idempotency-Key-Expires": "When there is a key: it holds until then at least."}),
}
_SUBMITTED: Responses = {202: {"headers": _ACCEPTED_HEADERS}, **problems_with_body(409, 410, 429)}
_SUBMITTED[429]["headers"] |= rate_limits.DECLARED


async def submit(new: NewJob, caller: Submitter, request: Request) -> Response:
    """The job is on disk when the answer is sent; from then on nothing loses it."""
    key = idempotency_key(request)
    spec = _known_agent(agents_of(request), new.agent)
    await failpoints_of(request).reach("submit.before_accept")
    principal = Principal(tenant=caller.tenant, user=caller.user)
    here = contexts.current_traceparent()
    submission = submission_of(new, spec, principal, origin="api", key=key, traceparent=here)
    job = await _accepted(ledger_of(request), submission, quotas_of(request))
    spans.about({names.JOB: job.id, names.AGENT: job.agent})
    await failpoints_of(request).reach("submit.after_accept")
    return Response(
        job_shown(job, links_of(request)).model_dump_json(),
        202,
        headers={
            "Location": f"/v1/jobs/{job.id}",
            "Retry-After": str(POLL_SECONDS),
            **rate_limits.headers(job.quotas),
            **({} if key is None else {"Idempotency-Key-Expires": expiry_of(job.created_at)}),
        },
        media_type="application/json",
    )


router.add_api_route(
    "",
    submit,
    methods=["POST"],
    route_class_override=DirectRoute,
    status_code=202,
    response_model=JobShown,
    operation_id="submitJob",
    summary="Accept a job durably",
    responses=_SUBMITTED,
    openapi_extra={"parameters": [_KEY_HEADER, _TRACE_HEADER]},
)


@router.get(
    "", response_model=JobPage, operation_id="listJobs", summary="Jobs, newest first", responses=problems()
)
async def jobs(
    caller: Anyone,
    ledger: LedgerPart,
    links: LinksPart,
    state: JobState | None = None,
    agent: Annotated[str | None, Query(pattern=IDENTIFIER_PATTERN)] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> JobPage:
    """Your own jobs; with the role review or admin, the tenant's."""
    rows = await ledger.jobs.page(
        caller.tenant,
        user=visible_user(caller),
        state=state,
        agent=agent,
        before=position_of(cursor),
        limit=limit + 1,
    )
    page, following = page_of(rows, limit, "created_at")
    return JobPage(items=[job_shown(job, links) for job in page], next_cursor=following)


@router.get(
    "/{id}",
    response_model=JobShown,
    operation_id="readJob",
    summary="Where a job stands",
    responses=problems(404, 410),
)
async def status(id: str, caller: Anyone, ledger: LedgerPart, links: LinksPart) -> JobShown:
    """Always 200 for a job of yours: what went wrong later stands inside."""
    return job_shown(found(await ledger.jobs.read(caller.tenant, id, user=visible_user(caller))), links)


@router.get(
    "/{id}/attempts",
    response_model=AttemptList,
    operation_id="listAttempts",
    summary="Every attempt with category, wait and cost",
    responses=problems(404, 410),
)
async def attempts(id: str, caller: Anyone, ledger: LedgerPart) -> AttemptList:
    """In the order in which they began."""
    job = found(await ledger.jobs.read(caller.tenant, id, user=visible_user(caller)))
    return AttemptList(
        items=[AttemptShown(**attempt.model_dump()) for attempt in await ledger.jobs.attempts(job.id)]
    )


@router.post(
    "/{id}/cancel",
    status_code=202,
    response_model=JobShown,
    operation_id="cancelJob",
    summary="Ask a job to stop",
    responses=problems(404, 409, 410),
)
async def cancel(id: str, caller: Submitter, ledger: LedgerPart, links: LinksPart) -> JobShown:
    """No further step begins; what was done is undone where that is possible. Repeating it changes nothing."""
    user = visible_user(caller)
    state = found(await ledger.jobs.request_cancel(caller.tenant, id, user=user, actor=caller.user))
    if state is JobState.DEAD:
        raise Problem(409, "job_is_dead", "The job is dead: a reviewer may discard or redrive it.")
    if state in {JobState.SUCCEEDED, JobState.DISCARDED}:
        raise Problem(409, "job_is_over", f"The job is {state} already.")
    return job_shown(found(await ledger.jobs.read(caller.tenant, id, user=user)), links)


def _known_agent(agents: AgentRegistry, name: str) -> AgentSpec:
    try:
        return agents.current(name)
    except UnknownAgent:
        names = ", ".join(agents.names())
        raise unacceptable("/agent", f"There is no such agent; these there are: {names}.") from None


async def _accepted(ledger: Ledger, submission: Submission, installation: Limits) -> Acceptance:
    try:
        return await accept_for_certain(ledger.jobs, submission, installation=installation)
    except QuotaExceeded as refused:
        raise rate_limits.too_many(refused) from None
    except KeyReused:
        detail = "This Idempotency-Key was used for another request: choose a new key, or send the first request."
        raise Problem(422, "idempotency_key_reused", detail) from None
    except JobErased:
        raise erased() from None
    except KeyInFlight:
        detail = "The first request with this Idempotency-Key is still under way: send the same request again."
        again = {"Retry-After": str(RETRY_SECONDS)}
        raise Problem(409, "idempotency_key_in_flight", detail, headers=again) from None
