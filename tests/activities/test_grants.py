"""A user's grants are looked at in the executor, at each effect: what a plan was made with counts for nothing."""

from agentjobs.domain.failures import Category
from tests.activities.stage import SECOND, Stage, failed, failing_at, told
from tests.fakes import TICKET


async def take_back(stage: Stage) -> None:
    assert await stage.scene.ledger.identity.revoke_grant("acme", "ann", "tickets:create")


async def test_a_grant_that_is_taken_back_after_the_plan_is_gone_for_the_effect(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await take_back(stage)

    error = await failed(stage.run_tool(job.id, wanted))

    assert (error.type, error.non_retryable) == (Category.ACCESS_DENIED, True)
    assert await stage.scene.count("tickets") == 0


async def test_a_grant_that_is_taken_back_between_two_attempts_is_gone_for_the_second(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await told(stage.run_tool(job.id, wanted, failing_at("effect.after_begin")))
    await take_back(stage)

    error = await failed(stage.run_tool(job.id, wanted, SECOND))

    assert error.type == Category.ACCESS_DENIED
    assert await stage.scene.count("tickets") == 0


async def test_an_effect_that_is_done_is_only_told_of_again(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await stage.run_tool(job.id, wanted)
    await take_back(stage)

    await stage.run_tool(job.id, wanted, SECOND)

    assert await stage.scene.count("tickets") == 1
