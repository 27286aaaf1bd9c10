"""What waits, for what, until when: in one answer."""

from urllib.parse import unquote

import pytest
from httpx import AsyncClient

from agentjobs.domain.failures import Category, failure
from agentjobs.domain.states import JobState
from tests.api.front import UI, Front, pointers
from tests.ledger.scene import CREATE_TICKET


async def wait(front: Front, seconds: float, category: Category = Category.UNAVAILABLE, **changes: str) -> str:
    """A job whose first attempt failed of this; its id."""
    job_id = (await front.scene.accept(**changes)).id
    attempt_id = await front.scene.begin_attempt(job_id)
    failed = failure(category, "slow down", CREATE_TICKET)
    await front.ledger.effects.fail(attempt_id, failed, wait_seconds=seconds, release=True)
    return job_id


async def test_each_that_waits_says_for_what_and_until_when(front: Front, ann: AsyncClient) -> None:
    job_id = await wait(front, 60, Category.RATE_LIMITED)
    await front.scene.running()

    answer = (await ann.get("/v1/waiting")).json()

    (job,) = answer["items"]
    assert job == (await ann.get(f"/v1/jobs/{job_id}")).json()
    assert (job["state"], job["step"], job["attempt"]) == ("retry_wait", CREATE_TICKET, 1)
    assert (job["failure"]["category"], job["failure"]["message"]) == ("rate_limited", "slow down")
    assert answer["counts"] == [{"category": "rate_limited", "count": 1, "next_at": job["next_attempt_at"]}]
    assert answer["total"] == 1


async def test_the_first_to_go_on_comes_first_and_all_are_counted(front: Front, ann: AsyncClient) -> None:
    late = await wait(front, 300, Category.RATE_LIMITED)
    soon = await wait(front, 60)
    overdue = await wait(front, 30)
    await front.scene.execute("UPDATE jobs SET next_attempt_at = now() - interval '1 day' WHERE id = $1", overdue)

    answer = (await ann.get("/v1/waiting", params={"limit": 2})).json()
    everything = (await ann.get("/v1/waiting")).json()

    assert [job["id"] for job in answer["items"]] == [overdue, soon]
    assert [job["id"] for job in everything["items"]] == [overdue, soon, late]
    assert [(one["category"], one["count"]) for one in answer["counts"]] == [
        ("unavailable", 2),
        ("rate_limited", 1),
    ]
    assert answer["counts"][0]["next_at"] == answer["items"][0]["next_attempt_at"]
    assert answer["total"] == 3


async def test_a_job_that_goes_on_waits_no_more(front: Front, ann: AsyncClient) -> None:
    job_id = await wait(front, 60)
    before = (await ann.get("/v1/waiting")).json()["total"]

    await front.scene.begin(job_id, attempt=2)

    answer = (await ann.get("/v1/waiting")).json()
    assert (before, answer["items"], answer["counts"], answer["total"]) == (1, [], [], 0)
    assert (await front.scene.job(job_id)).state is JobState.RUNNING


async def test_a_user_sees_its_own_waits_and_reviewer_and_admin_the_tenants(front: Front) -> None:
    anns = await wait(front, 60, user="ann")
    bens = await wait(front, 90, user="ben")
    await wait(front, 30, tenant="globex", user="ann")

    answers = {name: (await front.of(name).get("/v1/waiting")).json() for name in ("ann", "ben", "rita", "adam")}

    seen = {name: [job["id"] for job in answer["items"]] for name, answer in answers.items()}
    assert seen == {"ann": [anns], "ben": [bens], "rita": [anns, bens], "adam": [anns, bens]}
    assert [answer["total"] for answer in answers.values()] == [1, 1, 2, 2]
    assert [answer["counts"][0]["count"] for answer in answers.values()] == [1, 1, 2, 2]


async def test_the_answer_links_to_the_view_of_the_temporal_ui(ann: AsyncClient) -> None:
    links = (await ann.get("/v1/waiting")).json()["links"]

    assert links["self"] == "/v1/waiting"
    assert unquote(links["temporal_ui"]) == f'{UI}/namespaces/default/workflows?query=JobState = "retry_wait"'
    assert '"' not in links["temporal_ui"]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [("limit=0", "query:limit"), ("limit=201", "query:limit"), ("state=dead", "query:"), ("cursor=x", "query:")],
)
async def test_a_query_that_cannot_be_taken_is_refused(ann: AsyncClient, query: str, pointer: str) -> None:
    assert pointers(await ann.get(f"/v1/waiting?{query}")) == [pointer]
