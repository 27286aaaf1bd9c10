"""The report equals an independent recount, to the unit, while jobs die."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.ledger.letter_report import Report
from tests.ledger.scene import Scene

REASONS = (Category.BUG, Category.ACCESS_DENIED, Category.NOT_FOUND)
WAITING = {"open", "redrive_requested", "discard_requested"}


async def test_it_is_right_at_every_moment_while_two_hundred_jobs_die(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("other")
    jobs = [(await scene.accept(agent=f"agent-{number % 3}")).id for number in range(200)]
    foreign = [(await scene.accept(tenant="other")).id for _ in range(20)]
    before = after = 0
    bounds: list[tuple[int, Report, int]] = []

    async def die(number: int, job_id: str) -> None:
        nonlocal before, after
        after += 1  # from now on it may be seen
        await scene.bury(job_id, reason=REASONS[number % 3])
        before += 1  # from now on it must be seen

    async def look() -> None:
        while before < len(jobs):
            surely = before
            report = await scene.ledger.dead_letters.report("acme")
            bounds.append((surely, report, after))

    async def lane(first: int) -> None:
        """Every sixth job, one after the other, so that connections are left to look with."""
        for number in range(first, len(jobs), 6):
            await die(number, jobs[number])

    await asyncio.gather(look(), *map(lane, range(6)), *(scene.bury(job_id) for job_id in foreign))

    assert len({report.open_count for _, report, _ in bounds}) > 9  # it was looked at while they died
    for surely, report, at_most in bounds:
        assert surely <= report.open_count <= at_most
        assert_agrees_with_itself(report)
    await assert_equals_recount(scene, "acme", 24)
    await assert_equals_recount(scene, "other", 24)


@pytest.mark.parametrize("window_hours", [1, 24, 72, 73, 24 * 30])
async def test_it_equals_a_recount_over_a_long_history(scene: Scene, window_hours: int) -> None:
    for number in range(40):
        job_id = (await scene.accept(agent=f"agent-{number % 2}")).id
        await scene.bury(job_id, reason=REASONS[number % 3])
        await _FATES[number % len(_FATES)](scene, job_id)
    await grow_old(scene)

    await assert_equals_recount(scene, "acme", window_hours)


async def test_a_second_death_is_a_second_generation_of_one_letter(scene: Scene) -> None:
    job_id = await scene.dead()
    await redriven(scene, job_id)
    await scene.bury(job_id, generation=1)

    report = await scene.ledger.dead_letters.report("acme")
    page = await scene.ledger.dead_letters.page("acme", closed=True)

    assert (report.open_count, report.by_state, report.open[0].count) == (1, {"open": 1}, 1)
    assert [(letter.id, letter.generation) for letter in page] == [(job_id, 2)]
    assert (sum(flow.died for flow in report.flow), report.outcomes.died_again) == (2, 1)


async def test_ages_are_told_in_bands(scene: Scene) -> None:
    for age in ("59 minutes", "61 minutes", "23 hours", "25 hours", "167 hours", "169 hours", "1 year"):
        job_id = await scene.dead()
        await scene.execute(
            "UPDATE dead_letters SET died_at = now() - $2::text::interval WHERE id = $1", job_id, age
        )

    report = await scene.ledger.dead_letters.report("acme")

    ages = report.ages
    assert (ages.under_1_hour, ages.under_1_day, ages.under_7_days, ages.older) == (1, 2, 2, 2)


async def test_of_nothing_it_says_so(scene: Scene) -> None:
    await scene.dead()

    report = await scene.ledger.dead_letters.report("other")

    assert (report.open, report.by_state, report.open_count, report.oldest_at) == ([], {}, 0, None)
    assert len(report.flow) == 25
    assert not any(flow.died or flow.redriven or flow.discarded for flow in report.flow)
    assert (report.recovery.median_seconds, report.recovery.p90_seconds) == (None, None)


async def redriven(scene: Scene, job_id: str) -> None:
    await scene.ledger.dead_letters.request("redrive", "acme", job_id, actor="rita", note="", payload={})
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")


async def recovered(scene: Scene, job_id: str) -> None:
    await redriven(scene, job_id)
    await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)


async def cancelled(scene: Scene, job_id: str) -> None:
    await redriven(scene, job_id)
    await scene.ledger.outcomes.finish(job_id, JobState.CANCELLED)


async def died_again(scene: Scene, job_id: str) -> None:
    await redriven(scene, job_id)
    await scene.bury(job_id, generation=1)


async def discarded(scene: Scene, job_id: str) -> None:
    await scene.ledger.outcomes.finish(job_id, JobState.DISCARDED)


async def asked(scene: Scene, job_id: str) -> None:
    await scene.ledger.dead_letters.request("discard", "acme", job_id, actor="rita", note="", payload={})


async def left(scene: Scene, job_id: str) -> None:
    """Nobody has looked at it yet."""


_FATES: tuple[Callable[[Scene, str], Any], ...] = (
    *(left, recovered, died_again, discarded, asked, cancelled),
    *(redriven, recovered),
)


async def grow_old(scene: Scene) -> None:
    """Spread what happened over the last weeks, each death's moments in their order."""
    await scene.execute("""
        UPDATE deaths SET died_at = moment,
                          resolved_at = CASE WHEN resolved_at IS NOT NULL THEN moment + pause END,
                          outcome_at = CASE WHEN outcome_at IS NOT NULL THEN moment + pause * 3 END
          FROM (SELECT id, of, now() - make_interval(mins => place * 131) AS moment,
                       make_interval(secs => place * 7) AS pause
                  FROM (SELECT job_id AS id, generation AS of,
                               (row_number() OVER (ORDER BY job_id, generation))::integer AS place
                          FROM deaths) AS placed) AS spread
         WHERE id = job_id AND of = generation""")
    await scene.execute("""
        UPDATE dead_letters SET died_at = deaths.died_at FROM deaths
         WHERE deaths.job_id = dead_letters.id AND deaths.generation = dead_letters.generation""")


def assert_agrees_with_itself(report: Report) -> None:
    """The parts are of one snapshot: here nothing was decided, and all died within the window."""
    died = sum(flow.died for flow in report.flow)
    ages = sum(report.ages.model_dump().values())
    counts = {
        report.open_count,
        died,
        ages,
        sum(line.count for line in report.open),
        report.by_state.get("open", 0),
    }
    assert len(counts) == 1, report


async def assert_equals_recount(scene: Scene, tenant: str, window_hours: int) -> None:
    report = await scene.ledger.dead_letters.report(tenant, window_hours=window_hours)
    letters = await scene.rows("SELECT * FROM dead_letters WHERE tenant = $1", tenant)
    deaths = await scene.rows("SELECT * FROM deaths WHERE tenant = $1", tenant)

    waiting = [letter for letter in letters if letter["state"] in WAITING]
    kinds = Counter((letter["reason"], letter["agent"], letter["policy_version"]) for letter in waiting)
    assert {(line.reason, line.agent, line.policy_version): line.count for line in report.open} == kinds
    assert report.by_state == Counter(letter["state"] for letter in letters)
    assert report.open_count == len(waiting)
    assert report.oldest_at == min((letter["died_at"] for letter in waiting), default=None)
    ages = Counter(band(report.as_of - letter["died_at"]) for letter in waiting)
    assert report.ages.model_dump() == {name: ages[name] for name in BANDS}
    begin = report.as_of - timedelta(hours=window_hours)
    hourly = window_hours <= 72
    since = slot(begin, hourly=hourly)
    assert (report.since, report.unit) == (since, "hour" if hourly else "day")
    assert [flow.model_dump() for flow in report.flow] == flows(deaths, since, report.as_of, hourly=hourly)
    decided = [death for death in deaths if death["resolved_at"] is not None and death["resolved_at"] >= since]
    assert report.outcomes.model_dump() == outcomes(decided)
    times = sorted(
        (d["outcome_at"] - d["died_at"]).total_seconds() for d in decided if d["outcome"] == "recovered"
    )
    assert report.recovery.median_seconds == pytest.approx(share(times, 0.5))
    assert report.recovery.p90_seconds == pytest.approx(share(times, 0.9))


BANDS = ("under_1_hour", "under_1_day", "under_7_days", "older")


def band(age: timedelta) -> str:
    limits = (timedelta(hours=1), timedelta(days=1), timedelta(days=7))
    return next((name for name, limit in zip(BANDS, limits, strict=False) if age < limit), "older")


def slot(moment: datetime, *, hourly: bool) -> datetime:
    hour = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return hour if hourly else hour.replace(hour=0)


def flows(deaths: list[dict[str, Any]], since: datetime, until: datetime, *, hourly: bool) -> list[dict[str, Any]]:
    died = Counter(slot(death["died_at"], hourly=hourly) for death in deaths)
    decided = Counter(
        (slot(death["resolved_at"], hourly=hourly), death["resolution"]) for death in deaths if death["resolution"]
    )
    length = timedelta(hours=1) if hourly else timedelta(days=1)
    slots = [since + length * number for number in range((until - since) // length + 1)]
    return [
        {
            "at": at,
            "died": died[at],
            "redriven": decided[at, "redriven"],
            "discarded": decided[at, "discarded"],
        }
        for at in slots
    ]


def outcomes(decided: list[dict[str, Any]]) -> dict[str, int]:
    became = Counter(death["outcome"] for death in decided if death["resolution"] == "redriven")
    return {
        "recovered": became["recovered"],
        "died_again": became["died_again"],
        "cancelled": became["cancelled"],
        "undecided": became[None],
        "discarded": sum(death["resolution"] == "discarded" for death in decided),
    }


def share(times: list[float], part: float) -> float | None:
    """The value below which this part lies, interpolated."""
    if not times:
        return None
    place = part * (len(times) - 1)
    low = times[int(place)]
    high = times[min(int(place) + 1, len(times) - 1)]
    return low + (high - low) * (place - int(place))
