"""Routes of approvals: what waits for a person, and the decision on it."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from agentjobs.api.authentication import Anyone, Reviewer, visible_user
from agentjobs.api.cursors import Cursor, Limit, page_of, position_of
from agentjobs.api.declared import problems, problems_with_body
from agentjobs.api.given import Note
from agentjobs.api.parts import LedgerPart, found
from agentjobs.api.problems import Problem, not_found
from agentjobs.api.strict_route import StrictRoute
from agentjobs.domain.approvals import ApprovalState, Decision
from agentjobs.domain.request import Given
from agentjobs.ledger.approvals import ApprovalNotOpen, ApprovalRecord, OtherCall, Word

STEP = re.compile(r"[A-Za-z0-9._-]{1,100}")

router = APIRouter(prefix="/v1", tags=["approvals"], route_class=StrictRoute)


class GivenDecision(Given):
    """A reviewer's word on one call."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"decision": "approve", "note": "as agreed with her"}]}
    )

    decision: Literal["approve", "reject"]
    note: Note
    fingerprint: Annotated[
        str | None,
        Field(pattern="^[0-9a-f]{64}$", description="Of the call that you saw: another one is then not approved."),
    ] = None


class ApprovalShown(BaseModel):
    """A call that needs, or needed, a person's approval."""

    job_id: str
    step: str
    tool: str
    arguments: Annotated[
        dict[str, Any] | None, Field(description="Just these. null where the job's course has changed since.")
    ]
    fingerprint: Annotated[
        str, Field(description="SHA-256 of the tool and its arguments, as RFC 8785 writes them.")
    ]
    state: ApprovalState
    is_open: Annotated[bool, Field(description="Whether it takes a decision now.")]
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    note: str | None
    links: dict[str, str]


class ApprovalList(BaseModel):
    """All requests of a job, oldest first."""

    items: list[ApprovalShown]


class ApprovalPage(BaseModel):
    """Open requests, longest waiting first."""

    items: list[ApprovalShown]
    next_cursor: str | None


@router.get(
    "/approvals",
    response_model=ApprovalPage,
    operation_id="listApprovals",
    summary="Calls that wait for a reviewer of the tenant",
    responses=problems(),
)
async def approvals(
    caller: Reviewer, ledger: LedgerPart, cursor: Cursor = None, limit: Limit = 50
) -> ApprovalPage:
    """Longest waiting first. Each shows the tool and its arguments as they would be carried out."""
    rows = await ledger.approvals.open(caller.tenant, after=position_of(cursor), limit=limit + 1)
    page, following = page_of(rows, limit, "requested_at")
    return ApprovalPage(items=[_shown(record) for record in page], next_cursor=following)


@router.get(
    "/jobs/{id}/approvals",
    response_model=ApprovalList,
    operation_id="listApprovalsOfJob",
    summary="What was and is asked for a job",
    responses=problems(404),
)
async def approvals_of_job(id: str, caller: Anyone, ledger: LedgerPart) -> ApprovalList:
    """Every request, with what was decided."""
    job = found(await ledger.jobs.read(caller.tenant, id, user=visible_user(caller)))
    return ApprovalList(items=[_shown(record) for record in await ledger.approvals.of_job(caller.tenant, job.id)])


@router.post(
    "/jobs/{id}/approvals/{step}",
    status_code=202,
    response_model=ApprovalShown,
    operation_id="decideApproval",
    summary="Approve or refuse the call that waits",
    responses=problems_with_body(404, 409),
)
async def decide(id: str, step: str, given: GivenDecision, caller: Reviewer, ledger: LedgerPart) -> ApprovalShown:
    """The first decision holds, also of two at the same moment; said again by the same person, it is the same."""
    if not STEP.fullmatch(step):
        raise not_found()
    found(await ledger.jobs.read(caller.tenant, id))
    word = Word(
        decision=Decision(given.decision), actor=caller.user, note=given.note, fingerprint=given.fingerprint
    )
    try:
        known = await ledger.approvals.decide(caller.tenant, id, step, word)
    except OtherCall:
        detail = "The call that waits now has other arguments than the one that you saw: read it again."
        raise Problem(409, "other_call", detail) from None
    except ApprovalNotOpen as closed:
        raise Problem(409, "approval_not_open", _why(closed)) from None
    if not known:
        raise not_found()
    *_, latest = [record for record in await ledger.approvals.of_job(caller.tenant, id) if record.step == step]
    return _shown(latest)


def _why(closed: ApprovalNotOpen) -> str:
    if closed.state is not ApprovalState.REQUESTED:
        return f"The request is {closed.state} already; the first decision holds."
    if closed.is_over:
        return "The job does not wait for it any more: it was cancelled, or has ended."
    return "The request has expired: the job is dead, or will be in a moment; redrive it to ask again."


def _shown(record: ApprovalRecord) -> ApprovalShown:
    return ApprovalShown(
        **record.model_dump(exclude={"used_at"}),
        is_open=record.is_open,
        links={"job": f"/v1/jobs/{record.job_id}"},
    )
