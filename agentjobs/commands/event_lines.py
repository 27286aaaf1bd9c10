"""A job's event stream as the commands read it: from lines to events, and from events to words."""

import codecs
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from pydantic import AwareDatetime, JsonValue, TypeAdapter, ValidationError

from agentjobs.commands.answers import Answer, Job
from agentjobs.commands.job_lines import how_to_decide, used_words
from agentjobs.commands.words import ahead_words, time_of
from agentjobs.domain.events import EventType

SNAPSHOT: Final = "snapshot"
EVENT_LIMIT: Final = 4_000_000
"""In characters: what is longer is none of ours, and must not fill the memory."""

_DOCUMENT: Final = TypeAdapter(dict[str, JsonValue])


class Unreadable(Exception):
    """What arrives is no event stream of this API."""


class Event(Answer):
    """One event. Fields unknown here are kept for --json."""

    seq: int
    type: str
    at: AwareDatetime
    step: str | None = None
    kind: str | None = None
    name: str | None = None
    attempt: int | None = None
    attempt_id: int | None = None
    category: str | None = None
    reason: str | None = None
    next_attempt_at: AwareDatetime | None = None
    tool: str | None = None
    decision: str | None = None
    expires_at: AwareDatetime | None = None
    text: str | None = None


class Told(Answer):
    """What one block of the stream tells: an event, or the job as a whole. `id` is where to go on from."""

    id: str | None
    event: Event | None = None
    job: Job | None = None


def told_by(parts: Iterable[bytes]) -> Iterator[Told]:
    """The events of a stream (HTML standard, 9.2.6). Raises Unreadable."""
    for block in _blocks(parts):
        given = dict(_field(line) for line in block.split("\n") if not line.startswith(":"))
        if "data" not in given:
            continue
        try:
            yield _told(given.get("id"), given.get("event", ""), given["data"])
        except ValidationError as error:
            raise Unreadable from error


def event_line(event: Event, job: Job, now: datetime) -> str:
    """One line for one event; `job` as it stood soon after."""
    parts = [
        time_of(event.at),
        event.type,
        event.step,
        f"attempt {event.attempt}" if event.attempt else None,
        event.reason or event.category,
        _next_attempt(event, now),
        event.tool,
        event.decision,
        f"until {ahead_words(event.expires_at, now)}" if event.expires_at else None,
        how_to_decide(job) if event.type == EventType.APPROVAL_REQUESTED else None,
        _usage(event, job),
    ]
    return "  ".join(part for part in parts if part)


def _told(seq: str | None, kind: str, data: str) -> Told:
    if kind == SNAPSHOT:
        return Told(id=seq, job=Job.model_validate_json(data))
    if seq is None:
        return Told(id=None)  # such as `resync`: a snapshot follows
    return Told(id=seq, event=Event.model_validate(_DOCUMENT.validate_json(data)))


def _blocks(parts: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    unread = ""
    for part in parts:
        # Only these end a line: splitlines() would also cut at characters that may stand inside JSON.
        unread += decoder.decode(part).replace("\r\n", "\n")
        *blocks, unread = unread.split("\n\n")
        yield from blocks
        if len(unread) > EVENT_LIMIT:
            raise Unreadable


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.removeprefix(" ")


def _next_attempt(event: Event, now: datetime) -> str | None:
    moment = event.next_attempt_at
    return None if moment is None else f"next attempt {ahead_words(moment, now)}"


def _usage(event: Event, job: Job) -> str | None:
    if event.type != EventType.STEP_COMPLETED or event.kind != "model":
        return None
    used = used_words(job.usage)
    return used and f"{used} so far"
