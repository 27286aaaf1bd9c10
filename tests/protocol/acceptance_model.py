"""Acceptance and relay: a client that sends its request twice, two API processes, two relays, Temporal, a cancel.

The watchdog is left out on purpose: it mends some of what goes wrong here, and nothing should need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from agentjobs.domain.states import FINAL, JobState
from tests.protocol.explorer import Model, Move
from tests.protocol.names import Outside, Place, Step
from tests.protocol.protections import Protection

Moves = Iterator[tuple[Move, "World"]]
START, CANCEL = "start_job", "cancel_job"


class Job(NamedTuple):
    """A job in the ledger, and its workflow."""

    state: JobState = JobState.PENDING
    cancel_asked: bool = False
    dispatched: bool = False
    unqueued: bool = False
    """Stored, and its outbox row is not (only without OUTBOX_WITH_THE_JOB)."""

    workflow: str = "none"
    runs: int = 0
    cancel_heard: bool = False
    stepped_after_its_end: bool = False


class Api(NamedTuple):
    """A process that has one request in hand."""

    place: Place = Place.NOT_STARTED
    found: int | None = None
    """The job that the answer will name."""


class Relay(NamedTuple):
    """A relay with one row in hand, and what it read of the row's job."""

    place: Place = Place.NOT_STARTED
    topic: str = ""
    job: int = 0
    read: JobState = JobState.PENDING
    holds: bool = False
    """Whether its transaction is open."""


class World(NamedTuple):
    """Everything."""

    jobs: tuple[Job, ...] = ()
    key: int | None = None
    rows: frozenset[tuple[str, int]] = frozenset()
    apis: tuple[Api, ...] = ()
    sends: int = 0
    """How often the client may still send its request."""

    answered: frozenset[int] = frozenset()
    relays: tuple[Relay, ...] = (Relay(), Relay())
    cancels: int = 1
    deletions: int = 1

    def with_job(self, number: int, **changes: Any) -> World:
        """The same with this job changed."""
        job = self.jobs[number]._replace(**changes)
        return self._replace(jobs=(*self.jobs[:number], job, *self.jobs[number + 1 :]))


@dataclass(frozen=True)
class AcceptanceRules:
    """What is taken away, and where the model begins."""

    start: World
    without: frozenset[Protection] = frozenset()

    def has(self, protection: Protection) -> bool:
        """Whether it is in place."""
        return protection not in self.without


A_REQUEST_SENT_TWICE = World(apis=(Api(), Api()), sends=2)
TWO_JOBS_AND_ROOM_FOR_ONE = World(
    jobs=(Job(), Job()), rows=frozenset({(START, 0), (START, 1)}), cancels=0, deletions=0
)
CAP = 1


def acceptance_model(rules: AcceptanceRules) -> Model[World]:
    """The model under these rules."""

    def moves(world: World) -> Moves:
        yield from _client(world)
        for number, api in enumerate(world.apis):
            for what, how, following, after in _api(world, api, rules):
                apis = (*following.apis[:number], after, *following.apis[number + 1 :])
                yield Move(f"API {number + 1}", what, how), following._replace(apis=apis)
        for number, relay in enumerate(world.relays):
            for what, how, following, after_it in _relay(world, relay, rules):
                relays = (*following.relays[:number], after_it, *following.relays[number + 1 :])
                yield Move(f"relay {number + 1}", what, how), following._replace(relays=relays)
        for number, job in enumerate(world.jobs):
            yield from _workflow(world, number, job, rules)
            yield from _user(world, number, job)

    return Model(rules.start, moves, _broken, _is_good_end)


def _client(world: World) -> Moves:
    if world.sends == 0 or world.answered:
        return
    for number, api in enumerate(world.apis):
        if api.place is Place.NOT_STARTED:
            apis = (*world.apis[:number], Api(Place.BEFORE_ACCEPT), *world.apis[number + 1 :])
            yield (
                Move("client", Outside.SUBMIT, f"API {number + 1}"),
                world._replace(apis=apis, sends=world.sends - 1),
            )


def _api(world: World, api: Api, rules: AcceptanceRules) -> Iterator[tuple[str, str, World, Api]]:
    if api.place is Place.NOT_STARTED:
        return
    yield Outside.CRASH, "", world, Api()
    match api.place:
        case Place.BEFORE_ACCEPT if not rules.has(Protection.KEY_WITH_THE_JOB):
            if world.key is None:
                yield Step.FIND_BY_KEY, "no job", world, api._replace(place=Place.LOOKED_UP)
            else:
                yield Step.FIND_BY_KEY, "its job", world, Api(Place.AFTER_ACCEPT, world.key)
        case Place.BEFORE_ACCEPT if world.key is not None:
            yield Step.FIND_BY_KEY, "the key is used", world, Api(Place.AFTER_ACCEPT, world.key)
        case Place.BEFORE_ACCEPT | Place.LOOKED_UP:
            yield Step.ACCEPT_JOB, "", _accepted(world, rules), Api(Place.AFTER_ACCEPT, len(world.jobs))
        case Place.AFTER_ACCEPT if api.found is not None and world.jobs[api.found].unqueued:
            queued = world.with_job(api.found, unqueued=False)
            yield Step.ACCEPT_JOB, "its outbox row", queued._replace(rows=world.rows | {(START, api.found)}), api
        case Place.AFTER_ACCEPT if api.found is not None:
            yield Outside.ANSWER, "", world._replace(answered=world.answered | {api.found}), Api()
            yield Outside.ANSWER_LOST, "", world, Api()


def _accepted(world: World, rules: AcceptanceRules) -> World:
    number, together = len(world.jobs), rules.has(Protection.OUTBOX_WITH_THE_JOB)
    rows = world.rows | {(START, number)} if together else world.rows
    return world._replace(jobs=(*world.jobs, Job(unqueued=not together)), key=number, rows=rows)


def _relay(world: World, relay: Relay, rules: AcceptanceRules) -> Iterator[tuple[str, str, World, Relay]]:
    if relay.place is Place.NOT_STARTED:
        yield from _claims(world, rules)
        return
    yield Outside.CRASH, "", world, Relay()
    if relay.holds:
        yield Outside.TRANSACTION_ENDED, "", world, relay._replace(holds=False)
    after = relay._replace(place=Place.AFTER_START)
    mark = Step.MARK_STARTED if relay.topic == START else Step.MARK_DELIVERED
    match relay.place:
        case Place.AFTER_CLAIM if (
            not rules.has(Protection.MARK_AFTER_TELLING) and (relay.topic, relay.job) in world.rows
        ):
            yield mark, "before Temporal is told", _marked(world, relay), relay._replace(holds=False)
        case Place.AFTER_CLAIM if relay.topic == START:
            yield (Outside.START_WORKFLOW, *_start(world, relay, rules), after)
        case Place.AFTER_CLAIM:
            yield from _tell_of_cancel(world, relay, after)
        case Place.AFTER_START if relay.holds:
            yield mark, "and commit", _marked(world, relay), Relay()
        case Place.AFTER_START:
            yield mark, "fails: its transaction is over", world, Relay()


def _claims(world: World, rules: AcceptanceRules) -> Iterator[tuple[str, str, World, Relay]]:
    held = {(relay.topic, relay.job) for relay in world.relays if relay.holds}
    for topic, number in sorted(world.rows):
        if (topic, number) in held and rules.has(Protection.ROWS_ARE_LOCKED):
            continue
        claimed = Relay(Place.AFTER_CLAIM, topic, number, world.jobs[number].state, holds=True)
        if topic == CANCEL:
            yield Step.CLAIM_COMMANDS, f"{topic} {number + 1}", world, claimed
        elif _has_room(world) and not (
            rules.has(Protection.ONE_STARTER) and any(topic == START for topic, _ in held)
        ):
            yield Step.CLAIM_STARTS, f"{topic} {number + 1}", world, claimed


def _has_room(world: World) -> bool:
    return sum(job.dispatched and job.state not in FINAL for job in world.jobs) < CAP


def _start(world: World, relay: Relay, rules: AcceptanceRules) -> tuple[str, World]:
    job = world.jobs[relay.job]
    if relay.read in FINAL and rules.has(Protection.START_ASKS_FOR_THE_JOB):
        return "the job is over: no", world
    if job.workflow == "running" or (job.workflow == "closed" and rules.has(Protection.REJECT_DUPLICATE)):
        return "it has it already", world
    return f"run {job.runs + 1}", world.with_job(
        relay.job, workflow="running", runs=min(job.runs + 1, 2), cancel_heard=False
    )


def _tell_of_cancel(world: World, relay: Relay, after: Relay) -> Iterator[tuple[str, str, World, Relay]]:
    job = world.jobs[relay.job]
    if job.workflow == "running":
        yield Outside.CANCEL_DELIVERED, "", world.with_job(relay.job, cancel_heard=True), after
    elif job.workflow == "closed" or relay.read in FINAL:
        yield Outside.CANCEL_DELIVERED, "to nobody", world, after
    else:
        yield Outside.CANCEL_DELIVERED, "not yet: later", world, Relay()


def _marked(world: World, relay: Relay) -> World:
    rows = world._replace(rows=world.rows - {(relay.topic, relay.job)})
    return rows.with_job(relay.job, dispatched=True) if relay.topic == START else rows


def _workflow(world: World, number: int, job: Job, rules: AcceptanceRules) -> Moves:
    who = f"workflow {number + 1}"
    in_hand = any(relay.place is not Place.NOT_STARTED and relay.job == number for relay in world.relays)
    if job.workflow == "closed" and world.deletions and not in_hand:
        # Not while a relay has its row in hand: that takes seconds, and workflows are kept for days.
        deleted = world._replace(deletions=world.deletions - 1).with_job(number, workflow="deleted")
        yield Move("Temporal", Outside.WORKFLOW_DELETED), deleted
    if job.workflow != "running":
        return
    if job.state is JobState.PENDING:
        yield Move(who, Step.BEGIN_EFFECT), world.with_job(number, state=JobState.RUNNING)
    elif job.state in FINAL and rules.has(Protection.BEGIN_ASKS_FOR_THE_JOB):
        yield Move(who, Step.BEGIN_EFFECT, "not live"), world.with_job(number, workflow="closed")
    elif job.state in FINAL:
        yield Move(who, Step.BEGIN_EFFECT), world.with_job(number, stepped_after_its_end=True)
    else:
        end = JobState.CANCELLED if job.cancel_heard else JobState.SUCCEEDED
        yield Move(who, Step.FINISH, end), world.with_job(number, state=end, workflow="closed")


def _user(world: World, number: int, job: Job) -> Moves:
    if not world.cancels or job.state in FINAL or job.cancel_asked:
        return
    world = world._replace(cancels=world.cancels - 1)
    if job.state is JobState.PENDING:
        yield (
            Move("user", Step.REQUEST_CANCEL, "pending"),
            world.with_job(number, state=JobState.CANCELLED, cancel_asked=True),
        )
    else:
        asked = world.with_job(number, cancel_asked=True)
        yield Move("user", Step.REQUEST_CANCEL), asked._replace(rows=world.rows | {(CANCEL, number)})


_BROKEN: tuple[tuple[str, Callable[[World], bool]], ...] = (
    ("I1: one key has two jobs", lambda world: world.key is not None and len(world.jobs) > 1),
    ("I3: a job that is over was started again", lambda world: any(job.runs > 1 for job in world.jobs)),
    (
        "I3: a step of a job began after its end",
        lambda world: any(job.stepped_after_its_end for job in world.jobs),
    ),
    (
        "I5: more jobs of a tenant run than its cap allows",
        lambda world: sum(job.dispatched and job.state not in FINAL for job in world.jobs) > CAP,
    ),
)


def _broken(world: World) -> str | None:
    return next((broken for broken, holds in _BROKEN if holds(world)), None)


def _is_good_end(world: World) -> bool:
    client_is_done = world.answered or world.sends == 0 or not world.apis
    jobs_are_over = all(job.state in FINAL for job in world.jobs)
    return (
        bool(client_is_done)
        and jobs_are_over
        and not world.rows
        and all(job.workflow != "running" for job in world.jobs)
    )
