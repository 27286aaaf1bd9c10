"""What must hold between the words of people and what was done: approvals, rejections and redrives."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from agentjobs.domain.approvals import ApprovalState, Decision
from agentjobs.domain.states import JobState
from tests.chaos.evidence import Answer, Evidence, Violation

WORD_OF: Final = {
    ApprovalState.APPROVED: Decision.APPROVE,
    ApprovalState.USED: Decision.APPROVE,
    ApprovalState.REJECTED: Decision.REJECT,
}


def the_first_word_holds(evidence: Evidence) -> Iterator[Violation]:
    """I4: who was told that a decision is taken finds just that one on record."""
    recorded = {
        (approval.job_id, approval.decided_by, WORD_OF[approval.state])
        for approval in evidence.approvals
        if approval.state in WORD_OF
    }
    taken = [one for one in evidence.operations if one.what in set(Decision) and one.answer is Answer.OK]
    for said in taken:
        if (said.key, said.by, said.what) not in recorded:
            yield Violation("I4", said.key, f"{said.by} was told that `{said.what}` holds, and it does not")


def a_rejected_call_is_never_made(evidence: Evidence) -> Iterator[Violation]:
    """I2: the job stays dead of it, and nothing of it is outside."""
    states = {job.id: job.state for job in evidence.jobs}
    ticketed = {ticket.job_id for ticket in evidence.tickets}
    for approval in evidence.approvals:
        if approval.state is not ApprovalState.REJECTED:
            continue
        if states[approval.job_id] is not JobState.DEAD:
            yield Violation("I4", approval.job_id, f"was rejected, and is {states[approval.job_id]}")
        if approval.job_id in ticketed:
            yield Violation("I2", approval.job_id, "was rejected, and has a ticket")


def no_call_without_a_word(evidence: Evidence) -> Iterator[Violation]:
    """I2: a call that needs one was begun under an approval, which it has used up."""
    used = {approval.effect_key for approval in evidence.approvals if approval.state is ApprovalState.USED}
    for effect in evidence.effects:
        if effect.kind == "tool" and effect.name == evidence.asks_approval and effect.key not in used:
            yield Violation("I2", effect.key, "was called, and nobody had approved it")


def a_death_is_redriven_once(evidence: Evidence) -> Iterator[Violation]:
    """I4: of two people who redrive the same dead job at once, one is told that it is done."""
    deaths = {job.id: job.generation for job in evidence.jobs}
    told = Counter(one.key for one in evidence.operations if one.what == "redrive" and one.answer is Answer.OK)
    for job_id, count in told.items():
        if count > deaths.get(job_id, 0):
            yield Violation("I4", job_id, f"was redriven {count} times, and died {deaths.get(job_id, 0)} times")


WORD_CHECKS = (
    the_first_word_holds,
    a_rejected_call_is_never_made,
    no_call_without_a_word,
    a_death_is_redriven_once,
)
