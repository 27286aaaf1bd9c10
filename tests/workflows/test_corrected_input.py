"""A redrive with corrected input: what is done stays done, and the rest is made of the new words."""

from __future__ import annotations

from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.job import Budget, Job
from agentjobs.domain.states import JobState
from agentjobs.ledger.corrections import Correction
from agentjobs.ledger.database import Connection
from agentjobs.providers.model import Brief, Listener, StepReply, ToolCall
from agentjobs.tools.tickets import CreateTicket, SearchTickets
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.postgres import PostgresTracker
from agentjobs.trackers.tracker import NewTicket, TicketReceipt
from tests.fakes import ScriptedProvider, create_ticket
from tests.world import World

OLD, NEW = "My printer is on fire", "The printer in room 7 is on fire"
REFUSED = PermanentError(Category.CONTENT_REFUSED, "the model refused the request")


class Listening(ScriptedProvider):
    """Asks for a ticket whose subject is what the request says."""

    async def next_step(self, brief: Brief, listener: Listener | None = None) -> StepReply:
        """As scripted, with the request as the subject."""
        reply = await super().next_step(brief, listener)
        if not hasattr(reply.decision, "tool"):
            return reply
        return StepReply(decision=create_ticket(subject=brief.text), model=reply.model, usage=reply.usage)

    def heard(self) -> list[tuple[str, str]]:
        """Each call with the request that it was told."""
        return [(purpose, brief.text) for purpose, brief in zip(self.calls, self.briefs, strict=True)]


class BrokenTracker(PostgresTracker):
    """Refuses tickets, as long as it is broken."""

    broken = True

    async def create(
        self, ticket: NewTicket, *, key: str, job: Job, connection: Connection | None
    ) -> TicketReceipt:
        """Refuse, or create."""
        if self.broken:
            raise PermanentError(Category.INVALID_INPUT, "the tracker does not take it")
        return await super().create(ticket, key=key, job=job, connection=connection)


async def test_without_anything_done_all_is_asked_anew(world: World) -> None:
    provider = Listening()
    job_id = await world.submit(OLD, user="bob")  # bob has no grant

    async with world.running(provider):
        await world.until(job_id, JobState.DEAD)
        await world.grant("bob")
        await correct(world, job_id)
        job = await world.until(job_id, JobState.SUCCEEDED)

    anew = [("plan", NEW), ("step", NEW), ("step", NEW), ("answer", NEW)]
    assert provider.heard() == [("plan", OLD), ("step", OLD), *anew]
    assert await subjects(world) == [NEW]
    assert job.usage.tokens_in == 60  # replies to the old words were paid for


async def test_a_search_that_was_made_with_the_old_words_is_made_again(world: World) -> None:
    search = ToolCall(tool="search_tickets", arguments={"query": "printer"})
    job_id = await world.submit(OLD, user="bob")  # bob has no grant for the ticket that follows

    async with world.running(ScriptedProvider(steps=(search, create_ticket(subject=NEW)))):
        await world.until(job_id, JobState.DEAD)
        await world.grant("bob")
        await correct(world, job_id)
        await world.until(job_id, JobState.SUCCEEDED)

    assert await subjects(world) == [NEW]


async def test_a_call_that_failed_is_made_with_the_new_arguments(world: World) -> None:
    tracker = BrokenTracker(world.ledger.tickets)
    job_id = await world.submit(OLD)

    async with world.running(Listening(), ToolRegistry((SearchTickets(tracker), CreateTicket(tracker)))):
        await world.until(job_id, JobState.DEAD)
        tracker.broken = False
        await correct(world, job_id)
        await world.until(job_id, JobState.SUCCEEDED)

    assert await subjects(world) == [NEW]


async def test_what_is_done_stays_done_and_is_not_asked_again(world: World) -> None:
    provider = Listening()
    provider.fail_at("answer", REFUSED)
    job_id = await world.submit(OLD)

    async with world.running(provider):
        await world.until(job_id, JobState.DEAD)
        told = len(provider.calls)
        provider.fail_at("answer", None)
        await correct(world, job_id)
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert provider.heard()[told:] == [("plan", NEW), ("step", NEW), ("answer", NEW)]  # step 1 has its ticket
    assert await subjects(world) == [OLD]
    assert job.result is not None
    assert [effect["step"] for effect in job.result["effects"]] == ["step-1.create_ticket"]


async def test_it_is_the_same_when_the_workflow_is_gone(world: World) -> None:
    provider = Listening()
    provider.fail_at("answer", REFUSED)
    job_id = await world.submit(OLD)

    async with world.running(provider):
        await world.until(job_id, JobState.DEAD)
        await world.workflow(job_id).terminate()
        told = len(provider.calls)
        provider.fail_at("answer", None)
        await correct(world, job_id)
        await world.until(job_id, JobState.SUCCEEDED)

    assert provider.heard()[told:] == [("plan", NEW), ("step", NEW), ("answer", NEW)]
    assert await subjects(world) == [OLD]


async def test_a_later_redrive_keeps_the_new_words_and_their_replies(world: World) -> None:
    provider = Listening()
    provider.fail_at("answer", REFUSED)
    job_id = await world.submit(OLD)

    async with world.running(provider):
        await world.until(job_id, JobState.DEAD)
        await correct(world, job_id)
        await world.until_alerted(job_id, generation=2)
        told = len(provider.calls)
        provider.fail_at("answer", None)
        await world.order("redrive", job_id)
        await world.until(job_id, JobState.SUCCEEDED)

    assert provider.heard()[told:] == [("answer", NEW)]


async def test_a_cancel_before_the_receipts_are_met_again_undoes_them(world: World) -> None:
    assert await _cancelled_while_planning_again(world, terminated=False) == 0


async def test_a_cancel_after_the_workflow_was_gone_undoes_them_too(world: World) -> None:
    assert await _cancelled_while_planning_again(world, terminated=True) == 0


async def _cancelled_while_planning_again(world: World, *, terminated: bool) -> int:
    provider = Listening()
    provider.fail_at("answer", REFUSED)
    job_id = await world.submit(OLD)

    async with world.running(provider):
        await world.until(job_id, JobState.DEAD)
        if terminated:
            await world.workflow(job_id).terminate()
        provider.hold_at("plan")
        await correct(world, job_id)
        await world.until(job_id, JobState.RUNNING)
        await world.cancel(job_id)
        job = await world.until(job_id, JobState.CANCELLED)

    assert job.result is not None
    assert [effect["outcome"] for effect in job.result["effects"]] == ["undone"]
    return await world.open_ticket_count()


async def test_a_raised_budget_lets_the_job_go_on(world: World) -> None:
    job_id = await world.submit(budget=Budget(tokens=16_020))  # a call reserves 16,000 and costs 15

    async with world.running():
        await world.until(job_id, JobState.DEAD)
        await correct(world, job_id, Correction(budget=Budget(tokens=100_000)))
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert job.budget_tokens == 100_000
    assert await world.ticket_count() == 1


async def test_raised_steps_let_the_model_go_on(world: World) -> None:
    two = (create_ticket(), create_ticket(subject="Second"))
    job_id = await world.submit(budget=Budget(steps=1))

    async with world.running(ScriptedProvider(steps=two)):
        dead = await world.until(job_id, JobState.DEAD)
        await correct(world, job_id, Correction(budget=Budget(steps=3)))
        await world.until(job_id, JobState.SUCCEEDED)

    assert dead.failure is not None
    assert dead.failure.reason is Category.BUDGET_EXCEEDED
    assert await world.ticket_count() == 2


async def correct(world: World, job_id: str, correction: Correction | None = None) -> None:
    """A reviewer's redrive with a correction: of the input, unless told otherwise."""
    assert await world.ledger.dead_letters.request(
        "redrive",
        world.tenant,
        job_id,
        actor="rita",
        note="she meant room 7",
        payload={},
        correction=correction or Correction(text=NEW),
    )


async def subjects(world: World) -> list[str]:
    """Of the tenant's tickets, oldest first."""
    rows = await world.ledger.database.pool.fetch(
        "SELECT subject FROM tickets WHERE tenant = $1 ORDER BY id", world.tenant
    )
    return [row["subject"] for row in rows]
