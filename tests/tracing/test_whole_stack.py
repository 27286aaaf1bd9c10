"""Real jobs in the whole stack, as a collector sees them: a retry, a killed worker, a death and a redrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.alerts.receiver import Receiver, receiving
from tests.chaos.rig import until
from tests.e2e.model_double import Rule
from tests.e2e.model_rig import CANARY, QUOTING, SLOW, Job, ModelRig, running_model_rig
from tests.providers.double_faults import Fault
from tests.tracing.collector import Collector, collecting
from tests.tracing.told import Span, Tree

pytestmark = pytest.mark.e2e

TRACES = {"killed": "1" * 32, "doomed": "2" * 32}
CALLER = "00f067aa0ba902b7"
RUN = "run support-triage"
RULES = (
    Rule(Fault("status", status=503, error=QUOTING), says="killed", stage="plan", calls=1),
    Rule(SLOW, says="killed", stage="answer", calls=1),
    Rule(Fault("status", status=400, error=QUOTING), says="doomed", stage="step", calls=1),
)


@dataclass
class Seen:
    """What has happened, and what was told of it."""

    jobs: dict[str, Job]
    collector: Collector
    receiver: Receiver
    redrive_order: str
    """The traceparent of whoever ordered the redrive."""

    def tree(self, name: str) -> Tree:
        """The trace of this job."""
        return self.collector.tree(TRACES[name])


@pytest.fixture(scope="module")
async def seen(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Seen]:
    """One stack for all of these: it only tells, and is not changed."""
    home = tmp_path_factory.mktemp("traces")
    async with collecting() as collector, receiving() as receiver:
        settings = collector.environment | {"AGENTJOBS_WEBHOOKS_PRIVATE": "true"}
        async with running_model_rig(home, 1, **settings) as rig:
            rig.double.rule(*RULES)
            found = Seen({}, collector, receiver, f"00-{'3' * 32}-{CALLER}-01")
            await _add_webhook(rig, receiver)
            await _play(rig, found)
            await until(lambda: _is_told(found), "the traces", 30)
        yield found


async def _add_webhook(rig: ModelRig, receiver: Receiver) -> None:
    answered = await rig.admin.post("/v1/webhooks", json={"url": receiver.url, "types": ["job.succeeded"]})
    assert answered.status_code == 201, answered.text


async def _play(rig: ModelRig, seen: Seen) -> None:
    for name, trace_id in TRACES.items():
        rig.user.headers["traceparent"] = f"00-{trace_id}-{CALLER}-01"
        seen.jobs[name] = await rig.submit(name)
    del rig.user.headers["traceparent"]
    killed, doomed = seen.jobs["killed"]["id"], seen.jobs["doomed"]["id"]
    await rig.until_it_writes(killed)
    await rig.in_state(doomed, "dead")
    await rig.running.stack.kill("worker-1")
    await rig.in_state(killed, "succeeded")

    rig.admin.headers["traceparent"] = seen.redrive_order
    await rig.tell(f"/v1/dead-letters/{doomed}/redrive", {"note": CANARY}, rig.admin)
    del rig.admin.headers["traceparent"]
    await rig.in_state(doomed, "succeeded")


async def _is_told(seen: Seen) -> bool:
    counts = [
        (len(seen.tree(name).named(RUN)), len(seen.tree(name).named("webhook job.succeeded"))) for name in TRACES
    ]
    return counts == [(1, 1), (2, 1)]


def steps(tree: Tree, run: Span) -> list[tuple[object, ...]]:
    """(step, attempt, error) of a run's attempts."""
    children = sorted((one for one in tree.spans if one.parent_id == run.span_id), key=lambda one: one.began)
    attempts = [one for one in children if one.name.startswith("attempt ")]
    return [(one.attributes["agentjobs.step"], one.attributes["agentjobs.attempt"], one.error) for one in attempts]


def test_one_trace_leads_from_the_request_to_the_webhook(seen: Seen) -> None:
    tree = seen.tree("killed")
    request, start, run = tree.one("POST /v1/jobs"), tree.one("outbox start_job"), tree.one(RUN)
    (webhook,) = tree.named("webhook job.succeeded")

    assert (request.parent_id, start.parent_id, run.parent_id) == (CALLER, request.span_id, start.span_id)
    assert webhook.parent_id == run.span_id
    assert tree.orphans(CALLER) == []
    assert tree.twice() == []
    assert {one.service for one in tree.spans} == {"agentjobs-api", "agentjobs-relay", "agentjobs-worker"}


def test_a_retry_and_a_killed_worker_are_attempts_in_the_same_run(seen: Seen) -> None:
    tree = seen.tree("killed")

    assert steps(tree, tree.one(RUN)) == [
        ("plan", 1, "unavailable"),
        ("plan", 2, None),
        ("step-1.model", 1, None),
        ("step-1.search_tickets", 1, None),
        ("step-2.model", 1, None),
        ("step-2.create_ticket", 1, None),
        ("step-3.model", 1, None),
        ("answer", 1, "worker_lost"),
        ("answer", 2, None),
        ("outcome", 1, None),
    ]


def test_calls_are_children_of_their_attempts(seen: Seen) -> None:
    tree = seen.tree("killed")
    calls = [one for one in tree.spans if one.name.startswith("chat ")]
    tools = [one for one in tree.spans if one.name.startswith("execute_tool ")]

    assert {tree.parent(one).name for one in calls} == {
        "attempt plan",
        "attempt call_model",
        "attempt write_answer",
    }
    assert [tree.parent(one).name for one in tools] == ["attempt run_tool", "attempt run_tool"]
    assert {one.attributes["gen_ai.provider.name"] for one in calls} == {"openai"}
    assert [one.error for one in calls if one.is_error] == ["unavailable"]
    assert all(one.attributes["gen_ai.usage.input_tokens"] == 100 for one in calls if not one.is_error)


def test_a_redrive_is_a_second_run_that_points_at_the_first_and_at_its_order(seen: Seen) -> None:
    tree = seen.tree("doomed")
    died, redriven = tree.named(RUN)
    order = seen.collector.tree("3" * 32).one("POST /v1/dead-letters/{id}/redrive")

    assert tree.orphans(CALLER) == []
    assert (died.is_error, died.attributes["agentjobs.job.state"]) == (True, "dead")
    assert (redriven.is_error, redriven.attributes["agentjobs.job.state"]) == (False, "succeeded")
    assert redriven.parent_id == tree.one("outbox redrive_job").span_id
    assert set(redriven.links) == {
        (died.trace_id, died.span_id, "died_run"),
        (order.trace_id, order.span_id, "ordered_by"),
    }


def test_every_span_of_a_job_has_its_ids(seen: Seen) -> None:
    for name, job in seen.jobs.items():
        spans = seen.tree(name).spans
        ids = {(one.attributes.get("agentjobs.job.id"), one.attributes.get("agentjobs.tenant")) for one in spans}

        assert ids == {(job["id"], "dev")}


def test_receivers_of_webhooks_are_told_where_they_stand(seen: Seen) -> None:
    heard = {received.headers["traceparent"] for received in seen.receiver.received}
    told = {
        f"00-{one.trace_id}-{one.span_id}-01"
        for one in seen.collector.spans
        if one.name == "webhook job.succeeded"
    }

    assert len(heard) == 2
    assert heard == told


def test_no_span_quotes_anybody(seen: Seen) -> None:
    assert len(seen.collector.text) > 10_000
    assert CANARY not in seen.collector.text
