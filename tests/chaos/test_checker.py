"""The checker finds what it is for: each invariant is broken once, on data made by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.domain.waits import MALFORMED_LIMIT
from tests.chaos.checker import CHECKS, attempt_limit, violations
from tests.chaos.evidence import (
    Answer,
    Attempt,
    Effect,
    Event,
    Evidence,
    Job,
    Letter,
    Operation,
    Ticket,
    Workflow,
)
from tests.chaos.witness_checks import WITNESS_CHECKS
from tests.chaos.word_checks import WORD_CHECKS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TICKET_STEP = "step-2.create_ticket"
TICKET_KEY = f"agent-job-a/{TICKET_STEP}"


def job(id: str = "a", state: JobState = JobState.SUCCEEDED, **changes: Any) -> Job:
    return Job.model_validate(
        {"id": id, "state": state, "generation": 0, "event_seq": 5, "key": f"key-{id}", **changes}
    )


def effect(step: str = TICKET_STEP, **changes: Any) -> Effect:
    kind, name = ("model", "model") if step == "plan" else ("tool", "create_ticket")
    fields = {"job_id": "a", "step": step, "kind": kind, "name": name, "state": "completed", "completed_at": NOW}
    return Effect.model_validate({"key": f"agent-job-a/{step}", **fields, **changes})


def attempt(id: int, step: str = TICKET_STEP, **changes: Any) -> Attempt:
    fields = {"job_id": "a", "step": step, "run_id": "run", "attempt": id, "outcome": "succeeded"}
    times = {"started_at": NOW - timedelta(seconds=2), "finished_at": NOW}
    return Attempt.model_validate({"id": id, **fields, **times, **changes})


def ticket(id: int = 1, **changes: Any) -> Ticket:
    return Ticket.model_validate(
        {"id": id, "job_id": "a", "operation_key": TICKET_KEY, "state": "open", **changes}
    )


def letter(**changes: Any) -> Letter:
    fields = {"id": "d", "generation": 1, "state": "open", "reason": "access_denied", "message": "no grant"}
    return Letter.model_validate({**fields, "alerted_at": NOW, **changes})


def events(job_id: str, *types: str) -> tuple[Event, ...]:
    steps = iter(("plan", TICKET_STEP))
    return tuple(
        Event(job_id=job_id, seq=seq, type=kind, step=next(steps) if kind == "step_completed" else None)
        for seq, kind in enumerate(types, start=1)
    )


OF_A = ("accepted", "started", "step_completed", "step_completed", "succeeded")
OF_D = ("accepted", "started", "died")

WORKFLOWS = {"a": Workflow("COMPLETED", "succeeded"), "d": Workflow("RUNNING", "dead")}

SOUND = Evidence(
    expected={"a": frozenset({JobState.SUCCEEDED}), "d": frozenset({JobState.DEAD})},
    operations=(
        Operation("submit", "key-a", Answer.UNKNOWN),
        Operation("submit", "key-a", Answer.OK, 202, "a"),
        Operation("submit", "key-d", Answer.OK, 202, "d"),
    ),
    jobs=(job(), job("d", JobState.DEAD, generation=1, event_seq=3)),
    effects=(effect("plan"), effect()),
    attempts=(attempt(1, "plan"), attempt(2, outcome="crashed"), attempt(3)),
    tickets=(ticket(),),
    events=events("a", *OF_A) + events("d", *OF_D),
    letters=(letter(),),
    workflows=WORKFLOWS,
    texts={"worker-1.log": '{"event": "worker_started"}'},
    planted={"the job's text": "canary", "the admin key": "ajk_secret"},
)

CANCELLED_JOB = (job(state=JobState.CANCELLED), SOUND.jobs[1])
AS_CANCELLED: dict[str, Any] = {
    "expected": {"a": frozenset({JobState.CANCELLED})},
    "jobs": CANCELLED_JOB,
    "events": events("a", *OF_A[:-1], "cancelled") + events("d", *OF_D),
    "workflows": {"a": Workflow("COMPLETED", "cancelled"), "d": Workflow("RUNNING", "dead")},
}

BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "an accepted job is lost": ("I1", {"jobs": SOUND.jobs[:1], "events": events("a", *OF_A)}),
    "a job stays on the way": (
        "I1",
        {
            "jobs": (job(state=JobState.RUNNING), SOUND.jobs[1]),
            "workflows": {"a": Workflow("RUNNING", "running"), "d": Workflow("RUNNING", "dead")},
            "events": events("a", *OF_A[:-1], "retry_scheduled") + events("d", *OF_D),
        },
    ),
    "a row is never delivered": ("I1", {"outbox": ("cancel_job",)}),
    "a step has two tickets": ("I2", {"tickets": (ticket(), ticket(2, state="closed"))}),
    "a ticket has no receipt": ("I2", {"effects": (effect("plan"), effect(state="begun", completed_at=None))}),
    "a receipt has no ticket": ("I2", {"tickets": ()}),
    "a cancelled job leaves its ticket open": ("I2", AS_CANCELLED),
    "a stored reply is paid again": (
        "I2",
        {"attempts": (attempt(1, "plan"), attempt(2, "plan", started_at=NOW + timedelta(seconds=1)))},
    ),
    "two attempts at once are both paid": ("I2", {"attempts": (attempt(1, "plan"), attempt(2, "plan"))}),
    "a workflow runs on after the end": (
        "I4",
        {"workflows": WORKFLOWS | {"a": Workflow("RUNNING", "succeeded")}},
    ),
    "a dead job has nobody waiting": ("I4", {"workflows": WORKFLOWS | {"d": Workflow("COMPLETED", "dead")}}),
    "a dead job has no workflow": ("I4", {"workflows": {"a": WORKFLOWS["a"]}}),
    "Temporal shows another state": (
        "I4",
        {"workflows": WORKFLOWS | {"a": Workflow("COMPLETED", "running")}},
    ),
    "an attempt runs in a job that is over": (
        "I4",
        {"attempts": (attempt(1), attempt(2, outcome="running", finished_at=None))},
    ),
    "an event is missing": (
        "I6",
        {"events": events("a", *OF_A)[:2] + events("a", *OF_A)[3:] + events("d", *OF_D)},
    ),
    "an event was numbered twice": (
        "I6",
        {"events": (*events("a", *OF_A), events("a", *OF_A)[2], *events("d", *OF_D))},
    ),
    "something follows the end": (
        "I6",
        {
            "jobs": (job(event_seq=6), SOUND.jobs[1]),
            "events": events("a", *OF_A, "retry_scheduled") + events("d", *OF_D),
        },
    ),
    "a job ends twice": (
        "I6",
        {
            "jobs": (job(event_seq=6), SOUND.jobs[1]),
            "events": events("a", *OF_A[:-1], "cancelled", "succeeded") + events("d", *OF_D),
        },
    ),
    "a step completes twice": (
        "I6",
        {
            "events": tuple(
                event.model_copy(update={"step": "plan" if event.step else None}) for event in events("a", *OF_A)
            )
            + events("d", *OF_D)
        },
    ),
    "a death is not told": ("I8", {"letters": (letter(alerted_at=None),)}),
    "a dead job has no letter": ("I8", {"letters": ()}),
    "a step is tried without end": (
        "I9",
        {"attempts": tuple(attempt(n, outcome="crashed") for n in range(attempt_limit(TICKET_STEP) + 1))},
    ),
    "a model is asked for a form without end": (
        "I9",
        {
            "attempts": tuple(
                attempt(n, "plan", outcome="failed", category=Category.BAD_OUTPUT)
                for n in range(MALFORMED_LIMIT + 1)
            )
        },
    ),
    "a log holds a request": ("I10", {"texts": {"worker-1.log": '{"event": "x", "text": "my canary"}'}}),
    "a history holds a key": ("I10", {"texts": {"history of a": "Bearer ajk_secret"}}),
    "a job that nobody asked for": (
        "I12",
        {"operations": SOUND.operations[:2], "expected": {"a": frozenset({JobState.SUCCEEDED})}},
    ),
    "a key made two jobs": (
        "I12",
        {
            "operations": (*SOUND.operations, Operation("submit", "key-a", Answer.OK, 202, "d")),
        },
    ),
}


def test_a_sound_run_has_no_violation() -> None:
    assert violations(SOUND) == []


@pytest.mark.parametrize("wrong", BROKEN)
def test_what_is_broken_is_found_and_told(wrong: str) -> None:
    invariant, changes = BROKEN[wrong]

    found = violations(SOUND.but(**changes))

    assert {violation.invariant for violation in found} == {invariant}, [str(violation) for violation in found]
    assert all(violation.where and violation.what for violation in found)


def test_every_check_has_caught_something() -> None:
    blind = [
        check
        for check in set(CHECKS).difference(WITNESS_CHECKS, WORD_CHECKS)
        if not any(list(check(SOUND.but(**broken))) for _, broken in BROKEN.values())
    ]

    assert blind == []


def test_a_job_cancelled_before_its_start_needs_no_workflow() -> None:
    tidy = AS_CANCELLED | {
        "tickets": (ticket(state="closed"),),
        "effects": (effect("plan"), effect(state="undone")),
    }
    never_started = tidy | {"workflows": {"d": WORKFLOWS["d"]}}

    assert violations(SOUND.but(**never_started)) == []


def test_a_frozen_workers_call_may_come_back_late() -> None:
    overlapping = {"attempts": (attempt(1, "plan"), attempt(2, "plan")), "frozen": True}
    again = {"attempts": (attempt(1, "plan"), attempt(2, "plan", started_at=NOW + timedelta(seconds=1)))}

    assert violations(SOUND.but(**overlapping)) == []
    assert [found.invariant for found in violations(SOUND.but(**again, frozen=True))] == ["I2"]


def test_attempts_that_a_model_turned_away_do_not_count() -> None:
    limit = attempt_limit("plan")
    turned_away = [
        attempt(n, "plan", outcome="failed", category=Category.RATE_LIMITED) for n in range(2, 3 + limit)
    ]

    assert violations(SOUND.but(attempts=(*SOUND.attempts, *turned_away))) == []


def test_undos_may_be_tried_more_often_than_tools() -> None:
    assert attempt_limit(f"undo.{TICKET_STEP}") > attempt_limit(TICKET_STEP) > attempt_limit("step-1.model")
