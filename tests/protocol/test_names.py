"""The models and the code name the same steps."""

import re
from typing import Final

from agentjobs.failpoints import NAMES
from tests.protocol.names import FAILPOINTS_OUTSIDE, PLACES_WITHOUT_FAILPOINT, Place, Step
from tests.protocol.removals import QUERIES

MODELLED: Final = ("acceptance.sql", "effects.sql", "outbox.sql", "outcomes.sql", "workers.sql")
"""Files whose every statement is a step, or is named below."""

STATEMENTS_OUTSIDE: Final = {
    "effects_of_job": "reads, for what is shown",
    "abandon_attempt": "makes an attempt's record more exact; the next begin closes it all the same",
    "remember_response": "of a model call: saves a second payment, and is part of no effect",
    "write_text": "shows an answer as it is written",
    "close_to_steps": "one transaction with abandon_effect, so one step",
    "effects_to_undo": "a look, after close_to_steps in its transaction: what a workflow may have forgotten",
    "lock_job": "one transaction with bury, so one step",
    "only_one_starter": "one transaction with claim_starts, so one step",
    "postpone": "only when a row is looked at again",
    "claim_desk_words": "claims rows as claim_commands does",
    "backlog": "reads, for a gauge",
    "next_worker_number": "a worker's id",
    "hold_worker_lock": "who is present is known to the model without it",
    "register_worker": "the same",
    "is_lost": "the same",
    "mark_stopped": "the same",
    "workers_without_lock": "the same",
    "workers_to_take_over": "what is handed on is any attempt that Temporal waits for",
    "jobs_of_worker": "the same",
    "mark_taken_over": "shows the job as waiting, and closes attempts as the next begin does",
}
"""Statements of those files that are no step, with the reason."""


def _statements(*files: str) -> set[str]:
    texts = "\n".join((QUERIES / file).read_text("utf-8") for file in files)
    return set(re.findall(r"^-- name: (\w+)", texts, re.MULTILINE))


def test_every_place_is_a_failpoint_of_the_product_or_said_to_have_none() -> None:
    assert {str(place) for place in set(Place) - PLACES_WITHOUT_FAILPOINT} | set(FAILPOINTS_OUTSIDE) == NAMES
    assert not {str(place) for place in PLACES_WITHOUT_FAILPOINT} & NAMES


def test_every_step_is_a_statement_of_the_product() -> None:
    every = _statements(*(path.name for path in QUERIES.glob("*.sql")))

    assert {str(step) for step in Step} <= every


def test_every_statement_of_the_protocol_is_a_step_or_said_to_be_none() -> None:
    assert _statements(*MODELLED) - {str(step) for step in Step} == set(STATEMENTS_OUTSIDE)
