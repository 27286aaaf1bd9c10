"""What happened to a job, as one list: its attempts with cost and waits, and the decisions between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from agentjobs.api.schemas import AttemptShown
from agentjobs.domain import keys
from agentjobs.domain.events import EventType
from agentjobs.ledger.records import EventRecord

# Of each of these there is an attempt, which says more.
_OF_ATTEMPTS: Final = frozenset(
    {
        EventType.STARTED,
        EventType.STEP_COMPLETED,
        EventType.RETRY_SCHEDULED,
        EventType.ATTEMPT_STARTED,
        EventType.TEXT,
    }
)
# After these, what an attempt had written counts no more (docs/events.md).
_TEXT_ENDS: Final = frozenset({EventType.RETRY_SCHEDULED, EventType.DIED})


@dataclass(frozen=True)
class Entry:
    """One line. Of an attempt, or of an event such as `accepted`."""

    at: datetime
    event: EventRecord | None = None
    attempt: AttemptShown | None = None

    @property
    def took(self) -> timedelta | None:
        """How long the attempt took."""
        if self.attempt is None or self.attempt.finished_at is None:
            return None
        return self.attempt.finished_at - self.attempt.started_at

    @property
    def kind(self) -> str:
        """What the attempt was about: `plan`, `model`, `tool` or `answer`; or the event's type."""
        return self.event.type if self.event is not None else _kind(self.attempt.step if self.attempt else "")


def timeline(attempts: Sequence[AttemptShown], events: Sequence[EventRecord]) -> list[Entry]:
    """In the order in which things began."""
    of_events = [Entry(at=event.at, event=event) for event in events if event.type not in _OF_ATTEMPTS]
    of_attempts = [Entry(at=attempt.started_at, attempt=attempt) for attempt in attempts]
    return sorted(of_events + of_attempts, key=lambda entry: entry.at)


def text_so_far(events: Sequence[EventRecord]) -> str:
    """What the attempt in hand has written of an answer."""
    pieces: list[str] = []
    writer: object = None
    for event in events:
        of = event.data.get("attempt_id")
        if event.type in _TEXT_ENDS or (
            event.type in {EventType.ATTEMPT_STARTED, EventType.TEXT} and of != writer
        ):
            pieces, writer = [], of
        if event.type == EventType.TEXT:
            pieces.append(str(event.data.get("text", "")))
    return "".join(pieces)


def _kind(step: str) -> str:
    if step in {keys.PLAN, keys.ANSWER}:
        return step
    return "model" if step.endswith(".model") else "tool"
