"""The moves around the attempts: Temporal, the workflow with its undo, people, accidents."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import assert_never

from agentjobs.domain.effects import EffectClass, EffectOutcome, EffectState
from agentjobs.domain.states import FINAL, JobState
from tests.protocol.effect_world import ASKS_WHETHER_LOST, OWN, Flow, Row, Rules, Undo, World
from tests.protocol.explorer import Move
from tests.protocol.names import Outside, Place, Step
from tests.protocol.protections import Protection

Moves = Iterator[tuple[Move, World]]

CAN_BE_ASKED = (EffectClass.RECONCILABLE, EffectClass.TRANSACTIONAL)
RUNS = (Place.NOT_STARTED, Place.OVER)


class Answer(StrEnum):
    """What Temporal hears of an attempt."""

    SUCCESS = "success"
    RETRY = "retry"
    PERMANENT = "permanent"
    CANCEL = "cancel requested"


def hears(world: World, k: int, answer: Answer) -> World:
    """The workflow goes on; but only the attempt that Temporal waits for is heard."""
    if world.current != k or not world.out:
        return world
    world = world._replace(out=False)
    if answer is Answer.CANCEL and world.goal is JobState.SUCCEEDED:
        world = world._replace(goal=JobState.CANCELLED)
    if world.goal is not JobState.SUCCEEDED:
        return world._replace(flow=Flow.UNDOES)
    match answer:
        case Answer.SUCCESS:
            return world._replace(flow=Flow.ENDS)
        case Answer.RETRY if k + 1 < len(world.attempts):
            return world
        case Answer.RETRY | Answer.PERMANENT | Answer.CANCEL:
            return _dies(world)
        case _:
            assert_never(answer)


def _dies(world: World) -> World:
    closed = tuple(one._replace(open=False) for one in world.attempts)
    return world._replace(job=JobState.DEAD, flow=Flow.RESTS, attempts=closed)


def course_moves(world: World, rules: Rules) -> Moves:
    """What Temporal, the workflow, people and accidents could do next."""
    yield from _temporal(world, rules)
    match world.flow:
        case Flow.UNDOES:
            yield from _undo(world, rules)
        case Flow.ENDS:
            yield Move("workflow", Step.FINISH, world.goal), _finished(world, rules)
        case Flow.RESTS if world.job is JobState.DEAD:
            yield from _person(world, rules)
    if rules.cancels:
        yield from _cancel(world)
    yield from _accidents(world)


def _temporal(world: World, rules: Rules) -> Moves:
    k = world.current
    if world.flow is not Flow.WAITS:
        return
    if world.out:
        yield Move("Temporal", Outside.GIVE_ATTEMPT_UP, f"attempt {k + 1}"), hears(world, k, Answer.RETRY)
    elif world.goal is not JobState.SUCCEEDED:
        yield Move("workflow", Outside.CANCEL_DELIVERED, "between attempts"), world._replace(flow=Flow.UNDOES)
    elif k + 1 < len(world.attempts):
        for other in (False, True) if rules.other_arguments and k >= 0 else (False,):
            started = world.attempts[k + 1]._replace(place=Place.BEFORE_BEGIN, other=other)
            how = f"attempt {k + 2}" + (" with other arguments" if other else "")
            following = world.with_attempt(k + 1, started)._replace(current=k + 1, out=True)
            yield Move("Temporal", Outside.START_ATTEMPT, how), following
    else:
        yield Move("Temporal", Outside.GIVE_ATTEMPT_UP, "the model has no further one"), _dies(world)


def _cancel(world: World) -> Moves:
    if world.job is not JobState.RUNNING:
        return
    if not world.cancel_asked and not world.undoing:
        yield Move("user", Step.REQUEST_CANCEL), world._replace(cancel_asked=True)
    if world.goal is JobState.SUCCEEDED and world.flow is Flow.WAITS:
        who = (
            Move("workflow", Outside.CANCEL_DELIVERED)
            if world.cancel_asked
            else Move("operator", Outside.CANCEL_IN_TEMPORAL)
        )
        yield who, world._replace(goal=JobState.CANCELLED)


def _accidents(world: World) -> Moves:
    if world.job in FINAL:
        return
    for k, attempt in enumerate(world.attempts):
        if attempt.place in RUNS:
            continue
        crashed = world.with_attempt(k, attempt._replace(place=Place.OVER))
        yield (
            Move(f"attempt {k + 1}", Outside.CRASH),
            crashed._replace(lock=None if world.lock == k else world.lock),
        )
        if not attempt.lost and attempt.place in ASKS_WHETHER_LOST:
            lost = world.with_attempt(k, attempt._replace(lost=True))
            yield Move("relay", Step.MARK_LOST, f"attempt {k + 1}'s worker"), lost
    if world.flow is Flow.UNDOES and world.undo is not Undo.BEGINS:
        yield Move("undo", Outside.CRASH), world._replace(undo=Undo.BEGINS)


def _person(world: World, rules: Rules) -> Moves:
    if world.redrives >= rules.redrives:
        return
    redriven = world._replace(redrives=world.redrives + 1)
    if world.goal is JobState.SUCCEEDED:
        yield Move("person", Step.RESUME), _resumed(redriven, rules)
        if world.row.state is EffectState.BEGUN and rules.effect_class not in OWN:
            yield Move("person", Step.RESUME, "again"), _again(_resumed(redriven, rules))
        discarding = redriven._replace(goal=JobState.DISCARDED, flow=Flow.UNDOES, undo=Undo.BEGINS)
        yield Move("person", Step.REQUEST_RESOLUTION, "discard"), discarding
    else:
        yield (
            Move("person", Step.RESUME, "to be undone"),
            redriven._replace(job=JobState.RUNNING, goal=JobState.CANCELLED, flow=Flow.UNDOES, undo=Undo.BEGINS),
        )


def _resumed(world: World, rules: Rules) -> World:
    if not rules.has(Protection.SAME_KEY):
        world = world._replace(row=Row(), key=1)
    return world._replace(job=JobState.RUNNING, flow=Flow.WAITS, out=False)


def _again(world: World) -> World:
    row = world.row._replace(state=EffectState.RELEASED, in_doubt=False)
    return world._replace(row=row, key=1, again=1)


def _finished(world: World, rules: Rules) -> World:
    closed = tuple(one._replace(open=False) for one in world.attempts)
    return world._replace(job=world.goal, flow=Flow.RESTS, told=_outcome(world, rules), attempts=closed)


def _outcome(world: World, rules: Rules) -> EffectOutcome:
    state = world.row.state
    if state is EffectState.COMPLETED:
        return EffectOutcome.DONE if world.goal is JobState.SUCCEEDED else EffectOutcome.STAYS
    if state is EffectState.UNDONE:
        return EffectOutcome.UNDONE
    if state is EffectState.BEGUN and rules.effect_class is not EffectClass.TRANSACTIONAL:
        return EffectOutcome.IN_DOUBT
    return EffectOutcome.NOT_DONE


def _undo(world: World, rules: Rules) -> Moves:
    if rules.effect_class is EffectClass.READ_ONLY:
        yield Move("workflow", Outside.NOTHING_TO_UNDO), world._replace(flow=Flow.ENDS)
        return
    match world.undo:
        case Undo.BEGINS if world.lock is None:
            yield Move("undo", Step.ABANDON_EFFECT), _abandoned(world, rules)
        case Undo.ABANDONED:
            yield _undo_reads(world, rules)
        case Undo.ASKS:
            yield _undo_asks(world, rules)
        case Undo.GIVES_UP:
            yield _undo_gives_up(world, rules)
        case Undo.ACTS:
            taken = tuple(key == world.key or back for key, back in enumerate(world.taken_back))
            yield Move("undo", Outside.UNDO), world._replace(undo=Undo.ACTED, taken_back=taken)
        case Undo.ACTED if world.lock is None:
            undone = (
                world.row._replace(state=EffectState.UNDONE)
                if world.row.state is EffectState.COMPLETED
                else world.row
            )
            yield Move("undo", Step.COMPLETE_EFFECT), world._replace(row=undone, flow=Flow.ENDS)


def _abandoned(world: World, rules: Rules) -> World:
    row = world.row
    certain = row.state is EffectState.RELEASED or (row.state is EffectState.BEGUN and rules.effect_class in OWN)
    if certain and rules.has(Protection.ABANDON):
        row = row._replace(state=EffectState.ABANDONED, in_doubt=False)
    undoing = rules.has(Protection.NO_STEP_WHEN_UNDOING) and world.job is JobState.RUNNING
    return world._replace(row=row, undo=Undo.ABANDONED, undoing=undoing or world.undoing)


def _undo_reads(world: World, rules: Rules) -> tuple[Move, World]:
    row, move = world.row, Move("undo", Step.READ_EFFECT, str(world.row.state))
    if row.state is EffectState.COMPLETED:
        return move, world._replace(undo=Undo.ACTS)
    if row.state in (None, EffectState.ABANDONED, EffectState.UNDONE):
        return move, world._replace(flow=Flow.ENDS)
    if rules.effect_class in CAN_BE_ASKED:
        return move, world._replace(undo=Undo.ASKS, undo_sent=row.sent, undo_settled=row.settled)
    return Move("undo", Outside.ASK_A_PERSON), _dies(world)


def _undo_asks(world: World, rules: Rules) -> tuple[Move, World]:
    if world.landed[world.key]:
        row = world.row
        if row.state is EffectState.BEGUN:
            row = row._replace(state=EffectState.COMPLETED, in_doubt=False)
        return Move("undo", Step.ADOPT_EFFECT), world._replace(row=row, undo=Undo.ACTS)
    if world.undo_settled or not rules.has(Protection.LANDING_HORIZON):
        return Move("undo", Outside.LOOK_UP, "it is not there, and settled"), world._replace(undo=Undo.GIVES_UP)
    return Move("undo", Outside.LOOK_UP, "it is not there yet"), world._replace(undo=Undo.BEGINS)


def _undo_gives_up(world: World, rules: Rules) -> tuple[Move, World]:
    row = world.row
    as_asked = row.state is EffectState.BEGUN and row.sent == world.undo_sent
    if not as_asked and rules.has(Protection.GIVE_UP_ONLY_WHAT_WAS_ASKED):
        return Move("undo", Step.GIVE_UP_EFFECT, "not what was asked about"), world._replace(undo=Undo.BEGINS)
    if row.state is EffectState.BEGUN:
        row = row._replace(state=EffectState.ABANDONED, in_doubt=False)
    return Move("undo", Step.GIVE_UP_EFFECT), world._replace(row=row, flow=Flow.ENDS)
