"""The seam between an alert and a way to tell it."""

from enum import StrEnum
from typing import Protocol

from agentjobs.domain.alerts import Alert
from agentjobs.domain.job import Frozen


class Refusal(StrEnum):
    """What a sink that did not take an alert asks of us."""

    LATER = "later"
    SLOWER = "slower"
    """Later, and nothing else in the meantime."""

    NEVER_AGAIN = "never_again"
    """Neither this alert nor any other."""


class NotTaken(Exception):
    """The sink did not take the alert. The message says what kind of failure it is: never its own words."""

    def __init__(
        self,
        message: str,
        *,
        refusal: Refusal = Refusal.LATER,
        status: int | None = None,
        asked_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.refusal = refusal
        self.status = status
        self.asked_seconds = asked_seconds


class Taken(Frozen):
    """The sink has the alert."""

    status: int | None = None
    receipt: str | None = None


class Sink(Protocol):
    """One way to tell somebody, beside the log."""

    @property
    def name(self) -> str:
        """What its deliveries are recorded under: another one when the destination is another one."""

    async def deliver(self, alert: Alert) -> Taken:
        """Tell it. May be called twice for one alert, which must be told apart by its id. Raises NotTaken."""
