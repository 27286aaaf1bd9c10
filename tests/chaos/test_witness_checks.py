"""What those outside saw is compared with the ledger: each disagreement is planted once, and found."""

from dataclasses import replace
from typing import Any

import pytest

from agentjobs.domain.states import JobState
from tests.chaos.checker import violations
from tests.chaos.evidence import Evidence, Workflow
from tests.chaos.test_checker import NOW, SOUND, TICKET_KEY, attempt, job
from tests.chaos.witness_checks import WITNESS_CHECKS
from tests.chaos.witnesses import (
    Death,
    Followed,
    ModelCall,
    Peek,
    QuotaSeen,
    QuotaTold,
    TicketWord,
    Witnesses,
)

BEFORE = NOW.timestamp() - 1
AFTER = NOW.timestamp() + 1
PLANNED = ModelCall("key-a", "plan", BEFORE)
CREATED = TicketWord("created", TICKET_KEY, "acme", "Request acme-1 ", BEFORE)
SEEN = ((1, "accepted"), (2, "started"), (3, "step_completed"), (4, "step_completed"), (5, "succeeded"))

HEARD = Witnesses(
    model_calls=(PLANNED,),
    ticket_words=(CREATED, replace(CREATED, did="repeated")),
    followed=(Followed("a", SEEN, 3),),
    peeks=(Peek("a", "bolt", 404),),
    quotas_seen=(QuotaSeen("cedar", "ann", 7, 6, 1), QuotaSeen("acme", "ann", 99, None, 0)),
    quotas_told=(QuotaTold("cedar", "ann", 2, 2),),
    deaths=(Death("d", 1, ("alert-1", "alert-2")),),
    alerts_taken=frozenset({"alert-2"}),
)
WITNESSED = SOUND.but(
    jobs=(job(tenant="acme"), job("d", JobState.DEAD, generation=1, event_seq=3, tenant="acme")), witnesses=HEARD
)

PLANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "a call that no attempt is on record for": ("I9", {"model_calls": (PLANNED, PLANNED)}),
    "a call about no job": ("I12", {"model_calls": (PLANNED, replace(PLANNED, key="key-x"))}),
    "a stored plan is asked for again": ("I2", {"model_calls": (replace(PLANNED, at=AFTER),)}),
    "a ticket at another tenant": ("I7", {"ticket_words": (replace(CREATED, tenant="bolt"),)}),
    "a ticket with another tenant's words": ("I7", {"ticket_words": (replace(CREATED, title="Request bolt-1 "),)}),
    "a ticket of no job": ("I12", {"ticket_words": (replace(CREATED, operation_key="agent-job-x/step-1.y"),)}),
    "a stranger sees a job": ("I7", {"peeks": (Peek("a", "bolt", 200),)}),
    "a stranger learns that there is a job": ("I7", {"peeks": (Peek("a", "bolt", 403),)}),
    "one more than the limit": ("I5", {"quotas_seen": (QuotaSeen("cedar", "ann", 7, 6, 0),)}),
    "a slot that is not given back": ("I5", {"quotas_told": (QuotaTold("cedar", "ann", 3, 2),)}),
    "a follower misses an event": ("I6", {"followed": (Followed("a", (*SEEN[:2], *SEEN[3:]), 2),)}),
    "a follower sees an event twice": ("I6", {"followed": (Followed("a", (*SEEN[:3], *SEEN[2:]), 2),)}),
    "a follower sees another event": ("I6", {"followed": (Followed("a", ((1, "started"), *SEEN[1:]), 2),)}),
    "a follower never hears of the end": ("I6", {"followed": (Followed("a", SEEN[:-1], 2),)}),
    "an alert that never arrived": ("I8", {"alerts_taken": frozenset({"alert-3"})}),
    "a death without an alert": ("I8", {"deaths": (*HEARD.deaths, Death("d", 2, ()))}),
    "a history that does not replay": ("I11", {"unreplayable": (("a", "NondeterminismError"),)}),
}


def _heard(**changes: Any) -> Evidence:
    return WITNESSED.but(witnesses=replace(HEARD, **changes))


def test_witnesses_that_agree_are_no_violation() -> None:
    assert violations(WITNESSED) == []


@pytest.mark.parametrize("wrong", PLANTED)
def test_what_witnesses_say_against_the_ledger_is_found(wrong: str) -> None:
    invariant, changes = PLANTED[wrong]

    found = violations(_heard(**changes))

    assert {violation.invariant for violation in found} == {invariant}, [str(violation) for violation in found]


def test_every_check_of_witnesses_has_caught_something() -> None:
    blind = [check for check in WITNESS_CHECKS if not any(list(check(_heard(**c))) for _, c in PLANTED.values())]

    assert blind == []


def test_a_workflow_that_the_relay_ended_may_show_what_it_showed() -> None:
    ended = {"workflows": {**SOUND.workflows, "a": Workflow("TERMINATED", "running")}}

    assert violations(_heard(leftovers=frozenset({"a"})).but(**ended)) == []
    assert {found.invariant for found in violations(WITNESSED.but(**ended))} == {"I4"}


def test_a_death_may_be_told_by_the_next_one_of_its_job() -> None:
    twice = (Death("d", 1, ()), Death("d", 2, ("alert-2",)))

    assert violations(_heard(deaths=twice)) == []


def test_a_frozen_worker_may_send_what_it_had_decided() -> None:
    late = _heard(model_calls=(replace(PLANNED, at=AFTER),))

    assert violations(late.but(frozen=True)) == []


def test_each_attempt_may_ask_once() -> None:
    twice = {"attempts": (attempt(1, "plan", outcome="crashed"), attempt(2, "plan"), attempt(3))}

    assert violations(_heard(model_calls=(PLANNED, PLANNED)).but(**twice)) == []
