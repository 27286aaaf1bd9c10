"""A call that waits for a person: approved, rejected or cancelled at a random moment, by one person or by two."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from agentjobs.domain.approvals import Decision
from agentjobs.domain.states import FINAL, JobState
from tests.chaos.client import Refused
from tests.chaos.storm.tenants import ADMIN, SECOND
from tests.chaos.storm.traffic import Traffic

LONGEST_THOUGHT_SECONDS: Final = 5.0
WAITS_OR_IS_OVER: Final = frozenset({JobState.WAITING_APPROVAL, *FINAL})


@dataclass(frozen=True)
class Case:
    """One job whose call waits."""

    traffic: Traffic
    tenant: str
    key: str
    job_id: str

    def may_end(self, *states: JobState) -> None:
        """From now on."""
        self.traffic.ends[self.key] = self.traffic.expected[self.job_id] = frozenset(states)

    async def says(self, user: str, decision: Decision) -> bool:
        """This person's word on what is shown; whether it was taken."""
        client = self.traffic.client(self.tenant, user)
        for asked in await client.approvals(self.job_id):
            if asked["is_open"]:
                return await _done(client.decide(self.job_id, decision, asked))
        return False

    async def cancels(self) -> bool:
        """Whether it was taken."""
        return await _done(self.traffic.client(self.tenant).cancel(self.job_id))

    def person(self) -> str:
        """One of those who may decide."""
        return self.traffic.random.choice((ADMIN, SECOND))


Way: TypeAlias = Callable[[Case], Awaitable[bool]]
"""How a person, or two, see to it; returns whether a word was taken."""


async def until_decided(case: Case, way: Way) -> None:
    """A word on it whenever it waits, until one is taken: the job may die first, and is then asked for anew."""
    traffic = case.traffic
    while await traffic.until(case.tenant, case.job_id, WAITS_OR_IS_OVER) == JobState.WAITING_APPROVAL:
        await asyncio.sleep(traffic.random.uniform(0, LONGEST_THOUGHT_SECONDS))
        if await way(case):
            return


async def _approved(case: Case) -> bool:
    return await case.says(case.person(), Decision.APPROVE)


async def _approved_twice(case: Case) -> bool:
    person = case.person()
    return any(await asyncio.gather(*(case.says(person, Decision.APPROVE) for _ in range(2))))


async def _rejected(case: Case) -> bool:
    case.may_end(JobState.DEAD)  # before it is: or somebody redrives it at once
    is_taken = await case.says(case.person(), Decision.REJECT)
    if not is_taken:
        case.may_end(JobState.SUCCEEDED)
    return is_taken


async def _contested(case: Case) -> bool:
    case.may_end(JobState.DEAD, JobState.SUCCEEDED)
    yes, no = await asyncio.gather(
        case.says(ADMIN, Decision.APPROVE),
        case.says(SECOND, Decision.REJECT),
    )
    case.may_end(JobState.DEAD if no else JobState.SUCCEEDED)
    return yes or no


async def _cancelled(case: Case) -> bool:
    case.may_end(JobState.CANCELLED, JobState.SUCCEEDED)
    return await case.cancels()


async def _approved_and_cancelled(case: Case) -> bool:
    case.may_end(JobState.CANCELLED, JobState.SUCCEEDED)
    return any(await asyncio.gather(case.says(case.person(), Decision.APPROVE), case.cancels()))


WAYS: Final[Mapping[str, Way]] = {
    "approved": _approved,
    "approved twice": _approved_twice,
    "rejected": _rejected,
    "contested": _contested,
    "cancelled undecided": _cancelled,
    "approved and cancelled": _approved_and_cancelled,
}


async def _done(asked: Awaitable[None]) -> bool:
    """Not when it is decided, or over, or dead by then."""
    try:
        await asked
    except Refused as refused:
        if refused.status != 409:
            raise
        return False
    return True
