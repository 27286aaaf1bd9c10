"""The moves of an attempt: activities/executor.py, statement by statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentjobs.domain.effects import EffectClass, EffectState, Resolution, resolve
from agentjobs.domain.states import JobState
from tests.protocol.effect_course import Answer, hears
from tests.protocol.effect_world import OWN, Attempt, Call, Row, Rules, World
from tests.protocol.explorer import Move
from tests.protocol.names import Outside, Place, Step
from tests.protocol.protections import Protection

Moves = Iterator[tuple[Move, World]]

HAS_RECEIPT = (EffectState.COMPLETED, EffectState.UNDONE)


def attempt_moves(world: World, rules: Rules) -> Moves:
    """What each attempt could do next."""
    for k, attempt in enumerate(world.attempts):
        for what, how, following in _moves_of(world, k, attempt, rules):
            yield Move(f"attempt {k + 1}", what, how), following


def _moves_of(world: World, k: int, mine: Attempt, rules: Rules) -> Iterator[tuple[str, str, World]]:
    match mine.place:
        case Place.BEFORE_BEGIN if world.lock is None:
            yield (Step.BEGIN_EFFECT, *_begin(world, k, mine, rules))
        case Place.AFTER_BEGIN:
            yield from _resolve(world, k, mine, rules)
        case Place.LOOKED_UP:
            yield (Step.SEND_AGAIN, *_send_again(world, k, mine, rules))
        case Place.BEFORE_CALL:
            yield _call(world, k, mine, rules)
        case Place.CALLING:
            yield from _await(world, k, mine, rules)
        case Place.AFTER_CALL | Place.WRITTEN if world.lock is None:
            yield (Step.COMPLETE_EFFECT, *_complete(world, k, mine, rules))
        case Place.IN_TRANSACTION:
            yield from _commit(world, k, mine, rules)
        case Place.AFTER_COMPLETE | Place.AFTER_COMMIT:
            yield Outside.RETURN, "", _ended(world, k, Answer.SUCCESS)


def _ended(world: World, k: int, answer: Answer) -> World:
    over = world.attempts[k]._replace(place=Place.OVER)
    return hears(world.with_attempt(k, over), k, answer)


def _at(world: World, k: int, place: Place, **changes: Any) -> World:
    return world.with_attempt(k, world.attempts[k]._replace(place=place, **changes))


def _begin(world: World, k: int, mine: Attempt, rules: Rules) -> tuple[str, World]:
    row, state = world.row, world.row.state
    if mine.lost and rules.has(Protection.FENCE_BEGIN):
        return "fenced", _ended(world, k, Answer.RETRY)
    if world.job is not JobState.RUNNING and rules.has(Protection.BEGIN_ASKS_FOR_THE_JOB):
        return "not live", _ended(world, k, Answer.PERMANENT)
    if (world.cancel_asked or world.undoing) and rules.has(Protection.BEGIN_ASKS_FOR_CANCEL):
        return "cancel requested", _ended(world, k, Answer.CANCEL)
    if state in HAS_RECEIPT and rules.has(Protection.RECEIPT_FIRST):
        if row.other != mine.other and rules.has(Protection.FINGERPRINT):
            return "key conflict", _ended(world, k, Answer.PERMANENT)
        return "receipt", _ended(world._replace(mixed=row.other != mine.other), k, Answer.SUCCESS)
    if _used_up(world, rules) and rules.has(Protection.ATTEMPT_LIMIT):
        return "retries exhausted", _ended(world, k, Answer.PERMANENT)
    if state is EffectState.ABANDONED:
        return "given up", _ended(world, k, Answer.PERMANENT)
    if state is not None and row.other != mine.other and rules.has(Protection.FINGERPRINT):
        return "key conflict", _ended(world, k, Answer.PERMANENT)
    return _begun(world, k, mine, rules)


def _used_up(world: World, rules: Rules) -> bool:
    return rules.attempt_limit is not None and sum(one.counted for one in world.attempts) >= rules.attempt_limit


def _begun(world: World, k: int, mine: Attempt, rules: Rules) -> tuple[str, World]:
    row = world.row
    in_doubt = row.state is EffectState.BEGUN
    if rules.has(Protection.INTENT_FIRST) and row.state not in HAS_RECEIPT:
        if not in_doubt:
            started = sum(one.place is not Place.NOT_STARTED for one in world.attempts)
            row = Row(EffectState.BEGUN, False, row.sent + 1, started, False, mine.other)
        row = row._replace(in_doubt=in_doubt)
    world = world._replace(row=row, attempts=tuple(one._replace(open=False) for one in world.attempts))
    told = in_doubt and rules.has(Protection.DOUBT)
    begun = mine._replace(
        place=Place.AFTER_BEGIN,
        open=True,
        in_doubt=told,
        sent=row.sent,
        settled=row.settled,
        key=world.key,
        counted=rules.attempt_limit is not None,
    )
    return ("in doubt" if in_doubt else ""), world.with_attempt(k, begun)


def _resolve(world: World, k: int, mine: Attempt, rules: Rules) -> Iterator[tuple[str, str, World]]:
    if rules.effect_class is EffectClass.TRANSACTIONAL:
        if world.lock is None:
            yield (Step.LOCK_EFFECT, *_lock(world, k, mine, rules))
        return
    match resolve(rules.effect_class, in_doubt=mine.in_doubt):
        case Resolution.LOOK_UP_FIRST if rules.has(Protection.LOOK_UP):
            yield (Outside.LOOK_UP, *_look_up(world, k, mine, rules))
        case Resolution.EXECUTE | Resolution.LOOK_UP_FIRST:
            yield _call(_at(world, k, Place.BEFORE_CALL), k, mine, rules)
        case Resolution.ASK_A_PERSON:
            yield Outside.ASK_A_PERSON, "", _failed(world, k, rules, Answer.PERMANENT)


def _look_up(world: World, k: int, mine: Attempt, rules: Rules) -> tuple[str, World]:
    if world.landed[mine.key]:
        return "it is there", _at(world, k, Place.AFTER_CALL)
    if mine.settled or not rules.has(Protection.LANDING_HORIZON):
        return "it is not there, and settled", _at(world, k, Place.LOOKED_UP)
    return "it is not there yet", _failed(world, k, rules, Answer.RETRY)


def _send_again(world: World, k: int, mine: Attempt, rules: Rules) -> tuple[str, World]:
    row = world.row
    still = row.state is EffectState.BEGUN and row.sent == mine.sent
    if not still and rules.has(Protection.ONE_SENDER):
        return "somebody else was first", _failed(world, k, rules, Answer.RETRY)
    if row.state is EffectState.BEGUN and rules.has(Protection.SENT_AT_ANEW):
        started = sum(one.place is not Place.NOT_STARTED for one in world.attempts)
        row = row._replace(sent=row.sent + 1, sent_before=started, settled=False)
    return "", _at(world._replace(row=row), k, Place.BEFORE_CALL)


def _call(world: World, k: int, mine: Attempt, rules: Rules) -> tuple[str, str, World]:
    if mine.late and rules.has(Protection.TIME_LIMIT):
        return Step.FAIL_ATTEMPT, "its time is up", _failed(world, k, rules, Answer.RETRY, nothing_happened=True)
    stored = world.row.state in HAS_RECEIPT and not rules.has(Protection.RECEIPT_FIRST)
    return Outside.CALL, "", _at(world, k, Place.CALLING, call=Call.FLYING)._replace(wasted=stored)


def _await(world: World, k: int, mine: Attempt, rules: Rules) -> Iterator[tuple[str, str, World]]:
    if mine.call is Call.LANDED:
        yield Outside.REPLY, "", _at(world, k, Place.AFTER_CALL)
    if mine.call is Call.FLYING:
        refused = _at(world, k, Place.CALLING, call=Call.NONE)
        failed = _failed(refused, k, rules, Answer.RETRY, nothing_happened=True)
        yield Step.FAIL_ATTEMPT, "refused: certainly nothing happened", failed
    yield Step.FAIL_ATTEMPT, "no reply", _failed(world, k, rules, Answer.RETRY)


def _complete(world: World, k: int, mine: Attempt, rules: Rules) -> tuple[str, World]:
    if _may_complete(world, mine, rules):
        return "", _at(_completed(world, mine), k, Place.AFTER_COMPLETE, open=False)
    if world.row.state in HAS_RECEIPT:
        return "another one was first", _ended(world, k, Answer.SUCCESS)
    return "overtaken", _failed(world, k, rules, Answer.RETRY)


def _may_complete(world: World, mine: Attempt, rules: Rules) -> bool:
    begun = world.row.state is EffectState.BEGUN or not rules.has(Protection.COMPLETE_WHAT_IS_BEGUN)
    unfenced = (
        not mine.lost or rules.effect_class is EffectClass.READ_ONLY or not rules.has(Protection.FENCE_COMPLETE)
    )
    return (begun or not rules.has(Protection.INTENT_FIRST)) and unfenced


def _completed(world: World, mine: Attempt) -> World:
    return world._replace(row=world.row._replace(state=EffectState.COMPLETED, in_doubt=False, other=mine.other))


def _lock(world: World, k: int, mine: Attempt, rules: Rules) -> tuple[str, World]:
    state = world.row.state
    if rules.has(Protection.LOCK_TELLS):
        if state is EffectState.ABANDONED:
            return "given up", _failed(world, k, rules, Answer.PERMANENT)
        if state in HAS_RECEIPT:
            return "receipt", _ended(world, k, Answer.SUCCESS)
    if not rules.has(Protection.COMMIT_TOGETHER):
        return "the ticket commits by itself", _at(_written(world, mine, rules), k, Place.WRITTEN)
    return "", _at(world, k, Place.IN_TRANSACTION)._replace(lock=k)


def _written(world: World, mine: Attempt, rules: Rules) -> World:
    before = world.landed[mine.key]
    return _landed(world, mine, 1 if before and rules.has(Protection.ONE_TICKET_A_KEY) else before + 1)


def _landed(world: World, mine: Attempt, number: int) -> World:
    landed = (*world.landed[: mine.key], number, *world.landed[mine.key + 1 :])
    return world._replace(landed=landed)


def _commit(world: World, k: int, mine: Attempt, rules: Rules) -> Iterator[tuple[str, str, World]]:
    released = world._replace(lock=None)
    ended = _failed(released, k, rules, Answer.RETRY, nothing_happened=True)
    yield Outside.TRANSACTION_ENDED, "", ended
    if not _may_complete(world, mine, rules):
        yield Step.COMPLETE_EFFECT, "overtaken, rolled back", ended
        return
    committed = _completed(_written(released, mine, rules), mine)
    yield Step.COMPLETE_EFFECT, "and commit", _at(committed, k, Place.AFTER_COMMIT, open=False)
    lost = _failed(committed, k, rules, Answer.RETRY, nothing_happened=True)
    yield Step.COMPLETE_EFFECT, "committed, and the reply is lost", lost


def _failed(world: World, k: int, rules: Rules, answer: Answer, *, nothing_happened: bool = False) -> World:
    """fail_attempt: only of an attempt that nobody has closed meanwhile."""
    row = world.row
    release = nothing_happened or rules.effect_class is EffectClass.TRANSACTIONAL
    certain = not row.in_doubt or rules.effect_class in OWN or not rules.has(Protection.RELEASE_KEEPS_THE_DOUBT)
    if world.attempts[k].open and release and certain and row.state is EffectState.BEGUN:
        row = row._replace(state=EffectState.RELEASED, in_doubt=False)
    closed = world.with_attempt(k, world.attempts[k]._replace(open=False))
    return _ended(closed._replace(row=row), k, answer)


def destination_moves(world: World, rules: Rules) -> Moves:
    """What becomes of calls that are out; and time."""
    for k, attempt in enumerate(world.attempts):
        if attempt.call is Call.FLYING:
            before = world.landed[attempt.key]
            honours = rules.effect_class is EffectClass.IDEMPOTENT
            landed = _landed(world, attempt, 1 if before and honours else before + 1)
            who = f"attempt {k + 1}'s call"
            yield Move(who, Outside.LANDS), landed.with_attempt(k, attempt._replace(call=Call.LANDED))
            yield Move(who, Outside.NEVER_LANDS), world.with_attempt(k, attempt._replace(call=Call.NONE))
    if world.row.state is EffectState.BEGUN and not world.row.settled:
        yield from _time_passes(world, rules)


def _time_passes(world: World, rules: Rules) -> Moves:
    # What was sent in time lands within the horizon.
    early = world.attempts[: world.row.sent_before]
    if rules.has(Protection.LANDING_HORIZON) and any(one.call is Call.FLYING and not one.late for one in early):
        return
    late = (*(one._replace(late=True) for one in early), *world.attempts[world.row.sent_before :])
    settled = world._replace(row=world.row._replace(settled=True), attempts=late)
    yield Move("time", Outside.TIME_PASSES), settled
