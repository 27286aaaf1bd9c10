"""What all processes of a stack tell: canaries are found where the design says so and nowhere else, logs are
events, and every metric that a rule or the dashboard asks for is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.canaries import CONTENT, MODEL_KEY, OTHERS, Swept, swept
from tests.metrics.promql import expressions
from tests.trackers.github_double import TOKEN

pytestmark = pytest.mark.e2e

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{32}|ajk_|\bmsg_")
LABELS_OF_SCRAPES = {"job", "instance", "le"}

ONLY_IN_TROUBLE = {"temporal_workflow_task_execution_failed_total"}
"""The SDK has these from their first event on, and here there is none."""


@pytest.fixture(scope="module")
async def told(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Swept]:
    """One stack for all of these: it only tells, and is not changed."""
    async with swept(tmp_path_factory.mktemp("canaries")) as found:
        yield found


def families(told: Swept) -> list[Metric]:
    """Of all processes."""
    return [family for text in told.figures.values() for family in text_string_to_metric_families(text)]


def lines(told: Swept) -> list[tuple[str, str]]:
    """(file, line) of what our own processes have logged."""
    ours = {name: text for name, text in told.rig.logged().items() if name.startswith(("api", "relay", "worker"))}
    return [(name, line) for name, text in ours.items() for line in text.splitlines()]


async def test_content_is_in_the_ledger_and_is_told_nowhere(told: Swept) -> None:
    ledger = await told.ledger_text()

    assert [canary for canary in CONTENT if canary not in ledger] == []
    assert [(place, canary) for place, text in told.places.items() for canary in CONTENT if canary in text] == []


async def test_credentials_and_errors_texts_are_told_nowhere(told: Swept) -> None:
    hidden = (*OTHERS, *told.secrets)
    ledger = await told.ledger_text()

    assert all(len(secret) > 10 for secret in hidden)
    assert [(place, canary) for place, text in told.places.items() for canary in hidden if canary in text] == []
    api_key, admin_key, _, password = told.secrets
    assert [secret for secret in (api_key, admin_key, password, TOKEN, MODEL_KEY) if secret in ledger] == []


def test_every_place_was_looked_at(told: Swept) -> None:
    places = told.places

    assert {"log api.log", "log relay.log", "log worker-1.log", "log postgres.log"} <= places.keys()
    assert {"metrics of api", "metrics of relay", "metrics of worker-1"} <= places.keys()
    assert sum(name.startswith("workflow agent-job-") for name in places) >= 6
    assert {"agentjobs-api", "agentjobs-relay", "agentjobs-worker"} == {
        one.service for one in told.collector.spans
    }
    assert all(text for name, text in places.items() if not name.startswith("log "))


def test_every_line_of_our_logs_is_an_event(told: Swept) -> None:
    events: list[dict[str, Any]] = []
    for name, line in lines(told):
        assert line.startswith("{"), (name, line)
        events.append(json.loads(line))

    assert all({"event", "level", "timestamp", "logger"} <= event.keys() for event in events)
    assert {"api_started", "relay_started", "worker_started", "request"} <= {event["event"] for event in events}


def test_expected_failures_leave_no_traceback_and_no_stray_exception(told: Swept) -> None:
    stray = [(name, line) for name, line in lines(told) if "Traceback" in line or "never retrieved" in line]
    unforeseen = [
        (name, line) for name, line in lines(told) if '"unforeseen_error"' in line or '"crashed"' in line
    ]

    assert stray == []
    assert unforeseen == []


def test_every_metric_that_is_asked_for_is_told_with_its_labels(told: Swept) -> None:
    labels: dict[str, set[str]] = {"up": set()}
    for family in families(told):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)

    for one in expressions():
        named = one.metrics - ONLY_IN_TROUBLE
        assert named <= labels.keys(), (one.expression, named - labels.keys())
        known = LABELS_OF_SCRAPES.union(*(labels[metric] for metric in named))
        assert {label for metric, label in one.matched if metric in named} <= known, one.expression
        assert one.grouped <= known or not named, one.expression


def test_labels_are_closed_sets(told: Swept) -> None:
    values = {
        (sample.name, label, value)
        for family in families(told)
        for sample in family.samples
        for label, value in sample.labels.items()
    }

    assert [one for one in values if ID.search(one[2])] == []
    assert {value for _, label, value in values if label in {"tenant", "user", "job", "workflow_id"}} == set()
    assert {value for _, label, value in values if label == "tenant_class"} == {"open"}


def test_what_has_happened_is_counted(told: Swept) -> None:
    found = {
        (sample.name, *(sample.labels.get(label, "") for label in ("kind", "outcome", "state", "category")))
        for family in families(told)
        for sample in family.samples
        if sample.value > 0
    }

    assert ("agentjobs_attempts_total", "model", "succeeded", "", "none") in found
    assert ("agentjobs_attempts_total", "model", "failed", "", "unavailable") in found
    assert ("agentjobs_attempts_total", "model", "failed", "", "bad_output") in found
    assert ("agentjobs_attempts_total", "model", "abandoned", "", "none") in found
    assert ("agentjobs_attempts_total", "tool", "failed", "", "invalid_input") in found
    assert {state for name, _, _, state, _ in found if name == "agentjobs_jobs_ended_total"} >= {
        *("succeeded", "dead", "cancelled", "discarded"),
    }
    assert {"agentjobs_model_tokens_total", "agentjobs_outbox_delivered_total"} <= {one[0] for one in found}
