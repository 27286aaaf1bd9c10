"""What workers and relays count, and under which labels."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig
from temporalio.testing import ActivityEnvironment

from activities.measures import Ended, attempt_ended, call_paid, job_ended, wait_begun
from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectKind
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.ledger.outbox import Topic
from agentjobs.outbox.measures import RelayMeasures, WebhookOutcome

Counted = dict[tuple[str, ...], int | float]
OF_THE_SDK = {"service_name", "namespace", "task_queue", "activity_type"}
"""Labels that the SDK puts beside ours."""


class Meter:
    """Keeps what is counted."""

    def __init__(self) -> None:
        self._buffer = MetricBuffer(1_000)
        self.runtime = Runtime(telemetry=TelemetryConfig(metrics=self._buffer))

    def counted(self) -> Counted:
        """By the metric's name and the values of its labels in the order of their names."""
        found: Counted = {}
        for update in self._buffer.retrieve_updates():
            labels = {str(name): str(value) for name, value in update.attributes.items() if name not in OF_THE_SDK}
            key = (update.metric.name, *(value for _, value in sorted(labels.items())))
            found[key] = found.get(key, 0) + update.value
        return found


@pytest.fixture
def meter() -> Meter:
    return Meter()


def in_an_activity(meter: Meter, count: Callable[[], None]) -> Counted:
    environment = ActivityEnvironment()
    environment.metric_meter = meter.runtime.metric_meter
    environment.run(count)
    return meter.counted()


def test_attempts_are_counted_by_kind_outcome_and_category(meter: Meter) -> None:
    def attempts() -> None:
        attempt_ended(EffectKind.MODEL, Ended.SUCCEEDED)
        attempt_ended(EffectKind.TOOL, Ended.FAILED, Category.TIMEOUT)
        attempt_ended(EffectKind.TOOL, Ended.FAILED, Category.TIMEOUT)
        wait_begun(Category.TIMEOUT, 2.5)

    assert in_an_activity(meter, attempts) == {
        ("agentjobs_attempts", "none", "model", "succeeded"): 1,
        ("agentjobs_attempts", "timeout", "tool", "failed"): 2,
        ("agentjobs_wait", "timeout"): 2.5,
    }


def test_a_call_is_counted_by_agent_model_and_class_of_tenant(meter: Meter) -> None:
    usage = Usage(tokens_in=100, tokens_out=20, usd=Decimal("0.000000123"))

    def calls() -> None:
        call_paid(usage, agent="triage", model="m1", budgeted=False)
        call_paid(usage, agent="triage", model="m1", budgeted=True)

    assert in_an_activity(meter, calls) == {
        ("agentjobs_model_tokens", "triage", direction, "m1", tenants): tokens
        for direction, tokens in (("in", 100), ("out", 20))
        for tenants in ("open", "budgeted")
    } | {("agentjobs_model_cost_nanodollars", "triage", "m1", tenants): 123 for tenants in ("open", "budgeted")}


def test_ends_are_counted_with_the_reason_of_a_death(meter: Meter) -> None:
    def ends() -> None:
        job_ended(JobState.SUCCEEDED)
        job_ended(JobState.DEAD, Category.ACCESS_DENIED)

    assert in_an_activity(meter, ends) == {
        ("agentjobs_jobs_ended", "none", "succeeded"): 1,
        ("agentjobs_jobs_ended", "access_denied", "dead"): 1,
    }


def test_a_relay_counts_from_zero(meter: Meter) -> None:
    RelayMeasures(meter.runtime.metric_meter)

    counted = meter.counted()

    assert set(counted.values()) == {0}
    assert {key[1] for key in counted if key[0] == "agentjobs_outbox_delivered"} == set(Topic)
    assert {key[1] for key in counted if key[0] == "agentjobs_webhook_tries"} == set(WebhookOutcome)


def test_a_relay_counts_what_it_tells_and_whom_it_takes_over_from(meter: Meter) -> None:
    measures = RelayMeasures(meter.runtime.metric_meter)

    measures.delivered(Topic.START_JOB)
    measures.delivery_failed(Topic.CANCEL_JOB)
    measures.taken_over(3)
    measures.webhook_tried(WebhookOutcome.REFUSED)

    assert {key: number for key, number in meter.counted().items() if number} == {
        ("agentjobs_outbox_delivered", "start_job"): 1,
        ("agentjobs_outbox_delivery_failures", "cancel_job"): 1,
        ("agentjobs_workers_lost",): 1,
        ("agentjobs_activities_handed_on",): 3,
        ("agentjobs_webhook_tries", "refused"): 1,
    }
