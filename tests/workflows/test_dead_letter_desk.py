"""The desk on a real Temporal server: a storm is told in few words, a sink that is down holds up nobody."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.testing import WorkflowEnvironment

from activities.inputs import DeathNotice, DeskStart
from agentjobs.alerts.sink import NotTaken, Sink, Taken
from agentjobs.alerts.webhook import WebhookSink
from agentjobs.domain import keys
from agentjobs.domain.alerts import SINGLES, Alert, AlertKind
from agentjobs.domain.failures import Category, failure
from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.providers.models import Models
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.postgres import PostgresTracker
from agentjobs.webhooks.signing import Signer
from tests.alerts.receiver import SECRET, Received, Receiver, receiving
from tests.e2e.conftest import CHECKOUT
from tests.fakes import ScriptedProvider
from tests.servers import _development_server, time_skipping_server
from tests.world import NoFence, World, eventually
from worker import build_worker
from workflows.dead_letter_desk import DeadLetterDesk
from workflows.desk_delivery import ID_PREFIX


class ScriptedSink:
    """Takes every alert, or fails as it is told."""

    def __init__(self, name: str = "scripted", problem: Exception | None = None) -> None:
        self.name = name
        self.problem = problem
        self.told: list[Alert] = []

    async def deliver(self, alert: Alert) -> Taken:
        """Note it."""
        self.told.append(alert)
        if self.problem is not None:
            raise self.problem
        return Taken()


@asynccontextmanager
async def working(
    world: World, *sinks: Sink, relay: bool = True, tools: ToolRegistry | None = None, **settings: Any
) -> AsyncIterator[None]:
    """A worker with these sinks, and a relay, while the block runs."""
    worker = build_worker(
        world.client,
        world.ledger,
        world._settings().model_copy(update=settings),
        present=NoFence(),
        identity=world.tenant,
        models=Models(("scripted",), lambda _: ScriptedProvider()),
        agents=world.agents,
        tools=tools or built_in_tools(PostgresTracker(world.ledger.tickets)),
        sinks=sinks,
    )
    async with worker:
        relaying = asyncio.create_task(world.relay().run()) if relay else None
        try:
            yield
        finally:
            if relaying is not None:
                relaying.cancel()
                await asyncio.gather(relaying, return_exceptions=True)


async def die(world: World, reason: Category = Category.ACCESS_DENIED) -> str:
    """A job that is dead before it was started; its id."""
    job_id = await world.submit()
    await world.ledger.database.pool.execute(
        "DELETE FROM outbox WHERE topic = 'start_job' AND job_id = $1", job_id
    )
    await world.ledger.outcomes.bury(job_id, generation=0, failure=failure(reason, "no"), worker="w0")
    return job_id


async def rows(world: World, statement: str, *values: object) -> list[dict[str, Any]]:
    """Rows of a statement about the tenant ($1)."""
    found = await world.ledger.database.pool.fetch(statement, world.tenant, *values)
    return [dict(row) for row in found]


async def untold(world: World) -> int:
    """Letters of the tenant of which nobody was told."""
    (row,) = await rows(
        world, "SELECT count(*)::integer AS n FROM dead_letters WHERE tenant = $1 AND alerted_at IS NULL"
    )
    number: int = row["n"]
    return number


async def until_told(world: World, sink: ScriptedSink, count: int) -> None:
    """Until the sink got so many alerts."""

    async def look() -> bool:
        return len(sink.told) >= count

    await eventually(look, f"{count} alerts at {sink.name}", world.between)


async def until_delivered(world: World, sink: str) -> dict[str, Any]:
    """The delivery to this sink, once it is over."""

    async def look() -> dict[str, Any] | None:
        found = await rows(
            world,
            "SELECT alert_deliveries.* FROM alert_deliveries JOIN alerts ON alerts.id = alert_id "
            "WHERE tenant = $1 AND sink = $2 AND alert_deliveries.state <> 'waiting'",
            sink,
        )
        return found[0] if found else None

    return await eventually(look, f"a delivery to {sink}", world.between)


async def events_of(world: World) -> Counter[str]:
    """How many events of each type the desk's run has."""
    history = await world.client.get_workflow_handle(keys.desk_id(world.tenant)).fetch_history()
    return Counter(EventType.Name(event.event_type) for event in history.events)


def webhook(receiver: Receiver) -> WebhookSink:
    """A webhook to the receiver."""
    return WebhookSink(receiver.url, Signer(SecretStr(SECRET)))


async def test_a_death_reaches_the_webhook_signed_and_without_content(world: World) -> None:
    async with receiving() as receiver:
        sink = webhook(receiver)
        async with working(world, sink):
            job_id = await world.submit("My printer is on fire, s3cr3t", user="bob")  # may not create tickets
            await world.until_alerted(job_id)
            delivery = await until_delivered(world, sink.name)
        await sink.aclose()

    (request,) = receiver.received
    assert request.is_signed_with(SECRET)
    assert (request.document["type"], request.document["data"]["jobs"]) == ("job.died", [job_id])
    assert request.id == delivery["alert_id"]
    assert b"s3cr3t" not in request.body
    assert (delivery["state"], delivery["attempts"], delivery["last_status"]) == ("delivered", 1, 204)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("storm", [400, pytest.param(2000, marks=pytest.mark.chaos)])
async def test_a_storm_of_deaths_is_told_in_few_words_and_none_is_lost(world: World, storm: int) -> None:
    sink = ScriptedSink()
    at_once = asyncio.Semaphore(8)

    async def one(number: int) -> None:
        async with at_once:
            await die(world, Category.ACCESS_DENIED if number % 4 else Category.BUG)

    async with working(world, sink):
        alive = [await world.submit() for _ in range(5)]
        await asyncio.gather(*(one(number) for number in range(storm)))
        states = [(await world.until(job_id)).state for job_id in alive]

        async def all_told() -> bool:
            return await untold(world) == 0

        await eventually(all_told, "everybody to be told")
        told = await rows(world, "SELECT kind, reason, letter_count FROM alerts WHERE tenant = $1")
        await until_told(world, sink, len(told))
        signals = (await events_of(world))["EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED"]

    by_reason: Counter[str] = Counter()
    for alert in told:
        by_reason[alert["reason"]] += alert["letter_count"]
    assert by_reason == {"access_denied": storm * 3 // 4, "bug": storm // 4}
    assert await rows(world, "SELECT count(*)::integer AS n FROM alerts WHERE tenant <> $1") == [{"n": 0}]
    assert sum(alert.count for alert in sink.told) == storm
    assert len({alert.id for alert in sink.told}) == len(sink.told) == len(told)
    assert len(told) <= storm // 50
    assert signals <= storm // 10
    assert set(states) == {JobState.SUCCEEDED}


async def test_few_deaths_together_are_told_one_by_one(world: World) -> None:
    sink = ScriptedSink()
    dead = [await die(world) for _ in range(SINGLES)]

    async with working(world, sink):
        await until_told(world, sink, SINGLES)

    assert sorted(alert.shown_ids[0] for alert in sink.told) == sorted(dead)
    assert {alert.count for alert in sink.told} == {1}


async def test_a_sink_that_is_down_holds_up_no_sink_no_alert_and_no_job(world: World) -> None:
    down = ScriptedSink("down", NotTaken("no answer", asked_seconds=3600))
    up = ScriptedSink("up")

    async with working(world, down, up):
        first = await die(world)
        await until_told(world, up, 1)
        second, alive = await die(world), await world.submit()
        await until_told(world, up, 2)
        await world.until(alive, JobState.SUCCEEDED)
        await until_told(world, down, 2)

    assert [alert.shown_ids for alert in up.told] == [(first,), (second,)]
    assert await untold(world) == 0
    waiting = await rows(
        world,
        "SELECT alert_deliveries.state, next_attempt_at > now() + interval '50 minutes' AS later "
        "FROM alert_deliveries JOIN alerts ON alerts.id = alert_id WHERE tenant = $1 AND sink = 'down'",
    )
    assert waiting == [{"state": "waiting", "later": True}] * 2


async def test_a_call_that_begins_to_wait_for_a_person_reaches_a_sink_once_beside_deaths(
    world: World,
) -> None:
    sink = ScriptedSink()
    tools = built_in_tools(PostgresTracker(world.ledger.tickets), {"create_ticket": 600})

    async with working(world, sink, tools=tools):
        waiting, dead = await world.submit(), await die(world)
        await until_told(world, sink, 2)

    assert (await world.job(waiting)).state is JobState.WAITING_APPROVAL
    assert sorted((alert.kind, alert.shown_ids) for alert in sink.told) == [
        (AlertKind.APPROVAL_REQUESTED, (waiting,)),
        (AlertKind.JOB_DIED, (dead,)),
    ]


@pytest.mark.parametrize(
    "has_letters", [False, True], ids=["that sleeps for good", "that sleeps until a letter's age"]
)
async def test_a_desk_is_woken_by_each_call_that_begins_to_wait(world: World, *, has_letters: bool) -> None:
    sink = ScriptedSink()
    tools = built_in_tools(PostgresTracker(world.ledger.tickets), {"create_ticket": 600})
    dead = [await die(world)] if has_letters else []

    async with working(world, sink, tools=tools):
        await until_told(world, sink, len(dead))
        waiting = []
        for number in range(3):
            waiting.append(await world.submit())
            await until_told(world, sink, len(dead) + number + 1)

    told = [alert.shown_ids for alert in sink.told if alert.kind is AlertKind.APPROVAL_REQUESTED]
    assert told == [(job_id,) for job_id in waiting]


async def test_two_tenants_hear_of_their_own_deaths_only(world: World) -> None:
    other = await World.made(world.ledger, world.client)
    ours, theirs = ScriptedSink(), ScriptedSink()

    async with working(world, ours, relay=False), working(other, theirs, relay=False):
        for one in (world, other):
            for _ in range(SINGLES + 2):
                await die(one)
        # A relay each would serve both; so the desks are told by hand, each on its own queue.
        for one in (world, other):
            await tell_desk(one, [row["id"] for row in await rows(one, _LETTERS)])
        await until_told(world, ours, 1)
        await until_told(other, theirs, 1)

    assert [(alert.tenant, alert.count) for alert in ours.told] == [(world.tenant, SINGLES + 2)]
    assert [(alert.tenant, alert.count) for alert in theirs.told] == [(other.tenant, SINGLES + 2)]
    assert not set(ours.told[0].shown_ids) & set(theirs.told[0].shown_ids)


_LETTERS = "SELECT id FROM dead_letters WHERE tenant = $1"


async def tell_desk(world: World, job_ids: Sequence[str], *, one_by_one: bool = False) -> None:
    """Start the desk or signal it: as the relay does, or as that of the first release did."""
    notices = [
        DeathNotice(job_id=job_id, generation=1, agent="support-triage", reason="access_denied")
        for job_id in job_ids
    ]
    signals: list[tuple[str, Any]] = (
        [("job_died", notice) for notice in notices] if one_by_one else [("jobs_died", notices)]
    )
    for name, argument in signals:
        await world.client.start_workflow(
            DeadLetterDesk.run,
            DeskStart(tenant=world.tenant, in_batches=not one_by_one),
            id=keys.desk_id(world.tenant),
            task_queue=world.tenant,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal=name,
            start_signal_args=[argument],
        )


async def test_a_desk_of_the_first_release_tells_as_it_did_and_then_in_batches(world: World) -> None:
    sink = ScriptedSink()
    old = [await die(world) for _ in range(SINGLES + 2)]

    async with working(world, sink, relay=False):
        await tell_desk(world, old, one_by_one=True)
        await until_told(world, sink, len(old))
        new = [await die(world) for _ in range(SINGLES + 2)]
        await tell_desk(world, new)
        await until_told(world, sink, len(old) + 1)

    assert [alert.count for alert in sink.told] == [1] * len(old) + [len(new)]
    assert await untold(world) == 0


async def test_a_desk_that_was_terminated_comes_back_with_the_next_death(world: World) -> None:
    sink = ScriptedSink()
    desk = world.client.get_workflow_handle(keys.desk_id(world.tenant))

    async with working(world, sink):
        await die(world)
        await until_told(world, sink, 1)
        await desk.terminate("in a test")
        second = await die(world)
        await until_told(world, sink, 2)

    assert sink.told[1].shown_ids == (second,)
    assert (await desk.describe()).status is WorkflowExecutionStatus.RUNNING


async def test_a_delivery_under_way_outlives_its_desk(world: World) -> None:
    sink = ScriptedSink("down", NotTaken("no answer", asked_seconds=1))

    async with working(world, sink):
        await die(world)
        await until_told(world, sink, 1)
        await world.client.get_workflow_handle(keys.desk_id(world.tenant)).terminate("in a test")
        sink.problem = None
        delivery = await until_delivered(world, "down")
        await world.client.get_workflow_handle(ID_PREFIX + delivery["alert_id"]).result()

    assert (delivery["state"], delivery["attempts"]) == ("delivered", 2)


async def test_a_worker_that_is_killed_between_delivery_and_mark_delivers_twice_under_one_id(
    world: World, database_url: str
) -> None:
    async with receiving() as receiver:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("AGENTJOBS_")}
        environment |= {
            "AGENTJOBS_ENVIRONMENT": "test",
            "AGENTJOBS_DATABASE_URL": database_url,
            "AGENTJOBS_TASK_QUEUE": world.tenant,
            "AGENTJOBS_ALERT_WEBHOOK_URL": receiver.url,
            "AGENTJOBS_ALERT_WEBHOOK_SECRETS": SECRET,
            "TEMPORAL_ADDRESS": world.client.service_client.config.target_host,
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "worker.py", cwd=CHECKOUT, env=environment, stderr=asyncio.subprocess.DEVNULL
        )

        async def kill_before_the_answer(_: Received) -> None:
            if len(receiver.received) == 1:
                process.send_signal(signal.SIGKILL)
                await process.wait()

        receiver.before = kill_before_the_answer
        try:
            job_id = await die(world)
            relay = world.relay()
            assert await relay.desk_once() == 1
            await asyncio.wait_for(process.wait(), 60)
            sink = webhook(receiver)
            async with working(world, sink, relay=False):
                delivery = await until_delivered(world, sink.name)
            await sink.aclose()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    assert len(receiver.received) == 2
    assert {request.id for request in receiver.received} == {delivery["alert_id"]}
    assert all(request.is_signed_with(SECRET) for request in receiver.received)
    assert (delivery["state"], delivery["attempts"]) == ("delivered", 2)
    assert receiver.received[0].document["data"]["jobs"] == [job_id]


@pytest.fixture
async def ageing_world(ledger: Ledger) -> AsyncIterator[World]:
    """A world on a test server of its own: these tests move its clock by weeks, and the ledger's stays behind."""
    async with time_skipping_server() as environment:
        world = await World.made(ledger, environment.client)
        world.between = lambda: environment.sleep(timedelta(minutes=5))
        yield world


async def test_letters_that_grow_old_are_told_of_again_by_the_desks_own_timer(ageing_world: World) -> None:
    world, sink = ageing_world, ScriptedSink()

    async with working(world, sink, alert_escalate_after="4h,24h"):
        job_id = await die(world)
        await until_told(world, sink, 1)
        await world.ledger.database.pool.execute("UPDATE dead_letters SET died_at = died_at - interval '5 hours'")
        await until_told(world, sink, 2)
        await world.ledger.database.pool.execute("UPDATE dead_letters SET died_at = died_at - interval '1 day'")
        await until_told(world, sink, 3)

    told = [(alert.kind.value, alert.level, alert.shown_ids) for alert in sink.told]
    assert told == [
        ("job.died", 0, (job_id,)),
        ("dead_letters.escalated", 1, (job_id,)),
        ("dead_letters.escalated", 2, (job_id,)),
    ]


async def test_a_discard_by_policy_goes_the_way_of_a_reviewers(ageing_world: World) -> None:
    world, sink = ageing_world, ScriptedSink()

    async with working(world, sink, alert_escalate_after="", dead_retention_days=30):
        job_id = await world.submit(user="bob", deadline_seconds=30 * 86_400)
        await world.until_alerted(job_id)
        await world.ledger.database.pool.execute("UPDATE dead_letters SET died_at = died_at - interval '31 days'")
        await until_told(world, sink, 2)
        await world.ledger.database.pool.execute("UPDATE alerts SET created_at = created_at - interval '4 days'")
        job = await world.until(job_id, JobState.DISCARDED)

    letter = await world.ledger.dead_letters.read(world.tenant, job_id)
    assert letter is not None
    assert (job.state, letter.resolved_by, letter.note) == (
        JobState.DISCARDED,
        "retention",
        "open for more than 30 days",
    )
    assert [alert.kind.value for alert in sink.told] == ["job.died", "dead_letters.discarding"]


@pytest.fixture
async def impatient() -> AsyncIterator[Client]:
    """A server that suggests to continue as new after thirty events."""
    options = _development_server(
        "history.transferProcessorMaxPollRPS=1000", "limit.historyCount.suggestContinueAsNew=30"
    )
    async with await WorkflowEnvironment.start_local(**options) as environment:
        yield environment.client


async def test_a_desk_continues_as_new_and_forgets_nothing(ledger: Ledger, impatient: Client) -> None:
    world, sink = await World.made(ledger, impatient), ScriptedSink()
    desk = world.client.get_workflow_handle(keys.desk_id(world.tenant))

    async with working(world, sink):
        await die(world)
        await until_told(world, sink, 1)
        first_run = (await desk.describe()).run_id
        for number in range(2, 8):
            await die(world)
            await until_told(world, sink, number)

        async def another_run() -> bool:
            return (await desk.describe()).run_id != first_run

        await eventually(another_run, "the desk to continue as new")
        last = await die(world)
        await until_told(world, sink, 8)
        carried = (await desk.fetch_history()).events[0].workflow_execution_started_event_attributes

    (start,) = await impatient.data_converter.decode(carried.input.payloads, [DeskStart])
    assert sink.told[-1].shown_ids == (last,)
    assert await untold(world) == 0
    assert (start.tenant, start.in_batches) == (world.tenant, True)
    assert start.look_at is not None
