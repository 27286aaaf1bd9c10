"""What must hold after every fault, as pure functions over the evidence of one run.

The invariants are those of docs/failure-boundaries.md: I1 every accepted job ends; I2 one effect a step, and no
stored reply paid twice; I3 a final state stays; I4 ledger, Temporal and destination agree; I6 events; I8 alerts;
I9 bounded attempts; I10 no content and no secret outside; I12 no ghosts. What those outside saw is compared in
witness_checks.py: I5 quotas, I7 tenants, I11 replay, and I2, I6, I8, I9 once more. What people decided is compared
with what was done of it in word_checks.py.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectKind
from agentjobs.domain.failures import Category
from agentjobs.domain.states import FINAL, JobState
from agentjobs.domain.waits import ATTEMPT_LIMITS, MALFORMED_LIMIT
from tests.chaos.evidence import Answer, Attempt, Effect, Event, Evidence, Job, Violation
from tests.chaos.witness_checks import WITNESS_CHECKS
from tests.chaos.word_checks import WORD_CHECKS

TICKET_TOOL = "create_ticket"
DONE = ("completed", "undone")
COUNTED_APART = (Category.RATE_LIMITED, Category.BAD_OUTPUT)
"""Failures that are no sign of trouble in a step: who was asked wants time, or has answered in no form."""


def violations(evidence: Evidence) -> list[Violation]:
    """All of them, in the order of the invariants."""
    return [found for check in CHECKS for found in check(evidence)]


def every_accepted_job_ends(evidence: Evidence) -> Iterator[Violation]:
    """I1: as expected, and with nothing left to deliver."""
    states = {job.id: job.state for job in evidence.jobs}
    died_of = {letter.id: f" (it died of {letter.reason}: {letter.message})" for letter in evidence.letters}
    for job_id, expected in evidence.expected.items():
        wanted = " or ".join(sorted(expected))
        if job_id not in states:
            yield Violation("I1", job_id, f"was accepted and is not in the ledger (expected: {wanted})")
        elif states[job_id] not in expected:
            yield Violation("I1", job_id, f"is {states[job_id]}, expected {wanted}{died_of.get(job_id, '')}")
    for topic in evidence.outbox:
        yield Violation("I1", "outbox", f"a row `{topic}` was never delivered")


def one_ticket_a_step(evidence: Evidence) -> Iterator[Violation]:
    """I2: at the destination there is exactly what the receipts say."""
    tickets = Counter(ticket.operation_key for ticket in evidence.tickets)
    for key, count in tickets.items():
        if count > 1:
            yield Violation("I2", key, f"has {count} tickets")
    done = {effect.key for effect in _ticket_effects(evidence)}
    for key in sorted(tickets.keys() - done):
        yield Violation("I2", key, "has a ticket, and no receipt")
    for key in sorted(done - tickets.keys()):
        yield Violation("I2", key, "has a receipt, and no ticket")


def tickets_follow_the_end(evidence: Evidence) -> Iterator[Violation]:
    """I2: a succeeded job has its ticket, a cancelled or discarded one has none that is open."""
    opened = Counter(ticket.job_id for ticket in evidence.tickets if ticket.state == "open")
    for job in evidence.jobs:
        if job.state is JobState.SUCCEEDED and opened[job.id] != 1:
            yield Violation("I2", job.id, f"succeeded with {opened[job.id]} open tickets")
        if job.state in (JobState.CANCELLED, JobState.DISCARDED) and opened[job.id]:
            yield Violation("I2", job.id, f"is {job.state}, and {opened[job.id]} of its tickets are open")


def no_stored_reply_is_paid_twice(evidence: Evidence) -> Iterator[Violation]:
    """I2: one attempt of a step succeeds. Of a worker that froze, a call that was in flight may come back late: it
    is paid, and on record as paid; but nothing that is stored is ever asked for again.
    """
    completed_at = {effect.key: effect.completed_at for effect in evidence.effects}
    for (job_id, step), attempts in _by_step(evidence.attempts).items():
        succeeded = [attempt for attempt in attempts if attempt.outcome == "succeeded"]
        if len(succeeded) <= 1:
            continue
        stored_at = completed_at.get(keys.step_key(job_id, step))
        late = [attempt for attempt in succeeded if stored_at and attempt.started_at > stored_at]
        if evidence.frozen and not late:
            continue
        how = f"{len(late)} of them began after it was stored" if late else "they overlapped"
        yield Violation("I2", f"{job_id}/{step}", f"{len(succeeded)} attempts succeeded ({how})")


def ledger_and_temporal_agree(evidence: Evidence) -> Iterator[Violation]:
    """I3, I4: over here is over there, and a dead job's workflow waits."""
    for job in evidence.jobs:
        workflow = evidence.workflows.get(job.id)
        if workflow is None:
            # Cancelled before its start was delivered: then there is nothing to start.
            if job.state is not JobState.CANCELLED:
                yield Violation("I4", job.id, f"is {job.state}, and has no workflow")
            continue
        if job.id in evidence.witnesses.leftovers and workflow.status == "TERMINATED" and job.state in FINAL:
            continue  # nothing is told to a workflow that is ended: it goes on showing what it showed
        wanted = "COMPLETED" if job.state in FINAL else "RUNNING"
        if workflow.status != wanted:
            yield Violation("I4", job.id, f"is {job.state}, and its workflow is {workflow.status}")
        if workflow.job_state != job.state:
            yield Violation("I4", job.id, f"is {job.state}, and Temporal shows JobState={workflow.job_state}")


def attempts_are_closed(evidence: Evidence) -> Iterator[Violation]:
    """I4: nothing is under way in a job that is over."""
    over = {job.id for job in evidence.jobs if job.state in FINAL}
    for attempt in evidence.attempts:
        if attempt.outcome == "running" and attempt.job_id in over:
            yield Violation(
                "I4", f"{attempt.job_id}/{attempt.step}", "an attempt is running in a job that is over"
            )


def events_tell_the_course(evidence: Evidence) -> Iterator[Violation]:
    """I6: gapless, `accepted` first, the end last and once, each step completed once."""
    events: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(evidence.events, key=lambda event: event.seq):
        events[event.job_id].append(event)
    for job in evidence.jobs:
        for what in _wrong_with_events(job, events[job.id]):
            yield Violation("I6", job.id, what)


def every_death_is_alerted(evidence: Evidence) -> Iterator[Violation]:
    """I8: and each dead job has its letter."""
    letters = {letter.id: letter for letter in evidence.letters}
    for letter in evidence.letters:
        if letter.alerted_at is None:
            yield Violation("I8", letter.id, f"died (generation {letter.generation}), and nobody was told")
    for job in evidence.jobs:
        if job.generation and job.id not in letters:
            yield Violation("I8", job.id, f"died {job.generation} times, and has no letter")


def attempts_are_bounded(evidence: Evidence) -> Iterator[Violation]:
    """I9: also those that crashed count."""
    for (job_id, step), attempts in _by_step(evidence.attempts).items():
        limit = attempt_limit(step)
        counted = [attempt for attempt in attempts if attempt.category not in COUNTED_APART]
        malformed = [attempt for attempt in attempts if attempt.category == Category.BAD_OUTPUT]
        for run_id, count in Counter(attempt.run_id for attempt in malformed).items():
            if count > MALFORMED_LIMIT:
                yield Violation("I9", f"{job_id}/{step}", f"{count} answers in no form in run {run_id}")
        for run_id, count in Counter(attempt.run_id for attempt in counted).items():
            if count > limit:
                yield Violation(
                    "I9", f"{job_id}/{step}", f"{count} attempts in run {run_id}, at most {limit} allowed"
                )


def nothing_leaks(evidence: Evidence) -> Iterator[Violation]:
    """I10: neither content nor secrets in logs, histories or search attributes."""
    for where, text in evidence.texts.items():
        for what, planted in evidence.planted.items():
            if planted in text:
                yield Violation("I10", where, f"holds {what}")


def one_key_is_one_job(evidence: Evidence) -> Iterator[Violation]:
    """I12: no job that nobody asked for, and the same job for every repeat."""
    answered: dict[str, set[str]] = defaultdict(set)
    sent = set()
    for operation in evidence.operations:
        if operation.what == "submit":
            sent.add(operation.key)
            if operation.answer is Answer.OK and operation.job_id:
                answered[operation.key].add(operation.job_id)
    for key, ids in answered.items():
        if len(ids) > 1:
            yield Violation("I12", key, f"was answered with {len(ids)} jobs")
    for made_under, count in Counter(job.key for job in evidence.jobs).items():
        if made_under is None or made_under not in sent:
            yield Violation("I12", made_under or "no key", f"{count} jobs that nobody asked for")
        elif count > 1:
            yield Violation("I12", made_under, f"made {count} jobs")


CHECKS: tuple[Callable[[Evidence], Iterable[Violation]], ...] = (
    every_accepted_job_ends,
    one_ticket_a_step,
    tickets_follow_the_end,
    no_stored_reply_is_paid_twice,
    ledger_and_temporal_agree,
    attempts_are_closed,
    events_tell_the_course,
    every_death_is_alerted,
    attempts_are_bounded,
    nothing_leaks,
    one_key_is_one_job,
    *WITNESS_CHECKS,
    *WORD_CHECKS,
)


def attempt_limit(step: str) -> int:
    """How often the attempts of a step may fail or crash in one run."""
    if step.startswith("undo."):
        return ATTEMPT_LIMITS[EffectKind.UNDO]
    if step in (keys.PLAN, keys.ANSWER) or step.endswith(".model"):
        return ATTEMPT_LIMITS[EffectKind.MODEL]
    return ATTEMPT_LIMITS[EffectKind.TOOL]


def _ticket_effects(evidence: Evidence) -> list[Effect]:
    return [
        effect
        for effect in evidence.effects
        if effect.kind == "tool" and effect.name == TICKET_TOOL and effect.state in DONE
    ]


def _by_step(attempts: Iterable[Attempt]) -> dict[tuple[str, str], list[Attempt]]:
    grouped: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        grouped[attempt.job_id, attempt.step].append(attempt)
    return grouped


def _wrong_with_events(job: Job, events: list[Event]) -> Iterator[str]:
    if not events:
        yield "has no events"
        return
    numbers = [event.seq for event in events]
    if numbers[0] != 1 or any(after != before + 1 for before, after in pairwise(numbers)):
        yield f"its events are numbered {numbers}"
    if numbers[-1] != job.event_seq:
        yield f"its last event is {numbers[-1]}, and the job counts {job.event_seq}"
    types = [event.type for event in events]
    if types[0] != "accepted" or types.count("accepted") != 1:
        yield f"`accepted` is not first and once: {types}"
    ends = [state for state in types if state in FINAL]
    if job.state in FINAL and (ends != [job.state] or types[-1] != job.state):
        yield f"the end {job.state} is not last and once: {types}"
    if job.state not in FINAL and ends:
        yield f"an end in the events of a job that is {job.state}: {types}"
    yield from _repeated_steps(events)


def _repeated_steps(events: list[Event]) -> Iterator[str]:
    steps = Counter(event.step for event in events if event.type == "step_completed")
    for step, count in steps.items():
        if count > 1:
            yield f"step {step} completed {count} times"
