"""What a relay counts, beside the SDK's own figures and at the same address. Labels are closed sets: no ids."""

from enum import StrEnum

from temporalio.common import MetricMeter

from agentjobs.ledger.outbox import Topic


class WebhookOutcome(StrEnum):
    """What became of one try to deliver."""

    DELIVERED = "delivered"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class RelayMeasures:
    """Counters of one relay; without a meter they count for nobody."""

    def __init__(self, meter: MetricMeter = MetricMeter.noop) -> None:
        self._delivered = meter.create_counter("agentjobs_outbox_delivered", "Rows that Temporal took.")
        self._put_off = meter.create_counter("agentjobs_outbox_delivery_failures", "Rows that it did not take.")
        self._lost = meter.create_counter("agentjobs_workers_lost", "Workers whose work was handed on.")
        self._handed_on = meter.create_counter("agentjobs_activities_handed_on", "Activities of lost workers.")
        self._webhooks = meter.create_counter("agentjobs_webhook_tries", "Tries to deliver to a webhook.")
        self._begin()

    def _begin(self) -> None:
        # A series that begins with its first event hides that event from rate() and increase().
        for topic in Topic:
            self._delivered.add(0, {"topic": topic.value})
            self._put_off.add(0, {"topic": topic.value})
        for outcome in WebhookOutcome:
            self._webhooks.add(0, {"outcome": outcome.value})
        self._lost.add(0)
        self._handed_on.add(0)

    def delivered(self, topic: Topic) -> None:
        """Temporal has taken a row."""
        self._delivered.add(1, {"topic": topic.value})

    def delivery_failed(self, topic: Topic) -> None:
        """A row was put off for a reason of its own."""
        self._put_off.add(1, {"topic": topic.value})

    def taken_over(self, activities: int) -> None:
        """A lost worker's work was handed on."""
        self._lost.add(1)
        self._handed_on.add(activities)

    def webhook_tried(self, outcome: WebhookOutcome) -> None:
        """A receiver was asked."""
        self._webhooks.add(1, {"outcome": outcome.value})
