"""From the site to the evidence of one storm: the ledger, Temporal, and the logs of the judges."""

import asyncio
import re
from collections.abc import Iterator
from datetime import datetime
from random import Random

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from agentjobs.domain import keys
from agentjobs.temporal import DATA_CONVERTER, workflow_runner
from tests.chaos.collecting import Collector
from tests.chaos.evidence import Evidence, Job, Ticket, Workflow
from tests.chaos.storm.judge_log import read_log
from tests.chaos.storm.parts import RELAYS
from tests.chaos.storm.site import Site
from tests.chaos.storm.tenants import LIMITED, TENANTS, USER
from tests.chaos.storm.traffic import Traffic
from tests.chaos.witness_checks import job_of_key
from tests.chaos.witnesses import Death, ModelCall, QuotaSeen, QuotaTold, TicketWord, Witnesses
from workflows.agent_job import AgentJob
from workflows.bulk_redrive import BulkRedrive
from workflows.dead_letter_desk import DeadLetterDesk

AT_ONCE = 20
HISTORIES = 300
"""Of so many jobs, drawn by the seed, the whole history is read and replayed."""

_KEY = re.compile(r"Request (\S+) ")
_ENDED = re.compile(r'"job": "([^"]+)", "event": "leftover_workflow_ended"')
_DEATHS = """
SELECT deaths.job_id, deaths.generation,
       coalesce(array_agg(alert_id) FILTER (WHERE alert_id IS NOT NULL), '{}') AS ids
  FROM deaths JOIN jobs ON jobs.id = deaths.job_id LEFT JOIN alert_letters letters
    ON letters.job_id = deaths.job_id AND letters.generation = deaths.generation AND topic = 'died'
 WHERE jobs.created_at >= $1 GROUP BY 1, 2"""
IN_FLIGHT_NOW = """
SELECT tenant, "user", count(*) AS in_flight FROM jobs
 WHERE state IN ('pending', 'running', 'retry_wait', 'waiting_approval') GROUP BY 1, 2"""


class Gatherer(Collector):
    """Collects everything since it was made."""

    def __init__(self, site: Site, since: datetime, random: Random) -> None:
        super().__init__(site, since)
        self._site = site
        self._random = random
        self.quotas_seen: list[QuotaSeen] = []

    async def look_at_quotas(self, traffic: Traffic, redriven: int) -> None:
        """Note how many jobs are in flight at this moment. `redriven`: so often a job of LIMITED was."""
        for row in await self._site.ledger.database.pool.fetch(IN_FLIGHT_NOW):
            limit = traffic.keys.limit if row["tenant"] == LIMITED else None
            seen = QuotaSeen(row["tenant"], row["user"], row["in_flight"], limit, redriven)
            self.quotas_seen.append(seen)

    async def gathered(self, traffic: Traffic, *, frozen: bool) -> Evidence:
        """All of it."""
        evidence = await self.evidence(traffic)
        expected = dict(evidence.expected)
        for job in evidence.jobs:  # also those that nobody was told of
            expected.setdefault(job.id, traffic.ends.get(job.key or "", frozenset()))
        words = tuple(self._ticket_words())
        tickets = tuple(_tickets(words)) if self._site.parts.mix.tracker != "postgres" else evidence.tickets
        witnesses = Witnesses(
            model_calls=tuple(self._model_calls()),
            ticket_words=words,
            followed=tuple(traffic.followed),
            peeks=tuple(traffic.peeks),
            quotas_seen=tuple(self.quotas_seen),
            quotas_told=await self._quotas_told(traffic),
            deaths=await self._deaths(),
            alerts_taken=frozenset(line["id"] for line in read_log(self._site.parts.log_of("alerts"))),
            leftovers=self.leftovers(),
            unreplayable=await self._unreplayable(evidence.jobs),
        )
        return evidence.but(
            expected=expected,
            tickets=tickets,
            witnesses=witnesses,
            frozen=frozen,
            asks_approval=self._site.parts.mix.asks_approval,
        )

    def leftovers(self) -> frozenset[str]:
        """Jobs whose workflows the relay says that it has ended."""
        logged = (_ENDED.findall(self._site.logged(relay)) for relay in RELAYS)
        return frozenset(job_id for found in logged for job_id in found)

    async def _workflows(self, jobs: tuple[Job, ...]) -> tuple[dict[str, Workflow], dict[str, str]]:
        limit = asyncio.Semaphore(AT_ONCE)

        async def described(job: Job) -> Workflow | None:
            async with limit:
                return await self._describe(job.id)

        seen = await asyncio.gather(*(described(job) for job in jobs))
        found = {job.id: workflow for job, workflow in zip(jobs, seen, strict=True) if workflow is not None}
        drawn = [job.id for job in self._drawn(jobs) if job.id in found]
        histories = {f"history of {job_id}": await self._history(keys.workflow_id(job_id)) for job_id in drawn}
        return found, histories

    def _drawn(self, jobs: tuple[Job, ...]) -> list[Job]:
        return Random(f"{self._random}").sample(jobs, min(HISTORIES, len(jobs)))

    async def _unreplayable(self, jobs: tuple[Job, ...]) -> tuple[tuple[str, str], ...]:
        replayer = Replayer(
            workflows=[AgentJob, BulkRedrive, DeadLetterDesk],
            workflow_runner=workflow_runner(guarded=True),
            data_converter=DATA_CONVERTER,
        )
        wrong = []
        for job in self._drawn(jobs):
            if await self._describe(job.id) is None:
                continue
            handle = self._site.temporal.get_workflow_handle(keys.workflow_id(job.id))
            history: WorkflowHistory = await handle.fetch_history()
            result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
            if result.replay_failure is not None:
                wrong.append((job.id, repr(result.replay_failure)))
        return tuple(wrong)

    async def _deaths(self) -> tuple[Death, ...]:
        rows = await self._site.ledger.database.pool.fetch(_DEATHS, self._since)
        return tuple(Death(row["job_id"], row["generation"], tuple(row["ids"])) for row in rows)

    async def _quotas_told(self, traffic: Traffic) -> tuple[QuotaTold, ...]:
        rows = await self._site.ledger.database.pool.fetch(IN_FLIGHT_NOW)
        there = {(row["tenant"], row["user"]): row["in_flight"] for row in rows}
        return tuple(
            [
                QuotaTold(tenant, USER, await traffic.client(tenant).quota_in_use(), there.get((tenant, USER), 0))
                for tenant in TENANTS
            ]
        )

    def _model_calls(self) -> Iterator[ModelCall]:
        for line in read_log(self._site.parts.log_of("model")):
            if line["event"] == "asked" and line["at"] >= self._since.timestamp():
                found = _KEY.match(line["text"])
                yield ModelCall(found[1] if found else "?", line["stage"], line["at"])

    def _ticket_words(self) -> Iterator[TicketWord]:
        for line in read_log(self._site.parts.log_of("tickets")):
            if line["at"] >= self._since.timestamp():
                yield TicketWord(line["event"], line["key"], line["tenant"], line["title"], line["at"])


def _tickets(words: tuple[TicketWord, ...]) -> Iterator[Ticket]:
    """What the destination has, by its own log."""
    closed = {word.operation_key for word in words if word.did == "closed"}
    for number, word in enumerate((word for word in words if word.did == "created"), start=1):
        state = "closed" if word.operation_key in closed else "open"
        yield Ticket(
            id=number, job_id=job_of_key(word.operation_key), operation_key=word.operation_key, state=state
        )
