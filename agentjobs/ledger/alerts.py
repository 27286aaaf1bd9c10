"""What is to be told about dead letters and calls that wait for a person, and by which ways.

One desk a tenant writes here.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from agentjobs.domain.alerts import SHOWN_IDS, SINGLES, Alert, DeathRef, Group
from agentjobs.ledger.database import Database
from agentjobs.ledger.records import Record

LOG_SINK: Final = "log"
"""The way that every alert goes, and the first."""

LETTERS_A_LOOK: Final = 1_000
"""How many letters one look takes on each question; the rest follows with the next one."""

LONGEST_PAUSE_SECONDS: Final = 3600.0
"""Between two looks at letters that are open: also what was not foreseen (a new policy) is met within this."""

OVERDUE_SECONDS: Final = 900.0
"""Longer than an attempt with its reports: a delivery that late has nobody who makes it."""

SHORTEST_PAUSE_SECONDS: Final = 60.0
"""Between two looks for deliveries that nobody makes."""

SILENT_SECONDS: Final = 2 * LONGEST_PAUSE_SECONDS
"""A desk with open letters that has not looked for this long is gone."""


_COLUMNS: Final = {"count": "letter_count", "first_at": "first_died_at", "last_at": "last_died_at"}
"""From before there were alerts about anything but deaths."""


class Left(Record):
    """An alert with the sinks that have not got it."""

    alert_id: str
    sinks: tuple[str, ...]


class Alerts:
    """Alerts of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(
        self, tenant: str, groups: Sequence[Group], *, level: int = 0, sinks: Sequence[str] = ()
    ) -> list[str]:
        """An alert for each group, about those of its deaths that were not told yet on this topic and level.

        Returns the ids. Each is due in the log, and at the sinks named. Recorded again it is no second alert.
        """
        async with self._database.transaction() as connection:
            await self._database.run.one_desk_at_a_time(connection, tenant=tenant)
            ids = [
                await self._database.run.record_alert(
                    connection,
                    tenant=tenant,
                    kind=group.kind.value,
                    topic=group.kind.topic,
                    level=level,
                    reason=group.reason,
                    agent=group.agent,
                    job_ids=[death.job_id for death in group.deaths],
                    generations=[death.generation for death in group.deaths],
                    shown=SHOWN_IDS,
                    sinks=[LOG_SINK, *sinks],
                )
                for group in groups
            ]
        return [alert_id for alert_id in ids if alert_id is not None]

    async def record_approvals(self, tenant: str, *, sinks: Sequence[str] = ()) -> list[str]:
        """Alerts about calls that wait for a person and of which nobody was told: each is told of once.

        Few one by one, many summed up by agent and tool. Returns the ids; each is due as those of `record` are.
        """
        async with self._database.transaction() as connection:
            await self._database.run.one_desk_at_a_time(connection, tenant=tenant)
            rows = self._database.run.record_approval_alerts(
                connection,
                tenant=tenant,
                singles=SINGLES,
                shown=SHOWN_IDS,
                limit=LETTERS_A_LOOK,
                sinks=[LOG_SINK, *sinks],
            )
            return [row["id"] async for row in rows]

    async def tell_of_approvals_again(self) -> int:
        """Queue a word to each desk that has told nobody of a request within a minute; to how many."""
        return int(await self._database.run.tell_of_approvals_again(self._database.pool))

    async def unlogged(self, tenant: str) -> list[Alert]:
        """Alerts that do not stand in the log yet, as far as is known."""
        rows = self._database.run.unlogged_alerts(self._database.pool, tenant=tenant)
        return [as_alert(dict(row)) async for row in rows]

    async def mark_logged(self, alert_ids: Sequence[str]) -> None:
        """They stand in the log; the deaths that they are about count as told (`alerted_at`)."""
        await self._database.run.mark_logged(self._database.pool, alert_ids=list(alert_ids))

    async def to_escalate(self, tenant: str, *, age: timedelta, level: int) -> list[DeathRef]:
        """Letters open for longer than this, of which nobody was reminded at this level or a higher one."""
        return await self._deaths(self._database.run.letters_to_escalate, tenant=tenant, age=age, level=level)

    async def to_announce(self, tenant: str, *, age: timedelta) -> list[DeathRef]:
        """Letters of this age that are to be discarded, which was not announced yet."""
        return await self._deaths(
            self._database.run.letters_of_retention,
            tenant=tenant,
            age=age,
            held=False,
            topic="discarding",
            level=0,
        )

    async def held_from_discard(self, tenant: str, *, age: timedelta, level: int) -> list[DeathRef]:
        """Letters of this age with an effect in doubt, of which nobody was reminded at this level."""
        return await self._deaths(
            self._database.run.letters_of_retention,
            tenant=tenant,
            age=age,
            held=True,
            topic="escalated",
            level=level,
        )

    async def to_discard(self, tenant: str, *, age: timedelta, notice: timedelta) -> list[str]:
        """Ids of letters older than `age`, announced at least `notice` ago, without an effect in doubt."""
        rows = self._database.run.letters_to_discard(
            self._database.pool, tenant=tenant, age=age, notice=notice, limit=LETTERS_A_LOOK
        )
        return [row["id"] async for row in rows]

    async def next_look_seconds(self, tenant: str, ages: Sequence[timedelta]) -> float | None:
        """Until a letter reaches the next of these ages, an hour at most; None: nothing is open or under way."""
        seconds: float | None = await self._database.run.next_look(
            self._database.pool,
            tenant=tenant,
            ages=list(ages),
            overdue=OVERDUE_SECONDS,
            shortest=SHORTEST_PAUSE_SECONDS,
            longest=LONGEST_PAUSE_SECONDS,
        )
        return seconds

    async def mark_looked(self, tenant: str) -> None:
        """The tenant's desk is there."""
        await self._database.run.desk_looked(self._database.pool, tenant=tenant)

    async def wake_desks(self, *, silent_seconds: float = SILENT_SECONDS) -> int:
        """Queue a word to each desk that has open letters and has not looked for so long; how many."""
        return int(await self._database.run.wake_desks(self._database.pool, silent_seconds=silent_seconds))

    async def left_to_deliver(
        self, tenant: str, alert_ids: Sequence[str] = (), *, overdue_seconds: float = OVERDUE_SECONDS
    ) -> list[Left]:
        """What of these alerts is to be delivered, and of others whose delivery is overdue; some at a time."""
        rows = self._database.run.deliveries_left(
            self._database.pool,
            tenant=tenant,
            alert_ids=list(alert_ids),
            overdue_seconds=overdue_seconds,
            limit=LETTERS_A_LOOK,
        )
        return [Left.model_validate(dict(row)) async for row in rows]

    async def _deaths(self, statement: Any, **values: Any) -> list[DeathRef]:
        rows = statement(self._database.pool, limit=LETTERS_A_LOOK, **values)
        return [DeathRef.model_validate(dict(row)) async for row in rows]


def as_alert(row: dict[str, Any]) -> Alert:
    """A row with an alert in it."""
    return Alert.model_validate({name: row[_COLUMNS.get(name, name)] for name in Alert.model_fields})
