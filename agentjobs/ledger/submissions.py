"""From a valid request to what the ledger accepts: one way for all who submit."""

import uuid
from typing import Any

from agentjobs.agents.spec import AgentSpec
from agentjobs.domain.job import Budget, Principal
from agentjobs.domain.keys import fingerprint
from agentjobs.domain.request import NewJob
from agentjobs.ledger.jobs import Submission


def submission_of(
    new: NewJob,
    spec: AgentSpec,
    principal: Principal,
    *,
    origin: str,
    key: str | None,
    traceparent: str | None = None,
) -> Submission:
    """A new job of this agent. traceparent: of the span of who submits, whose trace it joins."""
    return Submission(
        id=str(uuid.uuid4()),
        principal=principal,
        agent=spec.name,
        policy_version=spec.policy_version,
        origin=origin,
        text=new.input.text,
        priority=new.priority,
        budget=_budget(new, spec),
        deadline_seconds=new.deadline_seconds,
        key=key,
        fingerprint=None if key is None else fingerprint(new.meaning),
        **_joined(traceparent),
    )


def _joined(traceparent: str | None) -> dict[str, Any]:
    if traceparent is None:
        return {}  # a trace of its own
    _, trace_id, parent, flags = traceparent.split("-")
    return {"trace_id": trace_id, "trace_parent": parent, "trace_sampled": flags == "01"}


def _budget(new: NewJob, spec: AgentSpec) -> Budget:
    # A limit that the request does not name stays the agent's own.
    given = {} if new.budget is None else new.budget.model_dump(exclude_none=True)
    return spec.default_budget.model_copy(update=given)
