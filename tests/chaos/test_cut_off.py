"""A worker that is cut off from one side only: from Temporal and not from the ledger, and the reverse.

These wait for real heartbeat and statement timeouts, so they are no part of the short form.
"""

import asyncio
from urllib.parse import urlsplit

import pytest
from temporalio.client import Client

from agentjobs.domain.effects import EffectClass
from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.providers.model import ToolCall
from agentjobs.temporal import DATA_CONVERTER
from agentjobs.tools.tickets import CreateTicket
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.postgres import PostgresTracker
from tests.chaos.gate import Gate
from tests.fakes import CountingTool, ScriptedProvider
from tests.world import World, eventually

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]

SEARCH = ToolCall(tool="search_tickets", arguments={})


class HeldTool(CountingTool):
    """Its first call waits until it is released; later ones do not."""

    def __init__(self) -> None:
        super().__init__(EffectClass.TRANSACTIONAL, self._first_waits)
        self.reached = asyncio.Event()
        self.released = asyncio.Event()

    async def _first_waits(self, call: int) -> None:
        if call == 1:
            self.reached.set()
            await self.released.wait()


async def _waits_for_a_lock(world: World) -> bool:
    """The other worker's attempt waits for the first one's transaction."""
    waiting: int = await world.ledger.database.pool.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return waiting > 0


async def test_a_worker_that_is_cut_off_from_temporal_has_no_second_effect(world: World) -> None:
    host, port = world.client.service_client.config.target_host.rsplit(":", 1)
    tool = HeldTool()
    tools = ToolRegistry((tool, CreateTicket(PostgresTracker(world.ledger.tickets))))
    async with Gate.before(int(port)) as gate:
        away = await Client.connect(f"{host}:{gate.port}", data_converter=DATA_CONVERTER)
        cut_off = World(world.ledger, away, world.tenant)
        job_id = await world.submit()
        async with cut_off.running(ScriptedProvider(steps=(SEARCH,)), tools):
            await asyncio.wait_for(tool.reached.wait(), 30)
            gate.shut()
            async with world.running(ScriptedProvider(steps=(SEARCH,)), tools):
                await eventually(lambda: _waits_for_a_lock(world), "the other worker's attempt")
                tool.released.set()
                job = await world.until(job_id, JobState.SUCCEEDED)
            gate.reopen()

    effects = {effect.step: effect for effect in await world.ledger.jobs.effects(job_id)}
    assert job.state is JobState.SUCCEEDED
    assert effects["step-1.search_tickets"].result == {"calls": 1}
    assert tool.calls == 1


async def test_a_worker_that_is_cut_off_from_the_ledger_hands_its_work_on(world: World, database_url: str) -> None:
    parts = urlsplit(database_url)
    assert parts.port is not None
    async with Gate.before(parts.port) as gate:
        through_gate = database_url.replace(f":{parts.port}/", f":{gate.port}/")
        ledger = await Ledger.open(through_gate, size=4, application_name="cut-off")
        target = world.client.service_client.config.target_host
        another = await Client.connect(target, data_converter=DATA_CONVERTER)  # one worker a client and queue
        cut_off = World(ledger, another, world.tenant)
        provider = ScriptedProvider()
        provider.hold_at("answer")
        job_id = await world.submit()
        async with cut_off.running(provider):
            await provider.reached("answer")
            gate.shut()
            provider.release()  # the reply is there, and cannot be stored from here
            async with world.running():
                job = await world.until(job_id, JobState.SUCCEEDED)
            gate.reopen()
        await ledger.close()

    assert job.state is JobState.SUCCEEDED
    assert await world.ticket_count() == 1
