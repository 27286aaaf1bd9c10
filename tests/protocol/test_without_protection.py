"""Counterexamples of the model on the real ledger: it holds as it is, and breaks without the protection."""

from dataclasses import dataclass

import pytest

from agentjobs.domain.effects import EffectKind, EffectState
from agentjobs.domain.states import JobState
from agentjobs.domain.waits import ATTEMPT_LIMITS
from tests.activities.stage import Stage
from tests.ledger.scene import Scene
from tests.protocol import plays
from tests.protocol.protections import Protection
from tests.protocol.removals import Removal


@dataclass(frozen=True)
class Played:
    """A play, where the protection stands in the SQL, and what comes of it with and without."""

    play: plays.Play
    removal: Removal
    holds: object
    breaks: object


def _effects(statement: str, words: str, instead: str = "") -> Removal:
    return Removal("effects.sql", statement, words, instead)


def _outcomes(statement: str, words: str, instead: str = "") -> Removal:
    return Removal("outcomes.sql", statement, words, instead)


_LIMIT = ATTEMPT_LIMITS[EffectKind.TOOL]
_SAME_DOUBT = "AND state = 'begun' AND sent_at = :sent_at"

PLAYED: dict[Protection, Played] = {
    Protection.DOUBT: Played(
        plays.calls_of_an_unsafe_tool_in_doubt,
        _effects("begin_effect", "SET in_doubt = effects.state = 'begun'", "SET in_doubt = false"),
        holds=1,
        breaks=2,
    ),
    Protection.SENT_AT_ANEW: Played(
        plays.calls_after_a_second_sending,
        _effects("send_again", "SET sent_at = now()", "SET sent_at = sent_at"),
        holds=1,
        breaks=2,
    ),
    Protection.ONE_SENDER: Played(
        plays.calls_of_two_who_looked_up,
        _effects("send_again", _SAME_DOUBT, "AND :sent_at::timestamptz IS NOT NULL"),
        holds=1,
        breaks=2,
    ),
    Protection.GIVE_UP_ONLY_WHAT_WAS_ASKED: Played(
        plays.effect_that_is_sent_while_it_is_undone,
        _effects("give_up_effect", _SAME_DOUBT, "AND state = 'begun' AND :sent_at::timestamptz IS NOT NULL"),
        holds=EffectState.BEGUN,
        breaks=EffectState.ABANDONED,
    ),
    Protection.RELEASE_KEEPS_THE_DOUBT: Played(
        plays.effect_that_was_refused_the_second_time,
        _effects("fail_attempt", "AND (NOT held.in_doubt OR held.effect_class IN ('transactional', 'read_only'))"),
        holds=EffectState.BEGUN,
        breaks=EffectState.ABANDONED,
    ),
    Protection.FINGERPRINT: Played(
        plays.answer_to_other_arguments,
        _effects("begin_effect", "WHERE effects.fingerprint IN (excluded.fingerprint, '')", "WHERE true"),
        holds="refused",
        breaks={"call": 1},
    ),
    Protection.ABANDON: Played(
        plays.tickets_of_an_attempt_that_was_given_up,
        _effects("abandon_effect", "WHERE key = :key AND", "WHERE key = :key AND false AND"),
        holds=0,
        breaks=1,
    ),
    Protection.NO_STEP_WHEN_UNDOING: Played(
        plays.tickets_after_an_undo,
        _effects("close_to_steps", "AND cancel_requested_at IS NULL", "AND false"),
        holds=0,
        breaks=1,
    ),
    Protection.BEGIN_ASKS_FOR_CANCEL: Played(
        plays.ticket_after_a_cancel,
        _effects("begin_effect", "WHEN cancel_requested_at IS NOT NULL", "WHEN false"),
        holds=0,
        breaks=1,
    ),
    Protection.BEGIN_ASKS_FOR_THE_JOB: Played(
        plays.ticket_of_a_dead_job,
        _effects("begin_effect", "WHEN state NOT IN", "WHEN false AND state NOT IN"),
        holds=0,
        breaks=1,
    ),
    Protection.ATTEMPT_LIMIT: Played(
        plays.begins_of_a_step_that_crashes,
        _effects(
            "begin_effect", "(SELECT counted FROM tried) >= :attempt_limit::integer", ":attempt_limit::integer < 0"
        ),
        holds=_LIMIT,
        breaks=11,
    ),
    Protection.DEATH_OF_A_GENERATION: Played(
        plays.generation_after_a_death_that_was_told_twice,
        _outcomes("bury", "AND found.generation = :generation", "AND :generation::integer IS NOT NULL"),
        holds=1,
        breaks=2,
    ),
    Protection.REDRIVE_OF_A_GENERATION: Played(
        plays.state_after_a_late_redrive,
        _outcomes("resume", "AND found.generation = :generation", "AND :generation::integer IS NOT NULL"),
        holds=JobState.DEAD,
        breaks=JobState.RUNNING,
    ),
    Protection.END_OF_A_GENERATION: Played(
        plays.state_after_a_late_discard,
        _outcomes(
            "finish",
            "AND coalesce(found.generation = :generation::integer, true)",
            "AND coalesce(:generation::integer > 0, true)",
        ),
        holds=JobState.DEAD,
        breaks=JobState.DISCARDED,
    ),
    Protection.ONE_WORD: Played(
        plays.words_that_are_heard,
        Removal("dead_letters.sql", "request_resolution", "AND before.state = 'open'"),
        holds=["redrive_job"],
        breaks=["redrive_job", "discard_job"],
    ),
}
"""The protections that are words of SQL."""


@pytest.mark.parametrize("protection", PLAYED)
async def test_with_it_the_product_holds(stage: Stage, protection: Protection) -> None:
    played = PLAYED[protection]

    assert await played.play(stage) == played.holds


@pytest.mark.parametrize("protection", PLAYED)
async def test_without_it_the_product_breaks_as_the_model_says(stage: Stage, protection: Protection) -> None:
    played = PLAYED[protection]
    ledger = played.removal.taken_from(stage.scene.ledger)

    assert await played.play(Stage(Scene(ledger))) == played.breaks


def test_words_that_a_statement_has_not_cannot_be_removed() -> None:
    with pytest.raises(ValueError, match="0 times"):
        _effects("send_again", "no such words").changed("-- name: send_again^\nSELECT 1;\n")
