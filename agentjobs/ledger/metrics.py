"""What stands in the ledger at this moment, counted over all tenants: for the metrics, which name nobody."""

from enum import StrEnum

from agentjobs.ledger.database import Database
from agentjobs.ledger.records import Record


class Subject(StrEnum):
    """What is counted."""

    JOBS = "jobs"
    """By state: the live ones and the dead."""

    WAITS = "waits"
    """Jobs that wait for their next attempt, by the category of the failure before."""

    OUTBOX = "outbox"
    """Rows that Temporal is not told of yet, by topic."""

    WEBHOOK_DELIVERIES = "webhook_deliveries"
    ALERT_DELIVERIES = "alert_deliveries"
    WORKERS = "workers"


class Standing(Record):
    """How many there are, and since how many seconds the oldest of them (None: none, or not measured)."""

    subject: Subject
    label: str
    count: int
    oldest_seconds: float | None


class Standings:
    """Reads only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def measure(self) -> list[Standing]:
        """One for each subject and label of which there are any."""
        rows = self._database.run.measure_standings(self._database.pool)
        return [Standing.model_validate(dict(row)) async for row in rows]
