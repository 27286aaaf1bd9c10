"""Whatever is written about one job at the same moment waits for its turn, and nothing is aborted for it."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import permutations

import pytest

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectState
from agentjobs.domain.states import JobState
from tests.ledger.scene import CREATE_TICKET, Scene

RECEIPT = {"id": "T-1"}
Write = Callable[[Scene, str, int], Awaitable[object]]

# All that may be written while an attempt of a step is under way.
WRITES: dict[str, Write] = {
    "begin": lambda scene, job_id, _: scene.begin(job_id, attempt=2),
    "complete": lambda scene, job_id, attempt: scene.ledger.effects.complete(
        scene.intent(job_id), attempt, RECEIPT
    ),
    "fail": lambda scene, _, attempt: scene.fail(attempt, release=True),
    "bury": lambda scene, job_id, _: scene.bury(job_id),
    "finish": lambda scene, job_id, _: scene.ledger.outcomes.finish(job_id, JobState.CANCELLED),
    "cancel": lambda scene, job_id, _: scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann"),
    "abandon": lambda scene, job_id, _: scene.abandon(job_id),
}


# An attempt that has reported its failure does not complete.
PAIRS = [pair for pair in permutations(WRITES, 2) if pair != ("fail", "complete")]


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_of_two_writes_at_the_same_moment_neither_is_aborted(scene: Scene, first: str, second: str) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id)
    writes = []
    async with scene.held(job.id):  # so that both are under way when they may go on
        for name in (first, second):
            writes.append(asyncio.create_task(_write(scene, WRITES[name], job.id, attempt_id)))
            await scene.until_under_way(writes)

    assert await asyncio.gather(*writes) == [None, None]


async def test_an_attempt_that_begins_while_another_is_in_its_transaction_waits_for_its_receipt(
    scene: Scene,
) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id)
    later: list[asyncio.Task[object]] = []

    async with scene.ledger.database.transaction() as connection:
        await scene.ledger.effects.lock(connection, keys.step_key(job.id, CREATE_TICKET))
        later.append(asyncio.create_task(_write(scene, WRITES["begin"], job.id, attempt_id)))
        await scene.until_under_way(later)
        await scene.ledger.effects.complete(scene.intent(job.id), attempt_id, RECEIPT, connection=connection)

    assert await later[0] is None
    assert (await scene.effect(job.id)).state is EffectState.COMPLETED


async def _write(scene: Scene, write: Write, job_id: str, attempt_id: int) -> Exception | None:
    """The write's refusal counts as an answer; being aborted does not."""
    try:
        await write(scene, job_id, attempt_id)
    except Exception as error:
        return error if type(error).__module__.startswith("asyncpg") else None
    return None
