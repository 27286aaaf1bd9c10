"""Single jobs in trouble, on one stack: what each kind of trouble costs."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from datetime import datetime
from math import inf

from benchmarks.figures import Figure
from tests.e2e.model_double import Rule
from tests.e2e.model_rig import CANARY, QUOTING, SLOW, Event, Job, ModelRig, by_attempt
from tests.providers.double_faults import Fault


async def ordinary(rig: ModelRig) -> list[Figure]:
    """Nothing is wrong: calls, tickets and the text of the answer."""
    rig.double.rule(Rule(Fault("slow", seconds=0.1), stage="answer"))
    jobs = [await rig.submit("ordinary") for _ in range(10)]
    streams = await asyncio.gather(*(rig.all_events(job["id"]) for job in jobs))
    ended = await rig.all_over(jobs)
    texts = [[event for event in events if event["type"] == "text"] for events in streams]
    return [
        Figure.of(
            "ordinary: jobs that succeeded with one ticket", "of 1", [await has_one_ticket(rig, j) for j in ended]
        ),
        Figure.of("ordinary: model calls of a job", "calls", [len(rig.double.calls(j["text"])) for j in jobs]),
        Figure.of("ordinary: tokens of a job", "tokens", [tokens_of(job) for job in ended]),
        Figure.of("ordinary: pieces of text in its events", "events", [len(found) for found in texts]),
        Figure.of("ordinary: length of a job", "s", [length_of(job) for job in ended]),
    ]


async def failing(rig: ModelRig) -> list[Figure]:
    """A provider that answers 500 for ever, to six jobs' answers, while others do well."""
    rig.double.rule(Rule(Fault("status", status=500, error=QUOTING), says="failing", stage="answer"))
    done = asyncio.Event()

    async def others() -> None:
        while not done.is_set():
            await rig.submit("others")
            await asyncio.sleep(1)

    beside = asyncio.create_task(others())
    try:
        jobs = await rig.submit_many("failing", 6)
        ended = await rig.all_over(jobs, seconds=400)
    finally:
        done.set()
        await beside
    calls = [len(rig.double.calls(job["text"], "answer")) for job in jobs]
    attempts = [await rig.attempts(job["id"], "answer") for job in jobs]
    counted = [[one for one in found if one["category"] == "unavailable"] for found in attempts]
    return [
        Figure.of(
            "500 for ever: jobs dead as retries_exhausted",
            "of 1",
            [died_of(j, "retries_exhausted") for j in ended],
        ),
        Figure.of("500 for ever: calls of the step", "calls", calls),
        Figure.of("500 for ever: attempts with a call on record", "attempts", [len(found) for found in counted]),
        Figure.of(
            "500 for ever: attempts held back by the breaker",
            "attempts",
            [len(a) - len(c) for a, c in zip(attempts, counted, strict=True)],
        ),
        Figure.of("500 for ever: length of a job", "s", [length_of(job) for job in ended]),
    ]


async def cancelled(rig: ModelRig) -> list[Figure]:
    """A stream that is cancelled: how soon the provider sees the connection close."""
    rig.double.rule(Rule(SLOW, says="cancelled", stage="answer"))
    seen = [await _one_cancelled(rig) for _ in range(12)]
    return [
        Figure.of("cancel: from sending it to the closed connection", "s", [one.from_request for one in seen]),
        Figure.of("cancel: from the 202 to the closed connection", "s", [one.from_202 for one in seen]),
        Figure.of("cancel: jobs cancelled", "of 1", [float(one.job["state"] == "cancelled") for one in seen]),
        Figure.of("cancel: attempts abandoned", "of 1", [float(one.outcome == "abandoned") for one in seen]),
    ]


@dataclass(frozen=True)
class Cancelled:
    """One job that was cancelled while its answer was written; times in seconds."""

    job: Job
    from_request: float
    from_202: float
    """Zero when the connection was closed before the 202 was here."""

    outcome: str


async def _one_cancelled(rig: ModelRig) -> Cancelled:
    job = await rig.submit("cancelled")
    await rig.until_it_writes(job["id"])
    asked = time.time()
    await rig.tell(f"/v1/jobs/{job['id']}/cancel")
    accepted = time.time()
    ended = await rig.over(job["id"])
    left_at = rig.double.calls(job["text"], "answer")[0].left_at or inf  # inf: it was let write to its end
    outcome = (await rig.attempts(job["id"], "answer"))[-1]["outcome"]
    return Cancelled(ended, left_at - asked, max(left_at - accepted, 0.0), outcome)


async def broken(rig: ModelRig) -> list[Figure]:
    """A stream that breaks in the middle, once for each job; then it works."""
    reply = {"text": "First half. Second half."}
    rig.double.rule(
        Rule(Fault("break", pieces=1, seconds=0.6, reply=reply), says="broken", stage="answer", calls=1),
        Rule(Fault("slow", seconds=0.1, reply=reply), says="broken", stage="answer"),
    )
    jobs: list[Job] = []
    streams: list[list[Event]] = []
    for _ in range(5):  # two at a time: five in a row would open the breaker
        two = await rig.submit_many("broken", 2)
        streams += await asyncio.gather(*(rig.all_events(job["id"]) for job in two))
        jobs += two
    ended = await rig.all_over(jobs)
    shown = [by_attempt(events) for events in streams]
    whole = [float(job["result"]["answer"] == reply["text"]) for job in ended]
    last = [float(list(texts.values())[-1] == reply["text"]) for texts in shown]
    return [
        Figure.of(
            "broken stream: jobs that succeeded", "of 1", [float(job["state"] == "succeeded") for job in ended]
        ),
        Figure.of("broken stream: answers that are whole", "of 1", whole),
        Figure.of("broken stream: attempts that wrote text", "attempts", [len(texts) for texts in shown]),
        Figure.of("broken stream: last attempt's text is the answer", "of 1", last),
        Figure.of(
            "broken stream: calls of the step", "calls", [len(rig.double.calls(j["text"], "answer")) for j in jobs]
        ),
    ]


async def malformed(rig: ModelRig) -> list[Figure]:
    """Plans that are no plans, for ever; and for two calls only."""
    bad = Fault("reply", reply={"text": json.dumps({"language": CANARY})})
    rig.double.rule(Rule(bad, says="malformed", stage="plan"), Rule(bad, says="clumsy", stage="plan", calls=2))
    jobs, mended = await rig.submit_many("malformed", 5), await rig.submit_many("clumsy", 5)
    ended, well = await rig.all_over(jobs), await rig.all_over(mended)
    return [
        Figure.of("malformed for ever: dead as bad_output", "of 1", [died_of(job, "bad_output") for job in ended]),
        Figure.of("malformed for ever: calls", "calls", [len(rig.double.calls(job["text"])) for job in jobs]),
        Figure.of("malformed for ever: tokens on record", "tokens", [tokens_of(job) for job in ended]),
        Figure.of(
            "malformed twice: jobs that succeeded", "of 1", [float(job["state"] == "succeeded") for job in well]
        ),
    ]


async def refused(rig: ModelRig) -> list[Figure]:
    """The model declines."""
    rig.double.rule(Rule(Fault("reply", reply={"refusal": f"I cannot. {CANARY}"}), says="refused", stage="plan"))
    jobs = await rig.submit_many("refused", 5)
    ended = await rig.all_over(jobs)
    return [
        Figure.of("refused: dead as content_refused", "of 1", [died_of(job, "content_refused") for job in ended]),
        Figure.of("refused: calls, of all models", "calls", [len(rig.double.calls(job["text"])) for job in jobs]),
    ]


async def killed(rig: ModelRig) -> list[Figure]:
    """The worker is killed while its model writes: when the next call is there, and what is told meanwhile."""
    seen = [await _one_killed(rig, f"killed{number}") for number in range(8)]
    calls = [rig.double.calls(one.job["text"], "answer") for one in seen]
    took = [found[1].at - one.at for found, one in zip(calls, seen, strict=True)]
    shown = [by_attempt(one.events) for one in seen]
    last = [
        list(texts.values())[-1] == one.job["result"]["answer"] for texts, one in zip(shown, seen, strict=True)
    ]
    waits = [float(one.states == ["running", "retry_wait", "running", "succeeded"]) for one in seen]
    return [
        Figure.of("kill -9 in a call: until the next call", "s", took),
        Figure.of("kill -9 in a call: calls of the step", "calls", [len(found) for found in calls]),
        Figure.of("kill -9 in a call: attempts that wrote text", "attempts", [len(texts) for texts in shown]),
        Figure.of("kill -9 in a call: last attempt's text is the answer", "of 1", [float(one) for one in last]),
        Figure.of("kill -9 in a call: the status showed a retry_wait between", "of 1", waits),
    ]


@dataclass(frozen=True)
class Killed:
    """One job whose worker was killed at `at` (of `time.time`), and the states that followed."""

    job: Job
    at: float
    states: list[str]
    events: list[Event]


async def _one_killed(rig: ModelRig, words: str) -> Killed:
    rig.double.rule(Rule(SLOW, says=words, stage="answer", calls=1))
    job = await rig.submit(words)
    await rig.until_it_writes(job["id"])
    watching = asyncio.create_task(rig.states(job["id"]))
    worker = await rig.worker_of(job["id"])
    at = time.time()
    await rig.running.stack.kill(worker)
    ended = {**await rig.over(job["id"]), "text": job["text"]}
    await rig.running.stack.until_ready(worker)
    return Killed(ended, at, await watching, await rig.all_events(job["id"]))


async def has_one_ticket(rig: ModelRig, job: Job) -> float:
    """1 if the job has succeeded with one ticket, else 0."""
    return float(job["state"] == "succeeded" and await rig.tickets_of(job["id"]) == 1)


def died_of(job: Job, reason: str) -> float:
    """1 if the job is dead for this reason, else 0."""
    return float(job["state"] == "dead" and job["failure"]["reason"] == reason)


def tokens_of(job: Job) -> float:
    """What it has certainly spent."""
    return float(job["usage"]["tokens_in"] + job["usage"]["tokens_out"])


def length_of(job: Job) -> float:
    """Seconds from its acceptance to its last change."""
    return (datetime.fromisoformat(job["updated_at"]) - datetime.fromisoformat(job["created_at"])).total_seconds()
