"""Opaque cursors of lists: where the page before ended."""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Protocol, TypeVar

from fastapi import Query
from pydantic import AwareDatetime, StringConstraints, TypeAdapter

from agentjobs.api.problems import unacceptable
from agentjobs.domain.job import IDENTIFIER_PATTERN

Cursor = Annotated[str | None, Query(max_length=300, description="`next_cursor` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200, description="Rows a page.")]
_POSITION: TypeAdapter[tuple[datetime, str]] = TypeAdapter(
    tuple[AwareDatetime, Annotated[str, StringConstraints(pattern=IDENTIFIER_PATTERN)]]
)
Row = TypeVar("Row", bound="Identified")


class Identified(Protocol):
    """A row of a list."""

    @property
    def id(self) -> str:
        """Its id."""


def cursor_after(moment: datetime, row_id: str) -> str:
    """The cursor of what follows this row."""
    return base64.urlsafe_b64encode(json.dumps([moment.isoformat(), row_id]).encode()).decode()


def position_of(cursor: str | None) -> tuple[datetime, str] | None:
    """Where the cursor points. Raises Problem 422 for one that we did not give."""
    if cursor is None:
        return None
    try:
        moment, row_id = _POSITION.validate_json(base64.b64decode(cursor, altchars=b"-_", validate=True))
        return moment.astimezone(UTC), row_id
    except (ValueError, OverflowError):
        detail = "Give the `next_cursor` of a page, unchanged, or leave it out."
        raise unacceptable("query:cursor", detail) from None


def page_of(rows: Sequence[Row], limit: int, moment: str) -> tuple[Sequence[Row], str | None]:
    """Rows for one page out of up to limit + 1, and the cursor of the next, if there is one."""
    page = rows[:limit]
    if len(rows) <= limit:
        return page, None
    return page, cursor_after(getattr(page[-1], moment), page[-1].id)
