"""What the API answers about bulk redrives, as far as the commands show it."""

from collections.abc import Mapping

from pydantic import AwareDatetime, JsonValue

from agentjobs.commands.answers import Answer, Count


class LetterKind(Answer):
    """How many letters of one reason and agent."""

    reason: str
    agent: str | None = None
    count: Count = 0


class Doubt(Answer):
    """A letter with effects in doubt."""

    id: str
    reason: str | None = None
    steps: tuple[str, ...] = ()
    unsafe: bool = False


class LeftOut(Answer):
    """Letters that the filter takes and the bulk redrive would not."""

    in_doubt: Count = 0
    in_another_redrive: Count = 0
    beyond_limit: Count = 0


class RedriveTried(Answer):
    """What a bulk redrive would do."""

    letters: int
    by_kind: tuple[LetterKind, ...] = ()
    effects_done: Mapping[str, int] = {}
    in_doubt: tuple[Doubt, ...] = ()
    in_doubt_count: Count = 0
    left_out: LeftOut = LeftOut()
    needs_approval: bool = False


class Items(Answer):
    """Letters by what has become of them."""

    waiting: Count = 0
    asked: Count = 0
    recovered: Count = 0
    died_again: Count = 0
    cancelled: Count = 0
    no_verdict: Count = 0
    not_taken: Count = 0
    skipped: Count = 0


class Approval(Answer):
    """The second person's word."""

    needed: bool = False
    by: str | None = None
    at: AwareDatetime | None = None
    note: str | None = None


class BulkRedrive(Answer):
    """A bulk redrive; a list shows it without stage, items and skipped."""

    id: str
    state: str
    stage: str | None = None
    stopped_because: str | None = None
    created_by: str | None = None
    note: str | None = None
    filter: JsonValue = None
    policy: str | None = None
    canary: int | None = None
    share: float | None = None
    rate_per_second: float | None = None
    failure_limit: float | None = None
    letters: Count = 0
    asked: Count = 0
    items: Items | None = None
    skipped: Mapping[str, int] = {}
    approval: Approval = Approval()
    created_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    links: Mapping[str, str | None] = {}
