"""The executor lets a call through that a person approved, and no other, whatever the workflow believes."""

from agentjobs.domain.approvals import Decision
from agentjobs.domain.decisions import WantedTool
from agentjobs.domain.failures import Category
from agentjobs.domain.keys import fingerprint_of_call, step_key
from agentjobs.ledger.approvals import WantedCall, Word
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.postgres import PostgresTracker
from tests.activities.stage import SECOND, Stage, failed, failing_at, told
from tests.fakes import TICKET
from tests.ledger.scene import CREATE_TICKET

OTHER = {**TICKET, "subject": "Another matter altogether"}


def tools(stage: Stage) -> ToolRegistry:
    """Tickets need an approval."""
    return built_in_tools(PostgresTracker(stage.scene.ledger.tickets), {"create_ticket": 600})


async def approved(stage: Stage, job_id: str, wanted: WantedTool, seconds: float = 600) -> None:
    """Asked for, and approved by a reviewer."""
    key = step_key(job_id, CREATE_TICKET)
    call = WantedCall(
        job_id=job_id,
        key=key,
        step=CREATE_TICKET,
        tool=wanted.tool,
        fingerprint=wanted.fingerprint,
        seconds=seconds,
    )
    await stage.scene.ledger.approvals.ask(call)
    word = Word(decision=Decision.APPROVE, actor="rita", note="seen")
    assert await stage.scene.ledger.approvals.decide("acme", job_id, CREATE_TICKET, word)


async def test_without_an_approval_the_call_is_refused_for_good(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)

    error = await failed(stage.run_tool(job.id, wanted, tools=tools(stage)))

    assert (error.type, error.non_retryable) == (Category.ACCESS_DENIED, True)
    assert await stage.scene.count("tickets") == 0


async def test_with_one_it_is_made_once_however_often_it_is_delivered(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await approved(stage, job.id, wanted)

    await stage.run_tool(job.id, wanted, tools=tools(stage))
    await stage.run_tool(job.id, wanted, SECOND, tools=tools(stage))

    assert await stage.scene.count("tickets") == 1


async def test_arguments_that_changed_after_the_approval_are_refused(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await approved(stage, job.id, wanted)
    changed = wanted.model_copy(update={"fingerprint": fingerprint_of_call("create_ticket", {**OTHER})})

    error = await failed(stage.run_tool(job.id, changed, tools=tools(stage)))

    assert error.type == Category.ACCESS_DENIED
    assert await stage.scene.count("tickets") == 0


async def test_an_approval_of_one_step_lets_no_other_step_through(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await approved(stage, job.id, wanted)
    await stage.run_tool(job.id, wanted, tools=tools(stage))
    again = await stage.ask(job.id, "create_ticket", TICKET, step=2)

    error = await failed(stage.run_tool(job.id, again, step=2, tools=tools(stage)))

    assert error.type == Category.ACCESS_DENIED
    assert await stage.scene.count("tickets") == 1


async def test_an_approval_that_is_too_old_when_the_call_begins_is_none(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await approved(stage, job.id, wanted)
    await stage.scene.execute("UPDATE approvals SET expires_at = now() - interval '1 second'")

    error = await failed(stage.run_tool(job.id, wanted, tools=tools(stage)))

    assert error.type == Category.ACCESS_DENIED


async def test_a_call_that_was_begun_in_time_may_be_tried_again_later(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await approved(stage, job.id, wanted)
    await told(stage.run_tool(job.id, wanted, failing_at("effect.after_begin"), tools=tools(stage)))
    await stage.scene.execute("UPDATE approvals SET expires_at = now() - interval '1 second'")

    await stage.run_tool(job.id, wanted, SECOND, tools=tools(stage))

    assert await stage.scene.count("tickets") == 1


async def test_a_call_that_was_refused_for_want_of_the_grant_uses_no_approval_up(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await approved(stage, job.id, wanted)
    await stage.scene.execute("DELETE FROM grants")

    error = await failed(stage.run_tool(job.id, wanted, tools=tools(stage)))

    kept = await stage.scene.rows("SELECT state FROM approvals")
    assert error.type == Category.ACCESS_DENIED
    assert (kept, await stage.scene.count("tickets")) == ([{"state": "approved"}], 0)


async def test_a_refused_call_is_an_attempt_on_record(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)

    await failed(stage.run_tool(job.id, wanted, tools=tools(stage)))

    messages = await stage.scene.rows("SELECT message FROM attempts WHERE outcome = 'failed'")
    assert messages == [{"message": "refused before it began: no approval of this call"}]
