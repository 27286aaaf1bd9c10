"""The three destinations behind one face: a tracker, and a view of what is really there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol
from uuid import uuid4

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectClass, Resolution, resolve
from agentjobs.domain.job import Job, Principal
from agentjobs.ledger.ledger import Ledger
from agentjobs.trackers.github import GithubTracker
from agentjobs.trackers.postgres import PostgresTracker
from agentjobs.trackers.roundup import RoundupTracker
from agentjobs.trackers.tracker import NewTicket, TicketReceipt, Tracker
from tests.trackers.github_double import GithubDouble
from tests.trackers.roundup_server import RoundupServer

TENANTS = ("acme", "globex")
_numbers = count(1)


def a_job(tenant: str = "acme") -> Job:
    """A job of the tenant."""
    return Job(
        id=str(uuid4()),
        principal=Principal(tenant=tenant, user="ann"),
        agent="support-triage",
        policy_version="1",
        text="My printer is on fire",
        deadline_at=datetime.now(UTC) + timedelta(hours=1),
    )


def key_of(job: Job) -> str:
    """The step key of its ticket."""
    return keys.step_key(job.id, keys.tool_step(1, "create_ticket"))


def a_ticket(subject: str = "Printer on fire", body: str = "It burns.") -> NewTicket:
    """A ticket with this text."""
    return NewTicket(subject=subject, body=body, category="incident", urgency="high", language="en")


def a_word() -> str:
    """A word that no other test uses."""
    return f"zebra{next(_numbers)}quagga"


@dataclass(frozen=True)
class Stored:
    """A ticket as the destination has it."""

    subject: str
    body: str
    closed: bool


class Place(Protocol):
    """A destination."""

    @property
    def tracker(self) -> Tracker:
        """What is tested."""

    async def create(self, ticket: NewTicket, job: Job) -> TicketReceipt:
        """One call of `create`, as the executor makes it."""

    async def close(self, receipt: TicketReceipt, job: Job) -> None:
        """One call of `close`, as the executor makes it."""

    async def stored(self, job: Job) -> list[Stored]:
        """The job's tickets, seen past the tracker."""


async def resent(place: Place, ticket: NewTicket, job: Job) -> TicketReceipt:
    """What the executor does for an attempt that finds an earlier one in doubt."""
    if resolve(place.tracker.effect_class, in_doubt=True) is Resolution.LOOK_UP_FIRST:
        found = await place.tracker.find(key_of(job), job=job)
        if found is not None:
            return found
    return await place.create(ticket, job)


@dataclass(frozen=True)
class PostgresPlace:
    """Our own database."""

    ledger: Ledger
    tracker: PostgresTracker

    async def create(self, ticket: NewTicket, job: Job) -> TicketReceipt:
        """In a transaction, with the lock of the effect that the executor takes before."""
        async with self.ledger.database.transaction() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", key_of(job))
            return await self.tracker.create(ticket, key=key_of(job), job=job, connection=connection)

    async def close(self, receipt: TicketReceipt, job: Job) -> None:
        """In a transaction."""
        async with self.ledger.database.transaction() as connection:
            await self.tracker.close(receipt, job=job, connection=connection)

    async def stored(self, job: Job) -> list[Stored]:
        """From the table."""
        rows = await self.ledger.database.pool.fetch(
            "SELECT subject, body, state FROM tickets WHERE operation_key = $1", key_of(job)
        )
        return [Stored(row["subject"], row["body"], row["state"] == "closed") for row in rows]


@dataclass(frozen=True)
class RoundupPlace:
    """A real Roundup server."""

    server: RoundupServer
    tracker: RoundupTracker

    async def create(self, ticket: NewTicket, job: Job) -> TicketReceipt:
        """Over HTTP."""
        return await self.tracker.create(ticket, key=key_of(job), job=job, connection=None)

    async def close(self, receipt: TicketReceipt, job: Job) -> None:
        """Over HTTP."""
        await self.tracker.close(receipt, job=job, connection=None)

    async def stored(self, job: Job) -> list[Stored]:
        """From its database."""
        issues = self.server.issues(key_of(job))
        return [Stored(issue["title"], issue["body"], issue["status"] == "resolved") for issue in issues]


@dataclass(frozen=True)
class GithubPlace:
    """The double of GitHub."""

    double: GithubDouble
    tracker: GithubTracker

    async def create(self, ticket: NewTicket, job: Job) -> TicketReceipt:
        """Over HTTP."""
        return await self.tracker.create(ticket, key=key_of(job), job=job, connection=None)

    async def close(self, receipt: TicketReceipt, job: Job) -> None:
        """Over HTTP."""
        await self.tracker.close(receipt, job=job, connection=None)

    async def stored(self, job: Job) -> list[Stored]:
        """From its memory; of the body, what stands between our head and our foot."""
        return [
            Stored(
                issue["title"],
                issue["body"].split(" -->\n", 2)[2].removeprefix("\n").rpartition("\n\n---\n")[0],
                issue["state"] == "closed",
            )
            for issue in self.double.having(key_of(job))
        ]


NEEDS_THE_LEDGER = (EffectClass.RECONCILABLE,)
"""Classes whose destination does not keep two attempts at once apart."""
