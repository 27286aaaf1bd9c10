"""A worker is killed while the real model writes: what was paid and stored before is not asked for again."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agentjobs.demo import load_requests
from agentjobs.domain import keys
from agentjobs.domain.states import JobState
from tests.model.play import PATIENCE_SECONDS, OnRecord, Play, playing

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(600)]


@pytest.fixture
async def play(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Play]:
    """A stack of its own, for its worker is killed."""
    async with playing(tmp_path_factory.mktemp("killed")) as running:
        yield running


def outcomes(record: OnRecord, step: str) -> list[str]:
    """How the attempts of a step ended, in their order."""
    return [attempt.outcome for attempt in record.attempts if attempt.step == step]


async def test_a_worker_killed_in_mid_call_costs_that_call_and_no_stored_reply(play: Play) -> None:
    job_id = await play.submit(load_requests()[0].text, key="killed")

    async def planned() -> bool:
        plan = await play.ledger.effects.read(keys.step_key(job_id, keys.PLAN))
        return plan is not None and plan.result is not None

    play.witness.withhold(planned)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await play.witness.withheld.wait()
    before = await play.on_record(job_id)
    await play.stack.kill("worker-1")
    record = await play.over(job_id)

    cut_off = before.attempts[-1].step
    assert cut_off == keys.model_step(1)
    assert outcomes(before, cut_off)[-1] == "running"
    assert outcomes(record, cut_off)[len(outcomes(before, cut_off)) - 1] == "crashed"
    assert len(outcomes(record, cut_off)) > len(outcomes(before, cut_off))
    assert outcomes(record, keys.PLAN) == outcomes(before, keys.PLAN)
    assert record.plan == before.plan
    assert len(play.witness.calls) == len(record.sent)
    assert record.job.state in {JobState.SUCCEEDED, JobState.DEAD}
    assert record.receipts == [f"T-{number}" for number in record.tickets]
