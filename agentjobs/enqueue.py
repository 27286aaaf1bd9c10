"""Transactional enqueue: a job in your own transaction on the ledger's database (docs/enqueue.md).

Your rows and the job commit together, or neither is there. Whoever has a connection to the ledger's database is
trusted: tenant and user are taken as they are given, and no key is asked for.

    EnqueueError
        NoTransaction       there is none open on the connection
        InvalidRequest      the request could not be submitted by HTTP either
        UnknownTenant       it must be there before
    KeyReused, JobErased, KeyInFlight (ledger/jobs.py), QuotaExceeded (domain/quotas.py), UnknownAgent
    (agents/spec.py)

None of them ends your transaction: what was done for the refused job is taken back to a savepoint.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import asyncpg
from pydantic import ValidationError

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.agents.spec import AgentRegistry, UnknownAgent
from agentjobs.agents.support_triage import SUPPORT_TRIAGE
from agentjobs.domain.job import DEFAULT_DEADLINE_SECONDS, DEFAULT_PRIORITY, IDENTIFIER_PATTERN, Budget, Principal
from agentjobs.domain.quotas import NO_LIMITS, Limits, QuotaExceeded
from agentjobs.domain.request import NewJob
from agentjobs.ledger.database import Connection, load_statements
from agentjobs.ledger.jobs import JobErased, KeyInFlight, KeyReused, Submission, accepted_within
from agentjobs.ledger.submissions import submission_of
from agentjobs.tracing.contexts import current_traceparent

__all__ = [
    "EnqueueError",
    "InvalidRequest",
    "JobErased",
    "KeyInFlight",
    "KeyReused",
    "NoTransaction",
    "QuotaExceeded",
    "UnknownAgent",
    "UnknownTenant",
    "enqueue",
]

ORIGIN: Final = "enqueue"

_IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
_KEY = re.compile(r"[\x20-\x7e]{1,255}")


class EnqueueError(Exception):
    """The job was not accepted; your transaction is as it was before the call."""


class NoTransaction(EnqueueError):
    """No transaction is open: call it inside `async with connection.transaction()`."""

    def __init__(self) -> None:
        super().__init__("no transaction is open on this connection: open one, in which your own rows are written")


class InvalidRequest(EnqueueError):
    """Something of the request cannot be taken. The message names each, and repeats no value."""


class UnknownTenant(EnqueueError):
    """There is no such tenant: make it first."""

    def __init__(self) -> None:
        super().__init__("there is no such tenant")


async def enqueue(  # noqa: PLR0913 - given by name, most of them rarely
    connection: Connection,
    *,
    tenant: str,
    user: str,
    text: str,
    agent: str = SUPPORT_TRIAGE.name,
    key: str | None = None,
    deadline_seconds: int = DEFAULT_DEADLINE_SECONDS,
    budget: Budget | None = None,
    priority: int = DEFAULT_PRIORITY,
    agents: AgentRegistry | None = None,
    limits: Limits = NO_LIMITS,
) -> str:
    """Accept a job in the transaction that is open on the connection; returns its id. It is started after your
    commit.

    With a `key` that the user has used before for the same request, by HTTP too, it is the first job's id; a
    twin in another transaction is waited for. `budget`: what is not named is the agent's own. `agents`: those
    of your worker, if they are not the built-in ones. `limits`: the quotas of a tenant that has none of its
    own; the tenant's own hold in any case. Nothing is set on your connection, and no codec of it is used.
    Raises what the module's docstring lists, and asyncpg.PostgresError.
    """
    if not connection.is_in_transaction():
        raise NoTransaction
    submission = _submission(
        {"agent": agent, "input": {"text": text}, "deadline_seconds": deadline_seconds, "priority": priority},
        budget,
        agents or built_in_agents(),
        tenant=tenant,
        user=user,
        key=key,
    )
    try:
        row = await accepted_within(_statements(), connection, submission, limits)
    except asyncpg.ForeignKeyViolationError as error:
        if error.constraint_name == "jobs_tenant_fkey":
            raise UnknownTenant from None
        raise
    job_id: str = row["id"]
    return job_id


def _submission(
    given: dict[str, Any], budget: Budget | None, agents: AgentRegistry, *, tenant: str, user: str, key: str | None
) -> Submission:
    for name, value in (("tenant", tenant), ("user", user)):
        if not _IDENTIFIER.fullmatch(value):
            raise InvalidRequest(f"{name}: 1 to 64 letters, digits, - and _")
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidRequest("key: 1 to 255 printable ASCII characters")
    # As HTTP's null: a limit that is not named is left out of what a repeated request is compared by.
    named = None if budget is None else budget.model_dump(exclude_none=True)
    new = _valid({**given, "budget": named})
    spec = agents.current(new.agent)
    # The span is the caller's own, by OpenTelemetry's API.
    here = current_traceparent()
    principal = Principal(tenant=tenant, user=user)
    return submission_of(new, spec, principal, origin=ORIGIN, key=key, traceparent=here)


def _valid(given: dict[str, Any]) -> NewJob:
    try:
        return NewJob.model_validate(given)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        told = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems)
        raise InvalidRequest("; ".join(told)) from None


@cache
def _statements() -> Any:
    return load_statements()
