"""What a whole job asks of PostgreSQL: the time depends on the machine, the number of statements does not."""

from collections import Counter
from dataclasses import replace

from agentjobs.domain.states import JobState
from tests.workflows.counted import counting
from tests.world import World

A_JOB = {
    "mark_started": 1,
    # plan, two steps, the ticket and the answer
    "begin_effect": 5,
    "complete_effect": 5,
    "lock_effect": 1,
    "create_ticket": 1,
    "finish": 1,
}
"""Of a job that thinks twice and makes one ticket. The submission is the API's, and is not among these."""

LOOKS = {"only_one_starter", "claim_starts", "claim_commands", "claim_desk_words"}
"""What the relay does whether there are jobs or not. All jobs of a moment share one look."""


async def test_a_job_sends_no_more_statements_than_it_needs(world: World) -> None:
    ledger, counts = counting(world.ledger)
    job_id = await world.submit()

    async with replace(world, ledger=ledger).running():
        job = await world.until(job_id)

    assert job.state is JobState.SUCCEEDED
    sent = Counter({name: count for name, count in counts.items() if name not in LOOKS})
    assert _more(sent, A_JOB) == {}, "a job costs more statements than before: say why, or take them away"
    assert sent == A_JOB, "a job costs fewer statements than before: lower the bound"


async def test_ten_jobs_send_ten_times_as_many(world: World) -> None:
    ledger, counts = counting(world.ledger)
    job_ids = [await world.submit() for _ in range(10)]

    async with replace(world, ledger=ledger).running():
        for job_id in job_ids:
            await world.until(job_id)

    bound = {name: 10 * count for name, count in A_JOB.items()}
    assert _more(Counter({name: count for name, count in counts.items() if name not in LOOKS}), bound) == {}


def _more(sent: Counter[str], bound: dict[str, int]) -> dict[str, str]:
    too_many = Counter(sent) - Counter(bound)
    return {name: f"{sent[name]} instead of {bound.get(name, 0)}" for name in too_many}
