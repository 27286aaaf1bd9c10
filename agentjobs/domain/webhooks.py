"""What a webhook tells, what its answers mean, and when a delivery is tried again (Standard Webhooks 1.0.0)."""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from agentjobs.domain.job import Frozen

# "Deliverability and reliability": the example schedule. The first attempt is at once.
RETRY_SECONDS: Final = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
ATTEMPTS: Final = len(RETRY_SECONDS) + 1
JITTER: Final = 0.2
LONGEST_ASKED_SECONDS: Final = 86_400.0

THROTTLE_SECONDS: Final = 300.0
"""How long a webhook that says "slower" and not how long is left alone at most: it may be well again sooner than
the next attempt of the delivery that it refused."""

FAILING_FOR: Final = timedelta(days=5)
FAILED_DELIVERIES: Final = 10
"""A webhook is disabled when so many deliveries were given up, and none arrived, for so long. One delivery is
tried for more than three days, so neither a long weekend nor a quiet webhook is enough."""

WEBHOOKS_LIMIT: Final = 10
"""Of a tenant: each costs a row for each of its jobs."""

LONGEST_OVERLAP_SECONDS: Final = 7 * 86_400
DEFAULT_OVERLAP_SECONDS: Final = 86_400

_GONE: Final = 410
_SLOWER: Final = frozenset({429, 502, 503, 504})


class EventType(StrEnum):
    """What a tenant's webhook may be told."""

    SUCCEEDED = "job.succeeded"
    DEAD = "job.dead"
    CANCELLED = "job.cancelled"
    DISCARDED = "job.discarded"
    TEST = "webhook.test"


JOB_EVENTS: Final[tuple[EventType, ...]] = tuple(event for event in EventType if event is not EventType.TEST)


class WebhookState(StrEnum):
    """Where the delivery of one event to one webhook stands."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class Miss(StrEnum):
    """Why a delivery has not arrived, as its tenant is told."""

    UNREACHABLE = "unreachable"
    """No answer came, whatever the reason. One word for all: else a tenant could ask us which ports are open."""

    REFUSED = "refused"
    """An answer came, and was not 2xx."""

    WEBHOOK_DISABLED = "webhook_disabled"


class DisabledBecause(StrEnum):
    """Why a webhook gets nothing any more."""

    GONE = "gone"
    """It answered 410."""

    FAILING = "failing"


class Answer(Frozen):
    """What a receiver said: the status, and how long it asks us to wait."""

    status: int
    asked_seconds: float | None = None

    @property
    def is_success(self) -> bool:
        """It has the message. Also a redirect is none: the place that it names was not checked."""
        return 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        """It wants nothing any more."""
        return self.status == _GONE

    @property
    def asks_to_slow_down(self) -> bool:
        """It wants nothing else in the meantime."""
        return self.status in _SLOWER


def wait_after(attempts: int, *, chance: float, asked_seconds: float | None = None) -> float | None:
    """Seconds until the next attempt after so many have failed; None: there is none.

    chance: uniform in [0, 1). asked_seconds: what the other side asked for; taken when it is longer, up to a day.
    """
    if attempts >= ATTEMPTS:
        return None
    by_schedule = RETRY_SECONDS[attempts - 1] * (1 + JITTER * (2 * chance - 1))
    return max(by_schedule, min(asked_seconds or 0.0, LONGEST_ASKED_SECONDS))


def throttle_after(answer: Answer | None, wait_seconds: float | None) -> float:
    """Seconds for which the webhook as a whole is left alone. wait_seconds: of the delivery that was refused."""
    if answer is None or not answer.asks_to_slow_down:
        return 0.0
    if answer.asked_seconds is not None:
        return min(answer.asked_seconds, LONGEST_ASKED_SECONDS)
    return min(THROTTLE_SECONDS, wait_seconds or THROTTLE_SECONDS)
