"""What the product does against each kind of accident, as switches of the models."""

from enum import StrEnum


class Protection(StrEnum):
    """Each can be taken away, and then the model should find what goes wrong. Docs: docs/protocol.md."""

    # The effect protocol.
    INTENT_FIRST = "the intent is durable before the call"
    RECEIPT_FIRST = "an attempt that finds a receipt calls nothing"
    DOUBT = "an attempt that finds the effect begun is told that it is in doubt"
    LOOK_UP = "a doubt that can be looked up is looked up before anything is sent"
    LANDING_HORIZON = "nothing is sent again before the landing horizon has passed"
    TIME_LIMIT = "an attempt that is past its own time limit sends nothing"
    SENT_AT_ANEW = "who sends again notes the time of it"
    ONE_SENDER = "of attempts that looked up the same doubt one sends"
    GIVE_UP_ONLY_WHAT_WAS_ASKED = "an undo gives up no effect that was sent again after it was looked at"
    RELEASE_KEEPS_THE_DOUBT = "what an attempt did not do, an earlier one may have done"
    SAME_KEY = "a redrive keeps the step keys"
    FINGERPRINT = "the same key with other arguments is a conflict"
    COMMIT_TOGETHER = "a transactional effect and its receipt commit together"
    ONE_TICKET_A_KEY = "the tracker has one ticket a step key"
    COMPLETE_WHAT_IS_BEGUN = "only an effect that is begun can be completed"
    LOCK_TELLS = "an attempt asks under the effect's lock whether it is still wanted"
    ABANDON = "an undo first makes sure that what was not done never will be"
    NO_STEP_WHEN_UNDOING = "once a job is being undone none of its steps begins"
    BEGIN_ASKS_FOR_CANCEL = "no step begins after a cancel was asked for"
    BEGIN_ASKS_FOR_THE_JOB = "no step of a job begins that is dead or over"
    FENCE_BEGIN = "a worker that was given up begins nothing"
    FENCE_COMPLETE = "a worker that was given up completes nothing"
    ATTEMPT_LIMIT = "attempts are counted by the ledger, crashed ones too"

    # Acceptance and relay.
    KEY_WITH_THE_JOB = "the key is taken in the statement that stores the job"
    OUTBOX_WITH_THE_JOB = "the outbox row is stored in the statement that stores the job"
    MARK_AFTER_TELLING = "a row leaves the outbox after Temporal was told"
    ROWS_ARE_LOCKED = "a row is locked while Temporal is told"
    ONE_STARTER = "one relay at a time claims starts"
    REJECT_DUPLICATE = "a workflow id that was used is not started again"
    START_ASKS_FOR_THE_JOB = "a start of a job that is over starts nothing"

    # Death, word and redrive.
    DEATH_OF_A_GENERATION = "a death is recorded of the generation that it is of"
    REDRIVE_OF_A_GENERATION = "a redrive takes effect on the death that it is for"
    WORD_OF_A_GENERATION = "a workflow takes the word that is for its death"
    END_OF_A_GENERATION = "an end is recorded of the generation that it is of"
    FINAL_STAYS = "a final state is left by nothing"
    ONE_WORD = "only an open letter takes a word"
    DEATH_WITH_ITS_WORD = "the word to the desk is stored with the death"
    STILL_REQUESTED = "a word is delivered only while its letter waits for it"
    LOST_WORDS = "a letter whose word was lost is opened again"
