"""Routes of erasure, for admins of the tenant: of a job, of all that a user has submitted; how far it has come."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from agentjobs.api.authentication import Admin
from agentjobs.api.declared import Responses, headers, problems, problems_with_body
from agentjobs.api.parts import LedgerPart, found
from agentjobs.api.problems import Problem, erased
from agentjobs.api.strict_route import StrictRoute
from agentjobs.domain.request import Given, Identifier
from agentjobs.ledger.erasure import ErasureRecord, StillLive
from agentjobs.ledger.jobs import JobErased
from agentjobs.ledger.ledger import Ledger

router = APIRouter(prefix="/v1", tags=["erasure"], route_class=StrictRoute)

NOT_COVERED = (
    "What destinations of tools were given, each of `left_outside`: to be erased there, by its key.",
    "What model providers have kept of the calls: by your agreement with them.",
    "What jobs of other users have found or quoted of it: until their own content expires.",
    "The ids of users, jobs and keys in the audit log, and who did what when.",
    "Backups and logs of the database and of Temporal: until they expire.",
)
_ORDERED: Responses = {202: {"headers": headers({"Location": "How far it has come."})}}


class NewErasure(Given):
    """All that a user has submitted until now is to be erased."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user": "ann"}]})

    user: Identifier


class JobsToErase(BaseModel):
    """The jobs that it is about, counted. They leave the count when their rows expire."""

    total: int
    erased: int
    not_ended: Annotated[int, Field(description="They are being cancelled or discarded, and erased after that.")]
    workflows_left: Annotated[int, Field(description="Of erased ones: Temporal still has something.")]


class OutsideShown(BaseModel):
    """One thing that was done elsewhere, or (state `begun`) perhaps was."""

    job_id: str
    step: str
    tool: str
    key: Annotated[str, Field(description="What the destination knows it by, where it takes keys.")]
    state: str


class ErasureShown(BaseModel):
    """An order to erase. It is carried out when `completed_at` is there."""

    id: str
    user: str | None
    job_id: str | None
    requested_by: str
    created_at: datetime
    completed_at: datetime | None
    jobs: JobsToErase
    left_outside: list[OutsideShown]
    left_outside_count: Annotated[int, Field(description="Of all; the first 100 are named.")]
    not_covered: Annotated[list[str], Field(description="What no erasure here reaches.")] = list(NOT_COVERED)
    links: dict[str, str]


@router.delete(
    "/jobs/{id}",
    status_code=202,
    response_model=ErasureShown,
    operation_id="eraseJob",
    summary="Erase a job that has ended, or is dead",
    responses={**_ORDERED, **problems(404, 409, 410)},
)
async def erase_job(id: str, caller: Admin, response: Response, ledger: LedgerPart) -> ErasureShown:
    """Of an ended one nothing is left when the answer is there. A dead one is discarded first."""
    try:
        erasure = found(await ledger.erasures.of_job(caller.tenant, id, actor=caller.user))
    except StillLive as live:
        detail = f"The job is {live.state}: cancel it (POST /v1/jobs/{{id}}/cancel), then erase it."
        raise Problem(409, "job_is_live", detail) from None
    except JobErased:
        raise erased() from None
    return await _ordered(erasure, response, ledger)


@router.post(
    "/erasures",
    status_code=202,
    response_model=ErasureShown,
    operation_id="eraseUser",
    summary="Erase all that a user has submitted until now",
    responses={**_ORDERED, **problems_with_body()},
)
async def erase_user(new: NewErasure, caller: Admin, response: Response, ledger: LedgerPart) -> ErasureShown:
    """Live jobs are cancelled and dead ones discarded; each is erased when it has ended. Keys and grants stay."""
    return await _ordered(
        await ledger.erasures.of_user(caller.tenant, new.user, actor=caller.user), response, ledger
    )


@router.get(
    "/erasures/{id}",
    response_model=ErasureShown,
    operation_id="readErasure",
    summary="How far an erasure has come",
    responses=problems(404),
)
async def erasure(id: str, caller: Admin, ledger: LedgerPart) -> ErasureShown:
    """With what is left outside."""
    return await _shown(found(await ledger.erasures.read(caller.tenant, id)), ledger)


async def _ordered(erasure: ErasureRecord, response: Response, ledger: Ledger) -> ErasureShown:
    shown = await _shown(erasure, ledger)
    response.headers["Location"] = shown.links["self"]
    return shown


async def _shown(erasure: ErasureRecord, ledger: Ledger) -> ErasureShown:
    progress = await ledger.erasures.progress(erasure.id)
    outside, count = await ledger.erasures.left_outside(erasure.id)
    return ErasureShown(
        **erasure.model_dump(exclude={"tenant"}),
        jobs=JobsToErase(total=progress.jobs, **progress.model_dump(exclude={"jobs"})),
        left_outside=[OutsideShown(**one.model_dump()) for one in outside],
        left_outside_count=count,
        links={"self": f"/v1/erasures/{erasure.id}"},
    )
