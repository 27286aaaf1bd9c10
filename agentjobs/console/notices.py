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
    KEY_REVOKED = "key_revoked"
    GRANT_ADDED = "grant_added"
    GRANT_REVOKED = "grant_revoked"
    WEBHOOK_ENABLED = "webhook_enabled"
    WEBHOOK_TESTED = "webhook_tested"
    DELIVERY_REPLAYED = "delivery_replayed"


_SENTENCES: Final = {
    Notice.CANCEL_ASKED: "The job was asked to stop. What it did is undone where that is possible.",
    Notice.REDRIVE_ASKED: "The redrive is on its way. What was done is not done again.",
    Notice.DISCARD_ASKED: "The job is being given up. What it did is undone where that is possible.",
    Notice.APPROVED: "Approved: just this call is made, with just these arguments.",
    Notice.REJECTED: "Refused: the call is not made.",
    Notice.BULK_STARTED: "The bulk redrive was accepted. The canary goes first.",
    Notice.BULK_PAUSED: "Paused: no further letter is touched. Jobs that were redriven before go on.",
    Notice.BULK_RESUMED: "It goes on where it was paused.",
    Notice.BULK_CANCELLED: "Cancelled: no further letter is touched. Those that wait stay open.",
    Notice.BULK_APPROVED: "Approved: it begins with its canary.",
    Notice.KEY_REVOKED: "Revoked for good. Another process of the API may take it for 5 seconds more.",
    Notice.GRANT_ADDED: "Granted: it counts from the next effect on.",
    Notice.GRANT_REVOKED: "Taken back: effects that begin from now on are refused.",
    Notice.WEBHOOK_ENABLED: "It is told again of what happens from now on. What it missed can be sent once more.",
    Notice.WEBHOOK_TESTED: "A test is on its way: its delivery says what becomes of it.",
    Notice.DELIVERY_REPLAYED: "It is sent once more, under the same id.",
}
_BY_NAME: Final = {notice.value: sentence for notice, sentence in _SENTENCES.items()}


def done(place: str, notice: Notice) -> Response:
    """Go to this page of ours, which says so."""
    return RedirectResponse(f"{place}?notice={notice}", 303)


def notice_of(name: str | None) -> str | None:
    """The sentence of a notice; None for a name that is none."""
    return _BY_NAME.get(name or "")
