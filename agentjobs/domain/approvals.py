"""What a person is asked before a tool is called, and where that stands."""

from enum import StrEnum
from typing import Final

APPROVAL_SECONDS: Final = 86_400
"""How long a request is open, unless its tool says otherwise; never beyond the job's deadline."""

LONGEST_APPROVAL_SECONDS: Final = 30 * 86_400


class ApprovalState(StrEnum):
    """Where a request stands. The first decision holds."""

    REQUESTED = "requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    """Never decided: its job was cancelled, or ended otherwise. Shown, and not stored."""

    USED = "used"
    """Approved, and the call of this step was begun: it lets no other one through."""


class Decision(StrEnum):
    """A person's word, as callers give it."""

    APPROVE = "approve"
    REJECT = "reject"

    @property
    def state(self) -> ApprovalState:
        """What the request is then."""
        return ApprovalState.APPROVED if self is Decision.APPROVE else ApprovalState.REJECTED
