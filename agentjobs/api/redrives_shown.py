"""What goes out about bulk redrives."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from agentjobs.api.shown import Links
from agentjobs.domain.bulk import LETTERS_LIMIT, Counts, RedriveState, Stage, Standing, StopReason, stage_of
from agentjobs.ledger.redrive_records import MatchingLetter, RedriveRecord

IN_DOUBT_SHOWN = 100


class KindShown(BaseModel):
    """How many letters of one reason and agent."""

    reason: str
    agent: str
    count: int


class DoubtShown(BaseModel):
    """A letter with effects in doubt. `unsafe`: nobody can look them up, and they may not be repeated."""

    id: str
    reason: str
    steps: list[str]
    unsafe: bool


class LeftOutShown(BaseModel):
    """Letters that the filter takes and the bulk redrive would not, by why."""

    in_doubt: int
    in_another_redrive: int
    beyond_limit: int


class PreviewShown(BaseModel):
    """What a bulk redrive would do, if it were accepted now. `effects_done` are not repeated."""

    letters: int
    by_kind: list[KindShown]
    effects_done: dict[str, int]
    in_doubt: list[DoubtShown]
    in_doubt_count: int
    left_out: LeftOutShown
    needs_approval: bool


class ItemsShown(BaseModel):
    """Its letters, by what has become of each. docs/bulk-redrive.md says what each means."""

    waiting: int
    asked: int
    recovered: int
    died_again: int
    cancelled: int
    no_verdict: int
    not_taken: int
    skipped: int


class ApprovalShown(BaseModel):
    """The second person's word, where one is needed."""

    needed: bool
    by: str | None
    at: datetime | None
    note: str | None


class RedriveListed(BaseModel):
    """A bulk redrive in a list."""

    id: str
    state: RedriveState
    stopped_because: StopReason | None
    created_by: str
    note: str
    filter: dict[str, Any]
    policy: str
    again: bool
    canary: int
    share: float
    rate_per_second: float
    failure_limit: float
    verdict_seconds: int
    letters: int
    asked: int
    approval: ApprovalShown
    created_at: datetime
    finished_at: datetime | None
    links: dict[str, str | None]


class RedriveShown(RedriveListed):
    """A bulk redrive, and what has become of its letters so far."""

    stage: Stage
    items: ItemsShown
    skipped: dict[str, int]


class RedrivePage(BaseModel):
    """Bulk redrives, newest first."""

    items: list[RedriveListed]
    next_cursor: str | None


def redrive_listed(record: RedriveRecord, links: Links) -> RedriveListed:
    """A row of the list."""
    return RedriveListed(**_told(record, links))


def _stage(record: RedriveRecord, standing: Standing) -> Stage:
    # Late verdicts of the canary would move a stopped one on, to a stage that never began.
    if record.stopped_because is StopReason.CANARY_FAILED:
        return Stage.CANARY
    return stage_of(record.pace, standing.counts)


def redrive_shown(
    record: RedriveRecord, standing: Standing, skipped: dict[str, int], links: Links
) -> RedriveShown:
    """One, with its counts."""
    return RedriveShown(
        **_told(record, links),
        stage=_stage(record, standing),
        items=ItemsShown(**standing.counts.model_dump(include=set(Counts.model_fields))),
        skipped=skipped,
    )


def preview_shown(letters: Sequence[MatchingLetter], *, again: bool, approval_above: int) -> PreviewShown:
    """A dry run's answer, of the letters that its filter takes."""
    free = [letter for letter in letters if not letter.claimed]
    takeable = [letter for letter in free if again or not letter.unsafe]
    taken = takeable[:LETTERS_LIMIT]
    doubtful = [letter for letter in free if letter.effects_in_doubt]
    kinds = Counter((letter.reason, letter.agent) for letter in taken)
    return PreviewShown(
        letters=len(taken),
        by_kind=[KindShown(reason=kind[0], agent=kind[1], count=count) for kind, count in kinds.most_common()],
        effects_done=dict(Counter(tool for letter in taken for tool in letter.tools_done)),
        in_doubt=[_doubt_shown(letter) for letter in doubtful[:IN_DOUBT_SHOWN]],
        in_doubt_count=len(doubtful),
        left_out=LeftOutShown(
            in_doubt=len(free) - len(takeable),
            in_another_redrive=len(letters) - len(free),
            beyond_limit=len(takeable) - len(taken),
        ),
        needs_approval=len(taken) > approval_above,
    )


def _doubt_shown(letter: MatchingLetter) -> DoubtShown:
    steps = [str(effect["step"]) for effect in letter.effects_in_doubt]
    return DoubtShown(id=letter.id, reason=letter.reason, steps=steps, unsafe=letter.unsafe)


def _told(record: RedriveRecord, links: Links) -> dict[str, Any]:
    return {
        **record.model_dump(include=set(RedriveListed.model_fields) - {"filter"}),
        "filter": record.filter.model_dump(mode="json", exclude_none=True),
        "approval": ApprovalShown(
            needed=record.needs_approval,
            by=record.approved_by,
            at=record.approved_at,
            note=record.approval_note,
        ),
        "links": links.redrive(record.id),
    }
