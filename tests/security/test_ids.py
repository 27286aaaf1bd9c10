"""S2: ids that reach Temporal are made here, and nothing that a client writes gets into one."""

import re

import pytest
from httpx import AsyncClient

from agentjobs.domain import keys
from tests.api.front import REQUEST, Front

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
HOSTILE = [
    *(
        "..",
        "../globex",
        "a/b",
        "a%2fb",
        "a\x00b",
        "a\nb",
        "a b",
        "x" * 65,
        "x" * 1_001,
        "acme\u200b",
        "\u0430cme",
    ),
    *("ACME ", "agent-job-1/../2", "t/globex/j/1", "'", "{id}", "$(id)"),
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
@pytest.mark.parametrize("field", ["agent", "user", "tenant", "action"])
async def test_a_name_that_could_be_part_of_a_path_is_refused(front: Front, field: str, name: str) -> None:
    path, body = {
        "agent": ("/v1/jobs", {**REQUEST, "agent": name}),
        "user": ("/v1/keys", {"user": name, "roles": ["submit"]}),
        "tenant": ("/v1/keys", {"tenant": name, "user": "ann", "roles": ["submit"]}),
        "action": ("/v1/grants", {"user": "ann", "action": name}),
    }[field]

    response = await front.of("gus").post(path, json=body)

    assert response.status_code == 422
    assert await front.scene.count("jobs") == 0


@pytest.mark.parametrize("text", ["t/globex/j/1", "../../agent-job-1", "globex"])
async def test_the_id_of_a_job_and_of_its_workflow_is_ours(front: Front, ann: AsyncClient, text: str) -> None:
    body = {"input": {"text": text}}

    job = (await ann.post("/v1/jobs", json=body, headers={"Idempotency-Key": text})).json()

    stored = await front.scene.rows("SELECT id, tenant FROM jobs")
    assert stored == [{"id": job["id"], "tenant": "acme"}]
    assert re.fullmatch(f"agent-job-{UUID}", keys.workflow_id(job["id"]))
