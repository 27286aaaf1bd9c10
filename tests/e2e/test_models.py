"""The whole stack and a model provider in trouble: what jobs, their owners and the provider see of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest

from tests.chaos.rig import until
from tests.e2e.model_double import Call, Rule, Stage, most_at_once
from tests.e2e.model_rig import CANARY, QUOTING, SLOW, Job, ModelRig, by_attempt, running_model_rig
from tests.providers.double_faults import Fault

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ModelRig]:
    """Two workers, one model, at most four calls at once, and logs as talkative as they get."""
    home = tmp_path_factory.mktemp("models")
    settings = {"AGENTJOBS_MODEL_CALLS_AT_ONCE": "4", "AGENTJOBS_LOG_LEVEL": "DEBUG"}
    async with running_model_rig(home, 2, **settings) as running:
        yield running


def calls_of(rig: ModelRig, job: Job, stage: Stage | None = None) -> list[Call]:
    """What the provider saw of one job."""
    return rig.double.calls(job["text"], stage)


async def test_the_answer_is_shown_while_it_is_written(rig: ModelRig) -> None:
    rig.double.rule(Rule(Fault("slow", seconds=0.2), stage="answer"))

    job = await rig.submit("ordinary")
    events = await rig.all_events(job["id"])
    ended = await rig.over(job["id"])

    pieces = [event for event in events if event["type"] == "text"]
    answering = await rig.attempts(job["id"], "answer")
    assert ended["state"] == "succeeded"
    assert len(pieces) > 1
    assert by_attempt(events) == {answering[0]["id"]: ended["result"]["answer"]}
    assert (ended["usage"]["tokens_in"], ended["usage"]["tokens_out"]) == (500, 100)  # 100 and 20 a call
    assert len(calls_of(rig, job)) == 5
    assert await rig.tickets_of(job["id"]) == 1


async def test_a_cancel_closes_the_providers_connection(rig: ModelRig) -> None:
    rig.double.rule(Rule(SLOW, says="cancelled", stage="answer"))
    job = await rig.submit("cancelled")
    await rig.until_it_writes(job["id"])

    await rig.tell(f"/v1/jobs/{job['id']}/cancel")
    asked = time.time()
    ended = await rig.over(job["id"])

    (call,) = calls_of(rig, job, "answer")
    (attempt,) = await rig.attempts(job["id"], "answer")
    assert ended["state"] == "cancelled"
    assert attempt["outcome"] == "abandoned"
    assert call.left_at is not None  # it would have written for half a minute
    assert call.left_at - asked < 5


async def test_a_stream_that_breaks_is_told_apart_from_the_one_that_counts(rig: ModelRig) -> None:
    reply = {"text": "First half. Second half."}
    rig.double.rule(
        Rule(Fault("break", pieces=1, seconds=0.6, reply=reply), says="broken", stage="answer", calls=1),
        Rule(Fault("sensible", reply=reply), says="broken", stage="answer"),
    )

    job = await rig.submit("broken")
    events = await rig.all_events(job["id"])
    ended = await rig.over(job["id"])

    failed, good = await rig.attempts(job["id"], "answer")
    assert ended["result"]["answer"] == reply["text"]
    assert (failed["outcome"], failed["category"], good["outcome"]) == ("failed", "unavailable", "succeeded")
    assert by_attempt(events) == {failed["id"]: "First half. Second h", good["id"]: reply["text"]}


async def test_the_third_malformed_reply_is_the_last_and_all_are_paid(rig: ModelRig) -> None:
    bad = Fault("reply", reply={"text": json.dumps({"language": CANARY})})
    rig.double.rule(Rule(bad, says="malformed", stage="plan"))

    job = await rig.submit("malformed")
    ended = await rig.over(job["id"])

    assert (ended["state"], ended["failure"]["reason"]) == ("dead", "bad_output")
    assert len(calls_of(rig, job)) == 3
    assert (ended["usage"]["tokens_in"], ended["usage"]["tokens_out"]) == (300, 60)


async def test_a_429_is_waited_out_in_the_open(rig: ModelRig) -> None:
    too_many = Fault("status", status=429, headers={"Retry-After": "2"}, error=QUOTING)
    slow = Rule(Fault("slow", seconds=0.3), stage="answer")  # so that many would be in flight, if they were let
    rig.double.rule(Rule(too_many, says="limited", until=time.time() + 4), slow)

    jobs = await rig.submit_many("limited", 10)
    states = asyncio.create_task(rig.states(jobs[0]["id"]))

    async def all_wait() -> bool:
        return bool((await rig.read("/v1/waiting"))["total"] == len(jobs))

    await until(all_wait, "all to wait", 20)
    waiting = json.loads((await rig.running.starter("waiting", "--json")).out)
    ended = await rig.all_over(jobs)

    attempts = [one for job in jobs for one in await rig.attempts(job["id"]) if one["outcome"] == "failed"]
    assert waiting["items"]
    assert all(item["next_attempt_at"] for item in waiting["items"])
    assert {item["failure"]["category"] for item in waiting["items"]} == {"rate_limited"}
    assert {job["state"] for job in ended} == {"succeeded"}
    assert {attempt["category"] for attempt in attempts} == {"rate_limited"}  # none of these is counted
    assert "retry_wait" in await states
    assert most_at_once(rig.double.calls("limited")) == 4


async def test_a_killed_workers_call_is_made_once_more(rig: ModelRig) -> None:
    rig.double.rule(Rule(SLOW, says="killed", stage="answer", calls=1))
    job = await rig.submit("killed")
    await rig.until_it_writes(job["id"])

    worker = await rig.worker_of(job["id"])
    killed = time.time()
    await rig.running.stack.kill(worker)
    ended = await rig.over(job["id"])
    await rig.running.stack.until_ready(worker)

    crashed, good = await rig.attempts(job["id"], "answer")
    first, second = calls_of(rig, job, "answer")
    texts = by_attempt(await rig.all_events(job["id"]))
    assert ended["state"] == "succeeded"
    assert (crashed["outcome"], good["outcome"]) == ("crashed", "succeeded")
    assert first.left_at is not None
    assert second.at - killed < 8  # heartbeats would take ten
    assert list(texts) == [crashed["id"], good["id"]]
    assert texts[good["id"]] == ended["result"]["answer"]


async def test_a_tenants_budget_is_never_overspent(rig: ModelRig) -> None:
    rig.double.rule()
    spent = (await rig.read("/v1/budget"))["spent"]["tokens"]
    held = (await rig.read("/v1/budget"))["held_back"]["tokens"]
    limit = spent + held + 40_000
    await rig.set_budget(limit)

    async with rig.looking("/v1/budget") as months:
        ended = await rig.all_over(await rig.submit_many("budget", 20))
    await rig.set_budget(None)
    dead = [job for job in ended if job["state"] == "dead"]
    for job in dead:
        await rig.tell(f"/v1/dead-letters/{job['id']}/redrive", {"note": "raised"}, rig.admin)
    again = [await rig.in_state(job["id"], "succeeded") for job in dead]

    assert {job["failure"]["reason"] for job in dead} == {"budget_exceeded"}
    assert 0 < len(dead) < 20
    assert max(month["spent"]["tokens"] + month["held_back"]["tokens"] for month in months) <= limit
    assert len(again) == len(dead)


async def test_a_provider_that_always_fails_is_called_as_often_as_is_on_record(rig: ModelRig) -> None:
    rig.double.rule(Rule(Fault("status", status=500, error=QUOTING), says="failing", stage="answer"))

    job = await rig.submit("failing")
    ended = await rig.over(job["id"], seconds=90)

    failed = [one for one in await rig.attempts(job["id"], "answer") if one["category"] == "unavailable"]
    assert (ended["state"], ended["failure"]["reason"]) == ("dead", "retries_exhausted")
    assert len(calls_of(rig, job, "answer")) == len(failed) == 6


async def test_no_log_has_a_word_of_any_request(rig: ModelRig) -> None:
    logs = rig.logged()

    assert {"worker-1.log", "worker-2.log", "api.log", "relay.log"} <= set(logs)
    assert any("debug" in text for name, text in logs.items() if name.startswith("worker"))
    assert [name for name, text in logs.items() if CANARY in text] == []


async def test_another_model_answers_while_the_first_is_away(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("fallback")
    async with running_model_rig(home, 1, AGENTJOBS_FALLBACK_MODELS="openai-chat:second") as rig:
        refusal = Fault("reply", reply={"refusal": "I cannot."})
        rig.double.rule(Rule(refusal, says="refused"), Rule(Fault("status", status=503), model="double"))

        refused = await rig.over((await rig.submit("refused"))["id"])
        early = await rig.all_over(await rig.submit_many("early", 6))
        to_the_first = len(rig.double.calls(model="double"))
        late = await rig.all_over(await rig.submit_many("late", 6))

        calls = rig.double.calls("late", model="double")
        assert refused["failure"]["reason"] == "content_refused"
        assert [call.model for call in rig.double.calls("refused")] == ["double"]
        assert {job["state"] for job in (*early, *late)} == {"succeeded"}
        assert to_the_first < 15
        assert len(calls) <= 3  # a probe at most: the breaker is open
