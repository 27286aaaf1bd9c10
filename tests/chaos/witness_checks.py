"""What must hold between the ledger and those who stand outside of it: judges' logs, clients, histories."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from agentjobs.domain import keys
from agentjobs.domain.states import FINAL
from tests.chaos.evidence import Evidence, Violation
from tests.chaos.witnesses import Followed

STAGE_OF = {keys.PLAN: "plan", keys.ANSWER: "answer"}


def no_call_without_an_intent(evidence: Evidence) -> Iterator[Violation]:
    """I2, I9: a model is asked at most once for each attempt that is on record."""
    job_of = {job.key: job.id for job in evidence.jobs}
    recorded = Counter(
        (attempt.job_id, stage_of(attempt.step)) for attempt in evidence.attempts if _asks_a_model(attempt.step)
    )
    calls = Counter((call.key, call.stage) for call in evidence.witnesses.model_calls)
    for (key, stage), count in calls.items():
        job_id = job_of.get(key)
        if job_id is None:
            yield Violation("I12", key, "a model was asked about a job that is not there")
        elif count > recorded[job_id, stage]:
            yield Violation(
                "I9", f"{job_id}/{stage}", f"{count} model calls, and {recorded[job_id, stage]} attempts on record"
            )


def nothing_stored_is_asked_again(evidence: Evidence) -> Iterator[Violation]:
    """I2: a model's reply that is stored is not paid for again."""
    if evidence.frozen:  # what a frozen worker had decided to send, it may send when it wakes
        return
    job_of = {job.key: job.id for job in evidence.jobs}
    stored_at = {effect.key: effect.completed_at for effect in evidence.effects}
    for call in evidence.witnesses.model_calls:
        if call.stage not in STAGE_OF.values() or call.key not in job_of:
            continue
        completed_at = stored_at.get(keys.step_key(job_of[call.key], call.stage))
        if completed_at is not None and call.at > completed_at.timestamp():
            late = call.at - completed_at.timestamp()
            yield Violation("I2", f"{job_of[call.key]}/{call.stage}", f"asked {late:.3f} s after it was stored")


def tickets_stay_with_their_tenant(evidence: Evidence) -> Iterator[Violation]:
    """I7: of whose job a ticket is, and whose words are in it, is one tenant."""
    tenant_of = {job.id: job.tenant for job in evidence.jobs}
    for word in evidence.witnesses.ticket_words:
        job_id = job_of_key(word.operation_key)
        if job_id not in tenant_of:
            yield Violation("I12", word.operation_key, "a ticket of a job that is not there")
        elif tenant_of[job_id] != word.tenant or f" {word.tenant}-" not in word.title:
            yield Violation("I7", word.operation_key, f"a ticket at tenant {word.tenant}, which it is not of")


def strangers_see_nothing(evidence: Evidence) -> Iterator[Violation]:
    """I7: another tenant's job is 404."""
    for peek in evidence.witnesses.peeks:
        if peek.status != 404:
            yield Violation("I7", peek.job_id, f"tenant {peek.tenant} asked for it and heard {peek.status}")


def quotas_hold(evidence: Evidence) -> Iterator[Violation]:
    """I5: never more than the limit, and what is told is what there is."""
    for seen in evidence.witnesses.quotas_seen:
        if seen.limit is not None and seen.in_flight > seen.limit + seen.redriven:
            more = f"{seen.in_flight} in flight, at most {seen.limit} and {seen.redriven} redriven"
            yield Violation("I5", f"{seen.tenant}/{seen.user}", more)
    for told in evidence.witnesses.quotas_told:
        if told.told != told.in_flight:
            yield Violation(
                "I5", f"{told.tenant}/{told.user}", f"{told.told} are told, {told.in_flight} are there"
            )


def followers_miss_nothing(evidence: Evidence) -> Iterator[Violation]:
    """I6: who follows a job, over however many connections, sees just its events."""
    recorded = {(event.job_id, event.seq): event.type for event in evidence.events}
    jobs = {job.id: job for job in evidence.jobs}
    for followed in evidence.witnesses.followed:
        yield from _wrong_with(followed, recorded)
        job = jobs.get(followed.job_id)
        if job is not None and job.state in FINAL and (not followed.seen or followed.seen[-1][1] != job.state):
            yield Violation("I6", followed.job_id, f"a follower never saw the end {job.state}")


def every_death_reaches_somebody(evidence: Evidence) -> Iterator[Violation]:
    """I8: an alert tells of it, and the one who is alerted has it. A job that dies again before that is
    told of once, by its latest death (docs/alerts.md).
    """
    taken = evidence.witnesses.alerts_taken
    told = [death for death in evidence.witnesses.deaths if taken.intersection(death.alert_ids)]
    latest_told = {death.job_id: death.generation for death in sorted(told, key=lambda death: death.generation)}
    for death in evidence.witnesses.deaths:
        if latest_told.get(death.job_id, 0) < death.generation:
            yield Violation("I8", death.job_id, f"its death {death.generation} reached nobody")


def histories_replay(evidence: Evidence) -> Iterator[Violation]:
    """I11: with the present code."""
    for job_id, why in evidence.witnesses.unreplayable:
        yield Violation("I11", job_id, f"its history does not replay: {why}")


WITNESS_CHECKS = (
    no_call_without_an_intent,
    nothing_stored_is_asked_again,
    tickets_stay_with_their_tenant,
    strangers_see_nothing,
    quotas_hold,
    followers_miss_nothing,
    every_death_reaches_somebody,
    histories_replay,
)


def stage_of(step: str) -> str:
    """Which kind of question a model step asks."""
    return STAGE_OF.get(step, "step")


def job_of_key(operation_key: str) -> str:
    """The job in "agent-job-ID/step-2.create_ticket"."""
    return operation_key.removeprefix(keys.WORKFLOW_ID_PREFIX).split("/", 1)[0]


def _asks_a_model(step: str) -> bool:
    return step in STAGE_OF or step.endswith(".model")


def _wrong_with(followed: Followed, recorded: dict[tuple[str, int], str]) -> Iterator[Violation]:
    numbers = [seq for seq, _ in followed.seen]
    if numbers and (numbers[0] != 1 or any(after != before + 1 for before, after in pairwise(numbers))):
        yield Violation("I6", followed.job_id, f"a follower saw the events {numbers}")
    for seq, kind in followed.seen:
        if recorded.get((followed.job_id, seq)) != kind:
            yield Violation("I6", followed.job_id, f"a follower saw {seq} as {kind}, which it is not")
