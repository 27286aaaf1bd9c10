"""Events as lines of an event stream (HTML standard, 9.2.5). FastAPI's own formatter puts the lines together.

Only what is durable has an `id`: a client that comes back names the last one it saw, and gets what follows.
"""

import json
import secrets
from typing import Any, Final

from fastapi.sse import format_sse_event
from pydantic_core import to_jsonable_python

from agentjobs.api.schemas import JobShown
from agentjobs.ledger.records import EventRecord

SNAPSHOT: Final = "snapshot"
RESYNC: Final = "resync"
RETRY_MILLISECONDS: Final = 1_000
RETRY_SPREAD_MILLISECONDS: Final = 2_000
"""When a process ends, its clients come back spread over this time."""

COMMENT: Final = format_sse_event(comment="still here")


def encoded(event: EventRecord) -> bytes:
    """An event of the ledger, with its seq as id."""
    own = {"seq": event.seq, "type": event.type, "at": event.at}
    return format_sse_event(id=str(event.seq), event=event.type, data_str=_json(own | {**event.data, **own}))


def encoded_snapshot(job: JobShown, seq: int) -> bytes:
    """The job's status, true up to this seq."""
    return format_sse_event(id=str(seq), event=SNAPSHOT, data_str=job.model_dump_json())


def encoded_resync(after: int) -> bytes:
    """What followed `after` is no longer there in full: a snapshot comes instead."""
    return format_sse_event(event=RESYNC, data_str=_json({"after": after}))


def encoded_retry() -> bytes:
    """How long to wait before connecting again, in milliseconds."""
    return format_sse_event(retry=RETRY_MILLISECONDS + secrets.randbelow(RETRY_SPREAD_MILLISECONDS))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(to_jsonable_python(value), ensure_ascii=False, separators=(",", ":"))
