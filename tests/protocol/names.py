"""The names of steps: those of the product's failpoints and statements, and a few of the world outside.

test_names.py compares them with the code, both ways.
"""

from enum import StrEnum
from typing import Final


class Place(StrEnum):
    """Where somebody can stand between two steps: the product's failpoints."""

    BEFORE_ACCEPT = "submit.before_accept"
    AFTER_ACCEPT = "submit.after_accept"
    AFTER_CLAIM = "outbox.after_claim"
    AFTER_START = "outbox.after_start"
    BEFORE_BEGIN = "effect.before_begin"
    AFTER_BEGIN = "effect.after_begin"
    BEFORE_CALL = "effect.before_call"
    AFTER_CALL = "effect.after_call"
    AFTER_COMPLETE = "effect.after_complete"
    IN_TRANSACTION = "tool.in_transaction"
    AFTER_COMMIT = "tool.after_commit"
    BEFORE_RECORD = "outcome.before_record"
    AFTER_RECORD = "outcome.after_record"

    # Places without a failpoint: nobody can be killed there by name, but the model stops there all the same.
    NOT_STARTED = "not started"
    LOOKED_UP = "the destination was asked, and has it not"
    CALLING = "the call is out"
    WRITTEN = "written without its receipt"
    OVER = "over"


PLACES_WITHOUT_FAILPOINT: Final = frozenset(
    {Place.NOT_STARTED, Place.LOOKED_UP, Place.CALLING, Place.WRITTEN, Place.OVER}
)

FAILPOINTS_OUTSIDE: Final = {
    "effect.before_complete": "nothing is shared since effect.after_call: only the result's form is checked",
}
"""Failpoints of the product that are no place of the model, with the reason."""


class Step(StrEnum):
    """What is done between two places: a statement of the ledger (one, and atomic)."""

    ACCEPT_JOB = "accept_job"
    FIND_BY_KEY = "find_by_key"
    REQUEST_CANCEL = "request_cancel"
    CLAIM_STARTS = "claim_starts"
    MARK_STARTED = "mark_started"
    CLAIM_COMMANDS = "claim_commands"
    MARK_DELIVERED = "mark_delivered"
    BEGIN_EFFECT = "begin_effect"
    SEND_AGAIN = "send_again"
    LOCK_EFFECT = "lock_effect"
    COMPLETE_EFFECT = "complete_effect"
    FAIL_ATTEMPT = "fail_attempt"
    ABANDON_EFFECT = "abandon_effect"
    READ_EFFECT = "read_effect"
    ADOPT_EFFECT = "adopt_effect"
    GIVE_UP_EFFECT = "give_up_effect"
    BURY = "bury"
    FINISH = "finish"
    RESUME = "resume"
    REQUEST_RESOLUTION = "request_resolution"
    STILL_REQUESTED = "still_requested"
    REOPEN_LETTER = "reopen_letter"
    MARK_ALERTED = "mark_alerted"
    MARK_LOST = "mark_lost"


class Outside(StrEnum):
    """What Temporal, a destination, a person or an accident does."""

    SUBMIT = "the request is sent"
    ANSWER = "the answer arrives"
    ANSWER_LOST = "the answer is lost"
    CRASH = "crash"
    TRANSACTION_ENDED = "its transaction is ended by the server"
    START_WORKFLOW = "Temporal starts the workflow"
    NOTHING_TO_UNDO = "there is nothing to undo"
    WORKFLOW_ENDS = "the workflow ends"
    WORKFLOW_DELETED = "Temporal deletes the workflow"
    WORKFLOW_TERMINATED = "an operator terminates the workflow"
    WORKFLOW_FAILS = "the workflow meets a failure that retries cannot mend"
    START_ATTEMPT = "Temporal starts the next attempt"
    GIVE_ATTEMPT_UP = "Temporal gives the attempt up"
    CANCEL_DELIVERED = "the workflow hears of the cancel"
    CANCEL_IN_TEMPORAL = "somebody cancels in Temporal"
    RETURN = "Temporal hears of the success"
    CALL = "the call is sent"
    LANDS = "the destination carries it out"
    NEVER_LANDS = "the call gets lost"
    REPLY = "the reply arrives"
    LOOK_UP = "the destination is asked"
    TIME_PASSES = "the attempt's limit and the landing horizon pass"
    ASK_A_PERSON = "a person is asked"
    UNDO = "the destination takes it back"
    UPDATE = "the workflow is given the word"
    TELL_DESK = "the desk is told of the death"
