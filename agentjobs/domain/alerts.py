"""What an alert says, of deaths or of calls that wait for a person, and how deaths are grouped into alerts.

Ids, codes and counts only: a letter's message may be made of somebody else's text, so it is linked to, not told.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from typing import Annotated, Final, assert_never

from pydantic import Field

from agentjobs.domain.job import Frozen

SINGLES: Final = 5
"""So many deaths of one collection are told one by one: somebody can still look at each."""

SHOWN_IDS: Final = 10
"""Letters that an alert names; the list of the API has all of them."""

WINDOW: Final = timedelta(seconds=2)
"""How long a first death waits for others: nobody reads an alert sooner."""

STORM_WINDOW: Final = timedelta(seconds=10)
"""In a storm an alert a group and 10 s is as much as anybody can follow."""

COLLECTED: Final = 100
"""So many deaths end a window before its time: something is badly wrong."""

STORM_COLLECTED: Final = 1_000

RECORDED_AT_ONCE: Final = 1_000
"""Deaths that one activity takes: 130 KB of input, and a transaction of tens of milliseconds."""

INCIDENT_PREFIX: Final = "dead-letter-desk-"


class AlertKind(StrEnum):
    """What an alert is about: the type of its webhook."""

    JOB_DIED = "job.died"
    JOBS_DIED = "jobs.died"
    ESCALATED = "dead_letters.escalated"
    DISCARDING = "dead_letters.discarding"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVALS_REQUESTED = "approvals.requested"

    @property
    def topic(self) -> str:
        """Of a death, or of a request for an approval, each topic is told once (once a level)."""
        match self:
            case AlertKind.JOB_DIED | AlertKind.JOBS_DIED:
                return "died"
            case AlertKind.ESCALATED:
                return "escalated"
            case AlertKind.DISCARDING:
                return "discarding"
            case AlertKind.APPROVAL_REQUESTED | AlertKind.APPROVALS_REQUESTED:
                return "approval"
            case _:
                assert_never(self)


class DeathRef(Frozen):
    """A death: which job's, the how manyth, by which agent, for which reason."""

    job_id: str
    generation: int
    agent: str
    reason: str


class Group(Frozen):
    """Deaths that are told together: of one reason and agent."""

    kind: AlertKind
    reason: str
    agent: str
    deaths: Annotated[tuple[DeathRef, ...], Field(min_length=1)]


class Alert(Frozen):
    """One alert, as every sink gets it."""

    id: str
    tenant: str
    kind: AlertKind
    level: int
    reason: str
    """Of the deaths. Where calls wait for an approval: the tool that they are of."""

    agent: str
    count: int
    in_doubt_count: int
    first_at: datetime
    last_at: datetime
    shown_ids: tuple[str, ...]
    created_at: datetime

    @property
    def incident_key(self) -> str:
        """The operation key of the incident: the alerts of one reason, agent and day share one."""
        group = f"{self.agent}.{self.reason}.{self.first_at:%Y-%m-%d}"
        of_kind = {
            "died": "",
            "escalated": f".level-{self.level}",
            "discarding": ".discarding",
            "approval": ".approval",
        }
        return f"{INCIDENT_PREFIX}{self.tenant}/incident.{group}{of_kind[self.kind.topic]}"


def is_storm(collected: int) -> bool:
    """Whether so many deaths in one window are a storm: the next window is wider."""
    return collected > COLLECTED // 4


def grouped(deaths: list[DeathRef], *, singles: int = SINGLES) -> list[Group]:
    """Few deaths one by one, more than `singles` of them summed up by reason and agent."""
    if len(deaths) <= singles:
        return [_group(AlertKind.JOB_DIED, [death]) for death in deaths]
    return by_reason(AlertKind.JOBS_DIED, deaths)


def by_reason(kind: AlertKind, deaths: list[DeathRef]) -> list[Group]:
    """One group for each reason and agent."""
    ordered = sorted(deaths, key=_reason_and_agent)
    return [_group(kind, list(together)) for _, together in groupby(ordered, key=_reason_and_agent)]


def _reason_and_agent(death: DeathRef) -> tuple[str, str]:
    return death.reason, death.agent


def _group(kind: AlertKind, deaths: list[DeathRef]) -> Group:
    if kind is AlertKind.JOBS_DIED and len(deaths) == 1:
        kind = AlertKind.JOB_DIED
    return Group(kind=kind, reason=deaths[0].reason, agent=deaths[0].agent, deaths=tuple(deaths))


class AgePolicy(Frozen):
    """What happens to letters that nobody decides on."""

    escalate_after: tuple[timedelta, ...] = ()
    """Ages in rising order: each is a level."""

    discard_after: timedelta | None = None
    """None: letters are kept."""

    notice: timedelta = timedelta(days=3)
    """How long before a discard it is announced."""

    @property
    def held_level(self) -> int:
        """The level of letters that retention may not touch, since an effect of theirs is in doubt."""
        return len(self.escalate_after) + 1

    @property
    def announce_after(self) -> timedelta | None:
        """The age at which a discard is announced."""
        return None if self.discard_after is None else max(self.discard_after - self.notice, timedelta(0))

    @property
    def ages(self) -> list[timedelta]:
        """Every age at which something is to be done."""
        of_retention = [self.announce_after, self.discard_after]
        return sorted([*self.escalate_after, *(age for age in of_retention if age is not None)])
