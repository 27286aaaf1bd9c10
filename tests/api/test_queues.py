"""What is pending, and where; the installation's own queues are for the first admin key."""

from datetime import UTC, datetime
from typing import Any

from httpx import AsyncClient

from agentjobs.domain.stages import Stage
from agentjobs.ledger.queues import QueueKind
from tests.api.front import Front
from tests.api.test_waiting import wait
from tests.ledger.scene import CREATE_TICKET, MODEL_CALL


def stages(answer: dict[str, Any]) -> dict[str, int]:
    """The stages in which there are jobs."""
    return {one["stage"]: one["count"] for one in answer["stages"] if one["count"]}


async def test_each_live_job_is_in_one_stage(front: Front, ann: AsyncClient) -> None:
    await front.scene.accept()
    started = (await front.scene.accept()).id
    await front.scene.execute("UPDATE jobs SET dispatched_at = now() - interval '1 hour' WHERE id = $1", started)
    await front.scene.running()
    await wait(front, 600)
    due = await wait(front, 600)
    await front.scene.execute("UPDATE jobs SET next_attempt_at = now() - interval '1 day' WHERE id = $1", due)
    await front.scene.dead()

    answer = (await ann.get("/v1/queues")).json()

    ages = {one["stage"]: one["oldest_at"] for one in answer["stages"]}
    assert [one["stage"] for one in answer["stages"]] == [stage.value for stage in Stage]
    assert stages(answer) == {"to_start": 1, "to_begin": 1, "running": 1, "retry_wait": 1, "due": 1}
    assert ages["waiting_approval"] is None
    assert ages["due"] < ages["to_begin"] < ages["to_start"]


async def test_the_first_to_go_on_say_which_step_and_when(front: Front, ann: AsyncClient) -> None:
    await wait(front, 300)
    soon = await wait(front, 60)

    following = (await ann.get("/v1/queues")).json()["next"]

    assert len(following) == 2
    assert following[0] | {"next_attempt_at": None} == {
        **{"job_id": soon, "step": CREATE_TICKET, "attempt": 1, "category": "unavailable"},
        "next_attempt_at": None,
    }
    assert following[0]["next_attempt_at"] < following[1]["next_attempt_at"]


async def test_a_user_sees_its_own_and_the_roles_above_the_tenants(front: Front) -> None:
    await front.scene.accept(user="ann")
    await front.scene.accept(user="ben")
    await front.scene.accept(tenant="globex", user="ann")

    names = ("ann", "rita", "adam", "gus")
    answers = {name: (await front.of(name).get("/v1/queues")).json() for name in names}

    seen = {name: stages(answer) for name, answer in answers.items()}
    assert seen == {
        **{"ann": {"to_start": 1}, "rita": {"to_start": 2}},
        **{"adam": {"to_start": 2}, "gus": {"to_start": 1}},
    }
    assert [name for name, answer in answers.items() if answer["installation"] is not None] == ["adam"]


async def test_the_first_admin_key_sees_outbox_workers_and_task_queues(front: Front, adam: AsyncClient) -> None:
    job_id = await front.scene.running()
    await front.scene.accept(tenant="globex")
    await front.scene.execute("UPDATE outbox SET attempts = 2 WHERE job_id = $1", job_id)
    await front.scene.execute("INSERT INTO workers (id, number, identity) VALUES ('w#1', 1, 'w')")
    await front.scene.execute(
        "INSERT INTO workers (id, number, identity, stopped_at) VALUES ('gone#2', 2, 'gone', now())"
    )
    await front.scene.done(job_id, "step-1.model", {"text": "done"}, worker="w#1", **MODEL_CALL)
    await front.scene.begin(job_id, worker="w#1")
    await front.ledger.queues.note_task_queue("q", QueueKind.WORKFLOW, backlog=3, oldest_seconds=1.5, pollers=1)
    await front.ledger.queues.note_task_queue("q", QueueKind.WORKFLOW, backlog=4, oldest_seconds=2.5, pollers=1)

    shown = (await adam.get("/v1/queues")).json()["installation"]

    (starts,) = shown["outbox"]
    (worker,) = shown["workers"]
    (task_queue,) = shown["task_queues"]
    assert (starts["topic"], starts["count"], starts["put_off"]) == ("start_job", 2, 1)
    assert (worker["identity"], worker["in_hand"], worker["oldest_at"] is not None) == ("w", 1, True)
    assert (task_queue["kind"], task_queue["backlog"], task_queue["oldest_seconds"]) == ("workflow", 4, 2.5)
    assert abs((datetime.now(UTC) - datetime.fromisoformat(task_queue["seen_at"])).total_seconds()) < 60
