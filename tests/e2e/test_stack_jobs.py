"""Jobs on the whole stack, through the command line and the HTTP API, while its parts are killed."""

import asyncio
import json

import httpx
import pytest

from agentjobs.demo import load_requests
from agentjobs.domain import keys
from agentjobs.domain.states import JobState
from tests.e2e.conftest import Running
from tests.replay.texts import texts_of
from tests.world import eventually

pytestmark = pytest.mark.e2e


async def all_succeeded(running: Running, job_ids: list[str]) -> None:
    """Until every one of these jobs has succeeded, with exactly one ticket."""

    async def look() -> bool:
        jobs = [await running.ledger.jobs.read("dev", job_id) for job_id in job_ids]
        return all(job is not None and job.state is JobState.SUCCEEDED for job in jobs)

    await eventually(look, "all jobs to succeed")
    for job_id in job_ids:
        key = keys.step_key(job_id, "step-2.create_ticket")
        assert len(await running.ledger.tickets.of_operation(key)) == 1


async def test_a_request_from_the_command_line_ends_in_a_ticket(shared: Running) -> None:
    text = load_requests()[0].text

    ended = await shared.starter("submit", "-", "--wait", "--json", said=text)

    job = json.loads(ended.out)
    assert ended.code == 0, ended.err
    assert job["state"] == "succeeded"
    assert job["result"]["effects"][0]["receipt"]["id"].startswith("T-")


async def test_a_job_is_seen_in_the_temporal_ui(shared: Running) -> None:
    job_id = await shared.submit("Where is my refund?", "--wait")

    path = f"/api/v1/namespaces/default/workflows/agent-job-{job_id}"
    async with httpx.AsyncClient(base_url=shared.stack.info.temporal_ui, trust_env=False) as client:
        described = (await client.get(path)).json()
        history = (await client.get(f"{path}/history")).json()

    assert {'"support-triage"', '"succeeded"', '"dev"'} <= set(texts_of(described))
    texts = list(texts_of(history))
    assert '"short steps, from plan on"' in texts
    (told,) = [json.loads(text)["steps"] for text in texts if text.startswith('{"steps":')]
    assert {"plan", "step-2.create_ticket", "outcome"} <= set(told)
    assert [text for text in texts if "refund" in text] == []


async def test_submissions_made_while_temporal_is_down_are_kept(shared: Running) -> None:
    await shared.stack.stop_child("temporal")

    job_ids = [await shared.submit(f"The {n}th request while Temporal is down") for n in range(10)]
    await shared.stack.start_child("temporal")

    await all_succeeded(shared, job_ids)


@pytest.mark.parametrize("victim", ["postgres", "temporal", "relay", "worker-1", "api"])
async def test_jobs_survive_the_crash_of_any_part(shared: Running, victim: str) -> None:
    job_ids = [await shared.submit(f"Request {n} before {victim} is killed") for n in range(3)]

    await shared.stack.kill(victim)
    await shared.stack.until_ready(victim)

    await all_succeeded(shared, job_ids)


async def test_a_batch_goes_in_by_file(shared: Running, tmp_path_factory: pytest.TempPathFactory) -> None:
    batch = tmp_path_factory.mktemp("batch") / "requests.jsonl"
    lines = [json.dumps({"text": request.text, "key": f"batch-{request.id}"}) for request in load_requests()]
    batch.write_text("\n".join(lines), encoding="utf-8")

    first, second = await asyncio.gather(
        shared.starter("submit", "--file", str(batch)), shared.starter("submit", "--file", str(batch))
    )

    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert sorted(first.out.split()) == sorted(second.out.split())
    await all_succeeded(shared, first.out.split())


async def test_a_dead_job_is_brought_back_from_the_command_line(shared: Running) -> None:
    created = await shared.starter("keys", "create", "--tenant", "dev", "--user", "temp", "--json")
    key = json.loads(created.out)["key"]
    async with httpx.AsyncClient(
        base_url=shared.stack.info.api, headers={"Authorization": f"Bearer {key}"}, trust_env=False
    ) as client:
        job_id = (await client.post("/v1/jobs", json={"input": {"text": "No grant yet"}})).json()["id"]

    async def dead() -> bool:
        listed = await shared.starter("dead", "list", "--json")
        return any(letter["id"] == job_id for letter in json.loads(listed.out)["items"])

    await eventually(dead, "the dead letter")
    await shared.starter("grants", "add", "--user", "temp", "--action", "tickets:create")
    redriven = await shared.starter("dead", "redrive", job_id, "--note", "granted")

    assert redriven.code == 0, redriven.err
    await all_succeeded(shared, [job_id])
    again = await shared.starter("dead", "redrive", job_id, "--note", "once more")
    assert again.code == 1
