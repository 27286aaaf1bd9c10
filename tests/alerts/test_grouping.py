"""Few deaths are told one by one, many are summed up."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from agentjobs.domain.alerts import (
    COLLECTED,
    SINGLES,
    AgePolicy,
    Alert,
    AlertKind,
    DeathRef,
    grouped,
    is_storm,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def deaths(count: int, reason: str = "unavailable", agent: str = "triage") -> list[DeathRef]:
    """So many deaths of one kind."""
    return [
        DeathRef(job_id=f"{agent}-{reason}-{number}", generation=1, agent=agent, reason=reason)
        for number in range(count)
    ]


def alert(**changes: object) -> Alert:
    """An alert about one death."""
    return Alert.model_validate(
        {
            "id": "alert_1",
            "tenant": "acme",
            "kind": AlertKind.JOB_DIED,
            "level": 0,
            "reason": "unavailable",
            "agent": "triage",
            "count": 1,
            "in_doubt_count": 0,
            "first_at": NOW,
            "last_at": NOW,
            "shown_ids": ("job-1",),
            "created_at": NOW,
            **changes,
        }
    )


@pytest.mark.parametrize("count", [1, SINGLES])
def test_few_deaths_are_told_one_by_one(count: int) -> None:
    groups = grouped(deaths(count))

    assert [(group.kind, len(group.deaths)) for group in groups] == [(AlertKind.JOB_DIED, 1)] * count


def test_many_deaths_are_one_alert_a_reason_and_agent_and_none_is_lost() -> None:
    all_of_them = deaths(40) + deaths(9, "timeout") + deaths(7, "timeout", "other") + deaths(1, "bug")

    groups = grouped(all_of_them)

    told = Counter({(group.reason, group.agent): len(group.deaths) for group in groups})
    assert told == {
        ("unavailable", "triage"): 40,
        ("timeout", "triage"): 9,
        ("timeout", "other"): 7,
        ("bug", "triage"): 1,
    }
    assert sorted(d.job_id for group in groups for d in group.deaths) == sorted(d.job_id for d in all_of_them)
    assert {group.kind for group in groups if len(group.deaths) == 1} == {AlertKind.JOB_DIED}


def test_a_window_is_a_storm_when_it_had_many_deaths() -> None:
    assert [is_storm(count) for count in (0, SINGLES, COLLECTED)] == [False, False, True]


def test_alerts_of_one_reason_agent_and_day_share_an_incident() -> None:
    first = alert().incident_key

    same = alert(id="alert_2", kind=AlertKind.JOBS_DIED, first_at=NOW + timedelta(hours=3)).incident_key
    others = {
        alert(reason="timeout").incident_key,
        alert(agent="other").incident_key,
        alert(tenant="beta").incident_key,
        alert(first_at=NOW + timedelta(days=1)).incident_key,
        alert(kind=AlertKind.ESCALATED, level=1).incident_key,
        alert(kind=AlertKind.ESCALATED, level=2).incident_key,
        alert(kind=AlertKind.DISCARDING).incident_key,
    }

    assert first == same
    assert len(others | {first}) == 8


def test_a_discard_is_announced_before_its_time_and_never_before_the_death() -> None:
    day = timedelta(days=1)

    usual = AgePolicy(escalate_after=(day / 6,), discard_after=30 * day, notice=3 * day)
    hasty = AgePolicy(discard_after=day, notice=3 * day)

    assert (usual.announce_after, usual.held_level) == (27 * day, 2)
    assert usual.ages == [day / 6, 27 * day, 30 * day]
    assert hasty.announce_after == timedelta(0)
    assert AgePolicy().ages == []
