"""One kill at every boundary, on one warm stack."""

import time

import pytest

from agentjobs.failpoints import NAMES, Deed
from tests.chaos.client import Client
from tests.chaos.conftest import Tell
from tests.chaos.faults import AtFailpoint
from tests.chaos.play import play
from tests.chaos.rig import WORKERS, Rig, until

pytestmark = [pytest.mark.chaos_short, pytest.mark.timeout(300)]


@pytest.mark.parametrize("boundary", sorted(NAMES))
async def test_a_kill_at_a_boundary_breaks_no_promise(boundary: str, rig: Rig, seed: str, tell: Tell) -> None:
    outcome = await play(rig, AtFailpoint(boundary, Deed.KILL), seed)

    tell(outcome)
    assert outcome.passed, str(outcome)


async def test_a_cancel_after_a_kill_undoes_what_the_workflow_has_forgotten(rig: Rig) -> None:
    """In the fast lane a whole job is one workflow task: who begins that anew hears of the cancel first."""
    await rig.all_ready()
    rig.mark_logs()
    client = rig.client([])
    await rig.stack.stop_child(WORKERS[1])
    await rig.arm(WORKERS[0], "tool.after_commit=kill@1")

    job_id = await client.submit("I cannot log in since this morning, please help", f"forgotten-{time.time()}")
    await until(lambda: _fired(rig), "the kill", 60)
    await client.cancel(job_id)
    await rig.stack.start_child(WORKERS[1])
    await until(lambda: _is_over(client, job_id), "the end", 90)

    tickets = "SELECT count(*) FILTER (WHERE state = 'open') || ' of ' || count(*) FROM tickets WHERE job_id = $1"
    assert (await client.state(job_id), await rig.value(tickets, job_id)) == ("cancelled", "0 of 1")
    await client.close()


async def _fired(rig: Rig) -> bool:
    return rig.fired("tool.after_commit")


async def _is_over(client: Client, job_id: str) -> bool:
    return await client.state(job_id) in {"cancelled", "succeeded", "dead"}
