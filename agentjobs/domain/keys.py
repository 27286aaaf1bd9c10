"""Identifiers that stay the same over retries, crashes, redrives, resets and continue-as-new.

step key = workflow id + "/" + activity id. Never the attempt, the run id or the clock: Temporal's documented
key (run id + activity id) changes on reset and redrive, and its default activity ids start again at "1" after
continue-as-new; both repeat effects.
"""

import hashlib
from typing import Final

import rfc8785
from pydantic import JsonValue

WORKFLOW_ID_PREFIX: Final = "agent-job-"
DESK_ID_PREFIX: Final = "dead-letter-desk-"

PLAN: Final = "plan"
ANSWER: Final = "answer"
OUTCOME: Final = "outcome"


def workflow_id(job_id: str) -> str:
    """The id of the one workflow that carries a job out."""
    return WORKFLOW_ID_PREFIX + job_id


def desk_id(tenant: str) -> str:
    """The id of the tenant's DeadLetterDesk workflow."""
    return DESK_ID_PREFIX + tenant


def model_step(step: int) -> str:
    """The activity id of the model call that decides step `step` (1, 2, ...)."""
    return f"step-{step}.model"


def tool_step(step: int, tool: str) -> str:
    """The activity id of the tool call of step `step`."""
    return f"step-{step}.{tool}"


def approval_step(step: int, tool: str) -> str:
    """The activity id under which a person is asked about the tool call of step `step`."""
    return f"approval.{tool_step(step, tool)}"


def undo_step(undone: str) -> str:
    """The activity id of the compensation of another step."""
    return f"undo.{undone}"


def step_key(job_id: str, activity_id: str) -> str:
    """The idempotency key of a step: what an effect is recorded under, here and at its destination."""
    return f"{workflow_id(job_id)}/{activity_id}"


def destination_key(key: str, generation: int) -> str:
    """The key of an effect as its destination sees it; generations after the first are a person's "again"."""
    return key if generation == 1 else f"{key}~{generation}"


def fingerprint(value: JsonValue) -> str:
    """SHA-256 (hex) of the canonical JSON of RFC 8785. Raises ValueError for what JSON cannot represent
    exactly: NaN, lone surrogates, integers beyond 2**53.
    """
    try:
        return hashlib.sha256(rfc8785.dumps(value)).hexdigest()
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError("the value has no canonical JSON form (RFC 8785)") from error


def fingerprint_of_call(tool: str, arguments: JsonValue) -> str:
    """The fingerprint of a tool call. Raises ValueError as `fingerprint` does."""
    return fingerprint({"tool": tool, "arguments": arguments})


def step_number(activity_id: str) -> int:
    """The number in "step-3.create_ticket"."""
    return int(activity_id.split(".", 1)[0].removeprefix("step-"))


def tool_of(activity_id: str) -> str:
    """The tool in "step-3.create_ticket"."""
    return activity_id.split(".", 1)[1]
