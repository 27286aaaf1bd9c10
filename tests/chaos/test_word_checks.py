"""What people said is compared with what was done: each disagreement is planted once, and found."""

from dataclasses import replace
from typing import Any

import pytest

from agentjobs.domain.states import JobState
from tests.chaos.checker import violations
from tests.chaos.evidence import Answer, Approval, Evidence, Operation
from tests.chaos.test_checker import SOUND, effect, ticket
from tests.chaos.word_checks import WORD_CHECKS

SEARCH_STEP = "step-1.search_tickets"
SEARCHED = effect(SEARCH_STEP, name="search_tickets")
APPROVED = Approval(job_id="a", effect_key=SEARCHED.key, state="used", decided_by="root")
REJECTED = Approval(job_id="d", effect_key=f"agent-job-d/{SEARCH_STEP}", state="rejected", decided_by="ben")
YES = Operation("approve", "a", Answer.OK, 202, by="root")
NO = Operation("reject", "d", Answer.OK, 202, by="ben")
LATE = Operation("approve", "d", Answer.FAILED, 409, by="root")
REDRIVEN = Operation("redrive", "d", Answer.OK, 202)

SAID = SOUND.but(
    operations=(*SOUND.operations, YES, YES, NO, LATE, REDRIVEN),
    effects=(*SOUND.effects, SEARCHED),
    approvals=(APPROVED, REJECTED),
    asks_approval="search_tickets",
)

PLANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "two people are both told that theirs holds": (
        "I4",
        {"operations": (*SAID.operations, replace(LATE, answer=Answer.OK, status=202))},
    ),
    "a decision is answered and not kept": ("I4", {"approvals": (APPROVED,)}),
    "another's word is on record": (
        "I4",
        {"approvals": (APPROVED.model_copy(update={"decided_by": "ben"}), REJECTED)},
    ),
    "a rejected job has a ticket": (
        "I2",
        {"tickets": (ticket(), ticket(2, job_id="d", operation_key="agent-job-d/step-2.create_ticket"))},
    ),
    "a call is made that nobody approved": (
        "I2",
        {"approvals": (APPROVED.model_copy(update={"state": "approved"}), REJECTED)},
    ),
    "one death is redriven twice": ("I4", {"operations": (*SAID.operations, REDRIVEN)}),
}


def _found(evidence: Evidence) -> set[str]:
    return {violation.invariant for violation in violations(evidence)}


def test_words_that_were_carried_out_are_no_violation() -> None:
    assert violations(SAID) == []


@pytest.mark.parametrize("wrong", PLANTED)
def test_what_was_not_carried_out_is_found(wrong: str) -> None:
    invariant, changes = PLANTED[wrong]

    assert _found(SAID.but(**changes)) == {invariant}


def test_a_rejected_job_that_went_on_is_found() -> None:
    went_on = [job.model_copy(update={"state": JobState.RUNNING}) if job.id == "d" else job for job in SAID.jobs]

    found = [violation.what for violation in violations(SAID.but(jobs=tuple(went_on)))]

    assert "was rejected, and is running" in found


def test_every_check_of_words_has_caught_something() -> None:
    blind = [check for check in WORD_CHECKS if not any(list(check(SAID.but(**c))) for _, c in PLANTED.values())]

    assert blind == []
