"""Many jobs in the same trouble: what they do to the provider, to each other, and to a tenant's budget."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import Any

from benchmarks.figures import Figure
from benchmarks.troubled_jobs import died_of, length_of
from tests.e2e.model_double import Rule, most_at_once
from tests.e2e.model_rig import QUOTING, Job, ModelRig
from tests.providers.double_faults import Fault

ANSWER = Rule(Fault("slow", seconds=0.1), stage="answer")


async def rate_limited(rig: ModelRig) -> list[Figure]:
    """Thirty jobs, and a provider that says 429 for eight seconds; at most four calls at once."""
    end = time.time() + 8
    too_many = Fault("status", status=429, headers={"Retry-After": "3"}, error=QUOTING)
    rig.double.rule(Rule(too_many, until=end), ANSWER)
    async with rig.looking("/v1/waiting?limit=200") as seen:
        jobs = await rig.submit_many("ratelimited", 30)
        ended = await rig.all_over(jobs, seconds=240)
    calls = rig.double.calls("ratelimited")
    attempts = [one for job in jobs for one in await rig.attempts(job["id"])]
    back = [min(c.at for c in rig.double.calls(job["text"]) if c.fault != "status") - end for job in jobs]
    shown = {item["id"] for page in seen for item in page["items"] if _tells_its_wait(item)}
    return [
        Figure.of("429: jobs that succeeded", "of 1", _succeeded(ended)),
        Figure.of("429: jobs that /v1/waiting showed with until and category", "jobs", [len(shown)]),
        Figure.of("429: calls answered by 429", "calls", [sum(call.fault == "status" for call in calls)]),
        Figure.of(
            "429: attempts that count against the limit",
            "attempts",
            [sum(one["outcome"] == "failed" and one["category"] != "rate_limited" for one in attempts)],
        ),
        Figure.of(
            "429: attempts held back by ourselves",
            "attempts",
            [sum((one["message"] or "").startswith("held back") for one in attempts)],
        ),
        Figure.of("429: calls at once, at most", "calls", [most_at_once(calls)]),
        Figure.of("429: comebacks after its end", "s", back),
        Figure.of("429: first calls of jobs within 0.1 s, at most", "calls", [_densest(back)]),
        Figure.of("429: length of a job", "s", [length_of(job) for job in ended]),
    ]


async def outage(rig: ModelRig) -> list[Figure]:
    """Thirty jobs, and a provider that says 500 to everybody for twenty seconds."""
    end = time.time() + 20
    rig.double.rule(Rule(Fault("status", status=500, error=QUOTING), until=end), ANSWER)
    jobs = await rig.submit_many("outage", 30)
    ended = await rig.all_over(jobs, seconds=240)
    calls = rig.double.calls("outage")
    attempts = [one for job in jobs for one in await rig.attempts(job["id"])]
    return [
        Figure.of("outage of 20 s: jobs that succeeded", "of 1", _succeeded(ended)),
        Figure.of("outage of 20 s: calls that failed", "calls", [sum(call.fault == "status" for call in calls)]),
        Figure.of("outage of 20 s: attempts that count against the limit", "attempts",
                  [sum(one["category"] == "unavailable" for one in attempts)]),
        Figure.of("outage of 20 s: from its end to the first good call", "s",
                  [min(call.at for call in calls if call.fault != "status") - end]),
        Figure.of("outage of 20 s: from its end to the last job's end", "s",
                  [max((c.over_at or 0) for c in calls) - end]),
    ]  # fmt: skip


async def fallback(rig: ModelRig) -> list[Figure]:
    """Thirty jobs one after the other, and a first model that says 503: the second one answers."""
    rig.double.rule(Rule(Fault("status", status=503, error=QUOTING), model="double"), ANSWER)
    first: list[int] = []
    ended: list[Job] = []
    for _ in range(5):
        jobs = await rig.submit_many("fallback", 10)
        ended += await rig.all_over(jobs, seconds=120)
        first.append(len(rig.double.calls("fallback", model="double")))
    each = [b - a for a, b in zip([0, *first], first, strict=False)]
    return [
        Figure.of("fallback: jobs that succeeded", "of 1", _succeeded(ended)),
        Figure.of(
            "fallback: calls of the second model", "calls", [len(rig.double.calls("fallback", model="second"))]
        ),
        Figure.of("fallback: calls of the first, by the first ten jobs", "calls", each[:1]),
        Figure.of("fallback: calls of the first, by each later ten", "calls", each[1:]),
        Figure.of("fallback: length of a job", "s", [length_of(job) for job in ended]),
    ]


async def budget(rig: ModelRig) -> list[Figure]:
    """Fifty jobs on a monthly budget for some of them; then it is raised, and the dead ones are redriven."""
    rig.double.rule(ANSWER)
    before = await rig.read("/v1/budget")
    limit = _tokens(before["spent"]) + _tokens(before["held_back"]) + 100_000
    await rig.set_budget(limit)
    async with rig.looking("/v1/budget") as seen:
        jobs = await rig.submit_many("budget", 50)
        ended = await rig.all_over(jobs, seconds=120)
    over = [max(_tokens(month["spent"]) + _tokens(month["held_back"]) - limit, 0) for month in seen]
    dead = [job for job in ended if job["state"] == "dead"]
    reasons = [died_of(job, "budget_exceeded") for job in dead]
    await rig.set_budget(None)
    for job in dead:
        await rig.tell(f"/v1/dead-letters/{job['id']}/redrive", {"note": "raised"}, rig.admin)
    await asyncio.gather(*(rig.in_state(job["id"], "succeeded", seconds=120) for job in dead))
    again = [await rig.job(job["id"]) for job in dead]
    return [
        Figure.of("budget: jobs that it sufficed for", "jobs", [len(ended) - len(dead)]),
        Figure.of("budget: the others dead as budget_exceeded", "of 1", reasons),
        Figure.of("budget: overspent, spent and held back together", "tokens", over),
        Figure.of("budget: redriven jobs that succeeded", "of 1", _succeeded(again)),
        Figure.of("budget: calls of a job over both runs", "calls",
                  [len(rig.double.calls(job["text"])) for job in jobs]),
    ]  # fmt: skip


def _tells_its_wait(item: Job) -> bool:
    failure = item["failure"]
    return bool(item["next_attempt_at"] and failure and failure["category"] == "rate_limited")


def _taken(attempt: Job) -> float:
    begun, over = (datetime.fromisoformat(attempt[name]) for name in ("started_at", "finished_at"))
    return (over - begun).total_seconds()


def _succeeded(jobs: list[Job]) -> list[float]:
    return [float(job["state"] == "succeeded") for job in jobs]


def _densest(times: list[float]) -> int:
    return max(sum(start <= other < start + 0.1 for other in times) for start in times)


def _tokens(amount: Any) -> int:
    return int(amount["tokens"])


async def calls_at_once(rig: ModelRig) -> list[Figure]:
    """Sixty jobs, and nothing wrong but that only four calls may be in flight: how much of that is used."""
    rig.double.rule(Rule(Fault("slow", seconds=0.2), stage="answer"))
    jobs = await rig.submit_many("atonce", 60)
    ended = await rig.all_over(jobs, seconds=280)
    calls = rig.double.calls("atonce")
    begun, over = min(call.at for call in calls), max(call.over_at or 0 for call in calls)
    attempts = [await rig.attempts(job["id"]) for job in jobs]
    busy = sum(
        _taken(one) for found in attempts for one in found if one["outcome"] == "succeeded" and one["model"]
    )
    waits = [one["wait_seconds"] for found in attempts for one in found if one["category"] == "rate_limited"]
    held = [sum(one["category"] == "rate_limited" for one in found) for found in attempts]
    return [
        Figure.of("four calls at once: jobs that succeeded", "of 1", _succeeded(ended)),
        Figure.of("four calls at once: at most", "calls", [most_at_once(calls)]),
        Figure.of("four calls at once: share of the time they are in use", "of 1", [busy / 4 / (over - begun)]),
        Figure.of("four calls at once: attempts of a job held back", "attempts", held),
        Figure.of("four calls at once: wait of one that is held back", "s", waits),
        Figure.of("four calls at once: length of a call", "s", [(c.over_at or c.at) - c.at for c in calls]),
        Figure.of("four calls at once: length of a job", "s", [length_of(job) for job in ended]),
    ]
