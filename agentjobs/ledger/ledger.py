"""The ledger as one object: what a process opens at its start and closes at its end."""

from dataclasses import dataclass
from typing import Self

from agentjobs.ledger.admission import Admission
from agentjobs.ledger.alert_deliveries import AlertDeliveries
from agentjobs.ledger.alerts import Alerts
from agentjobs.ledger.approvals import Approvals
from agentjobs.ledger.audit import Audit
from agentjobs.ledger.budgets import Budgets
from agentjobs.ledger.comparing import Comparing
from agentjobs.ledger.database import Database, connect
from agentjobs.ledger.dead_letters import DeadLetters
from agentjobs.ledger.effects import Effects
from agentjobs.ledger.erasure import Erasures
from agentjobs.ledger.identity import Identity
from agentjobs.ledger.jobs import Jobs
from agentjobs.ledger.outbox import Outbox
from agentjobs.ledger.outcomes import Outcomes
from agentjobs.ledger.queues import Queues
from agentjobs.ledger.quotas import Quotas
from agentjobs.ledger.redrives import Redrives
from agentjobs.ledger.retention import Retention
from agentjobs.ledger.tickets import Tickets
from agentjobs.ledger.waits import Waits
from agentjobs.ledger.webhook_deliveries import WebhookDeliveries
from agentjobs.ledger.webhooks import Webhooks
from agentjobs.ledger.workers import Workers


@dataclass(frozen=True)
class Ledger:
    """All of the ledger over one pool."""

    database: Database
    jobs: Jobs
    effects: Effects
    outcomes: Outcomes
    outbox: Outbox
    dead_letters: DeadLetters
    identity: Identity
    tickets: Tickets
    workers: Workers
    budgets: Budgets
    admission: Admission
    waits: Waits
    comparing: Comparing
    alerts: Alerts
    alert_deliveries: AlertDeliveries
    redrives: Redrives
    audit: Audit
    webhooks: Webhooks
    webhook_deliveries: WebhookDeliveries
    retention: Retention
    erasures: Erasures
    quotas: Quotas
    queues: Queues
    approvals: Approvals

    @classmethod
    def over(cls, database: Database) -> Self:
        """The ledger over an open database."""
        return cls(
            database=database,
            jobs=Jobs(database),
            effects=Effects(database),
            outcomes=Outcomes(database),
            outbox=Outbox(database),
            dead_letters=DeadLetters(database),
            identity=Identity(database),
            tickets=Tickets(database),
            workers=Workers(database),
            budgets=Budgets(database),
            admission=Admission(database),
            waits=Waits(database),
            comparing=Comparing(database),
            alerts=Alerts(database),
            alert_deliveries=AlertDeliveries(database),
            redrives=Redrives(database),
            audit=Audit(database),
            webhooks=Webhooks(database),
            webhook_deliveries=WebhookDeliveries(database),
            retention=Retention(database),
            erasures=Erasures(database),
            quotas=Quotas(database),
            queues=Queues(database),
            approvals=Approvals(database),
        )

    @classmethod
    async def open(cls, dsn: str, *, size: int, application_name: str, lock_seconds: float = 0) -> Self:
        """Connect and return the ledger. Raises OSError or asyncpg.PostgresError."""
        return cls.over(
            await connect(dsn, size=size, application_name=application_name, lock_seconds=lock_seconds)
        )

    async def close(self) -> None:
        """Close the pool."""
        await self.database.close()
