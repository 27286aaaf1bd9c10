"""Compensation: what was done is undone once; what was not done is made sure never to be."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectClass, EffectState
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.tools.tool import ReconcilableTool, ToolContext, ToolRegistry, UndoableTool
from agentjobs.trackers.tracker import TicketReceipt
from tests.activities.stage import SECOND, Stage, failed, failing_at, told
from tests.fakes import TICKET, NoArguments
from tests.ledger.scene import CREATE_TICKET

UNDO = keys.undo_step(CREATE_TICKET)


class RemoteTickets(UndoableTool[NoArguments]):
    """A ticket tool at another system, whose undo can be made to fail."""

    name = "create_ticket"
    description = "Elsewhere."
    arguments = NoArguments
    effect_class = EffectClass.IDEMPOTENT

    def __init__(self, *problems: Exception) -> None:
        self._problems = list(problems)
        self.undone: list[dict[str, Any]] = []

    async def call(self, arguments: NoArguments, context: ToolContext) -> BaseModel:
        """Not called in these tests."""
        return NoArguments()

    async def undo(self, receipt: dict[str, Any], context: ToolContext) -> None:
        """Note it, or fail."""
        if self._problems:
            raise self._problems.pop(0)
        self.undone.append(receipt)


class AskableTickets(RemoteTickets, ReconcilableTool[NoArguments]):
    """The same at a system that can be asked for a key."""

    effect_class = EffectClass.RECONCILABLE
    landing_horizon_seconds = 20.0

    def __init__(self, found: TicketReceipt | None) -> None:
        super().__init__()
        self._found = found

    async def look_up(self, context: ToolContext) -> TicketReceipt | None:
        """What it knows."""
        return self._found


@pytest.fixture
async def job_id(stage: Stage) -> str:
    """A job whose ticket is created."""
    job = await stage.scene.accept()
    await stage.run_tool(job.id, await stage.ask(job.id, "create_ticket", TICKET))
    return job.id


async def test_an_undo_closes_the_ticket_and_says_so_of_the_effect(stage: Stage, job_id: str) -> None:
    outcome = await stage.undo(job_id)

    assert outcome == "undone"
    assert await _ticket_states(stage) == ["closed"]
    assert (await stage.scene.effect(job_id)).state is EffectState.UNDONE


async def test_an_undo_that_is_delivered_twice_is_one(stage: Stage, job_id: str) -> None:
    outcomes = [await stage.undo(job_id), await stage.undo(job_id, attempt=SECOND)]

    assert outcomes == ["undone", "undone"]
    assert (await stage.scene.events(job_id)).count("step_completed") == 3  # model, ticket, undo


async def test_undos_at_the_same_moment_are_one(stage: Stage, job_id: str) -> None:
    await asyncio.gather(*(stage.undo(job_id) for _ in range(5)))

    assert await _ticket_states(stage) == ["closed"]
    assert (await stage.scene.events(job_id)).count("step_completed") == 3


async def test_an_undo_that_fails_in_its_transaction_leaves_the_ticket_open_until_the_next(
    stage: Stage, job_id: str
) -> None:
    answer = await told(stage.undo(job_id, attempt=failing_at("tool.in_transaction")))
    between = await _ticket_states(stage)

    await stage.undo(job_id, attempt=SECOND)

    assert (answer, between) == (("unavailable", True), ["open"])
    assert await _ticket_states(stage) == ["closed"]


async def test_what_was_never_begun_need_not_be_undone(stage: Stage) -> None:
    job = await stage.scene.accept()

    assert await stage.undo(job.id) == "nothing_to_undo"
    assert await stage.scene.count("effects") == 0


async def test_what_was_begun_and_rolled_back_is_made_sure_never_to_happen(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await failed(stage.run_tool(job.id, wanted, failing_at("tool.in_transaction")))

    outcome = await stage.undo(job.id)

    assert outcome == "nothing_to_undo"
    assert await told(stage.run_tool(job.id, wanted, SECOND)) == ("cancel_requested", False)
    assert await stage.scene.count("tickets") == 0


async def test_a_doubt_at_another_system_goes_to_a_person(stage: Stage) -> None:
    job = await stage.scene.accept()
    await stage.scene.begin(job.id, effect_class=EffectClass.IDEMPOTENT)
    tools = ToolRegistry((RemoteTickets(),))

    assert await told(stage.undo(job.id, tools=tools)) == ("outcome_unknown", False)
    assert (await stage.scene.effect(job.id)).state is EffectState.BEGUN


async def test_a_doubt_that_the_destination_can_resolve_is_undone_there(stage: Stage) -> None:
    job = await stage.scene.accept()
    await stage.scene.begin(job.id, effect_class=EffectClass.RECONCILABLE)
    tool = AskableTickets(found=TicketReceipt(id="T-7"))

    outcome = await stage.undo(job.id, tools=ToolRegistry((tool,)))

    assert (outcome, tool.undone) == ("undone", [{"id": "T-7", "url": None}])
    assert (await stage.scene.effect(job.id)).state is EffectState.UNDONE


async def test_a_doubt_that_is_not_settled_yet_is_asked_about_again_later(stage: Stage) -> None:
    job = await stage.scene.accept()
    await stage.scene.begin(job.id, effect_class=EffectClass.RECONCILABLE)
    tool = AskableTickets(found=None)

    answer = await told(stage.undo(job.id, tools=ToolRegistry((tool,))))

    assert (answer, tool.undone) == (("unavailable", True), [])
    assert (await stage.scene.effect(job.id)).state is EffectState.BEGUN


async def test_what_the_destination_never_got_and_never_will_need_not_be_undone(stage: Stage) -> None:
    job = await stage.scene.accept()
    await stage.scene.begin(job.id, effect_class=EffectClass.RECONCILABLE)
    await stage.scene.execute("UPDATE effects SET sent_at = now() - interval '10 minutes'")
    tool = AskableTickets(found=None)

    outcome = await stage.undo(job.id, tools=ToolRegistry((tool,)))

    assert (outcome, tool.undone) == ("nothing_to_undo", [])
    assert (await stage.scene.effect(job.id)).state is EffectState.ABANDONED


async def test_a_compensation_is_not_given_up_because_the_jobs_time_is_over(stage: Stage, job_id: str) -> None:
    await stage.scene.execute("UPDATE jobs SET deadline_at = now() - interval '1 hour'")
    away = RetryableError(Category.UNAVAILABLE, "away")
    tool = RemoteTickets(away)
    tools = ToolRegistry((tool,))

    first = await told(stage.undo(job_id, tools=tools))
    outcome = await stage.undo(job_id, attempt=SECOND, tools=tools)

    assert (first, outcome, len(tool.undone)) == (("unavailable", True), "undone", 1)
    assert (await stage.scene.effect(job_id)).state is EffectState.UNDONE


async def test_an_undo_gets_the_receipt_of_what_it_undoes(stage: Stage, job_id: str) -> None:
    receipt = (await stage.scene.effect(job_id)).result
    tool = RemoteTickets()

    await stage.undo(job_id, tools=ToolRegistry((tool,)))

    assert tool.undone == [receipt]


async def test_a_dead_jobs_effects_can_be_undone(stage: Stage, job_id: str) -> None:
    await stage.scene.bury(job_id)

    assert await stage.undo(job_id) == "undone"
    assert (await stage.scene.job(job_id)).state == "dead"


async def test_a_worker_that_knows_no_undo_says_so(stage: Stage, job_id: str) -> None:
    assert await told(stage.undo(job_id, tools=ToolRegistry(()))) == ("unknown_tool", False)
    assert (await stage.scene.effect(job_id)).state is EffectState.COMPLETED


async def _ticket_states(stage: Stage) -> list[str]:
    return [row["state"] for row in await stage.scene.rows("SELECT state FROM tickets ORDER BY id")]
