"""What a page says once after a deed. Words of ours only: an address holds the name of one, never a text."""

from enum import StrEnum
from typing import Final

from starlette.responses import RedirectResponse, Response


class Notice(StrEnum):
    """A deed that was done."""

    CANCEL_ASKED = "cancel_asked"
    REDRIVE_ASKED = "redrive_asked"
    DISCARD_ASKED = "discard_asked"
    APPROVED = "approved"
    REJECTED = "rejected"
    BULK_STARTED = "bulk_started"
    BULK_PAUSED = "bulk_paused"
    BULK_RESUMED = "bulk_resumed"
    BULK_CANCELLED = "bulk_cancelled"
    BULK_APPROVED = "bulk_approved"


_SENTENCES: Final = {
    Notice.CANCEL_ASKED: "The job was asked to stop. What it did is undone where that is possible.",
    Notice.REDRIVE_ASKED: "The redrive is on its way. What was done is not done again.",
    Notice.DISCARD_ASKED: "The job is being given up. What it did is undone where that is possible.",
    Notice.APPROVED: "Approved: just this call is made, with just these arguments.",
    Notice.REJECTED: "Refused: the call is not made.",
    Notice.BULK_STARTED: "The bulk redrive was accepted. The canary goes first.",
    Notice.BULK_PAUSED: "Paused: no further letter is touched. Jobs that were redriven before go on.",
    Notice.BULK_RESUMED: "It goes on where it was paused.",
    Notice.BULK_APPROVED: "Approved: it begins with its canary.",
}
_BY_NAME: Final = {notice.value: sentence for notice, sentence in _SENTENCES.items()}


def done(place: str, notice: Notice) -> Response:
    """Go to this page of ours, which says so."""
    return RedirectResponse(f"{place}?notice={notice}", 303)


def notice_of(name: str | None) -> str | None:
    """The sentence of a notice; None for a name that is none."""
    return _BY_NAME.get(name or "")
