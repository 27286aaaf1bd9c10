"""Forms do something only when they come from a page of ours that this session was shown."""

import httpx
import pytest

from agentjobs.console.forms import FIELDS_LIMIT, FORM_LIMIT
from agentjobs.domain.states import JobState
from tests.console.visitors import FORM_HEADERS, ORIGIN, Console, Visitor, checked


@pytest.fixture
async def ann(console: Console) -> Visitor:
    return await console.visitor("ann")


async def cancel(console: Console, ann: Visitor, **request: object) -> tuple[httpx.Response, JobState]:
    """Try to cancel a job in this way; the answer, and the job's state after it."""
    job_id = (await console.scene.accept()).id
    answer = await ann.client.request("POST", f"/console/jobs/{job_id}/cancel", **request)  # type: ignore[arg-type]
    return answer, (await console.scene.job(job_id)).state


async def token(ann: Visitor) -> str:
    return (await ann.see("usage")).fields["form_token"]


async def test_with_its_token_it_does(console: Console, ann: Visitor) -> None:
    data = {"form_token": await token(ann)}

    answer, state = await cancel(console, ann, data=data, headers=FORM_HEADERS)

    assert answer.status_code == 303
    assert state is JobState.CANCELLED


async def test_without_a_token_it_does_not(console: Console, ann: Visitor) -> None:
    answer, state = await cancel(console, ann, data={"x": "y"}, headers=FORM_HEADERS)

    assert (answer.status_code, state) == (403, JobState.PENDING)
    assert "another session" in checked(answer).text


async def test_with_the_token_of_another_session_it_does_not(console: Console, ann: Visitor) -> None:
    data = {"form_token": await token(await console.visitor("ann"))}

    answer, state = await cancel(console, ann, data=data, headers=FORM_HEADERS)

    assert (answer.status_code, state) == (403, JobState.PENDING)


@pytest.mark.parametrize(
    "origin", ["https://evil.test", "null", "", f"{ORIGIN}.evil.test", "http://console.test:81"]
)
async def test_from_another_origin_it_does_not(console: Console, ann: Visitor, origin: str) -> None:
    data = {"form_token": await token(ann)}

    answer, state = await cancel(console, ann, data=data, headers={"Origin": origin})

    assert (answer.status_code, state) == (403, JobState.PENDING)


async def test_another_media_type_is_no_form(console: Console, ann: Visitor) -> None:
    body = {"form_token": await token(ann)}

    answer, state = await cancel(console, ann, json=body, headers=FORM_HEADERS)

    assert (answer.status_code, state) == (415, JobState.PENDING)


@pytest.mark.parametrize(
    "content",
    [
        b"a=1&a=2",
        b"a=%ff",
        b"a=%00",
        b"\xff\xfe",
        b"&".join(b"f%d=1" % number for number in range(FIELDS_LIMIT + 1)),
    ],
)
async def test_what_cannot_be_read_in_one_way_is_refused(console: Console, ann: Visitor, content: bytes) -> None:
    headers = FORM_HEADERS | {"Content-Type": "application/x-www-form-urlencoded"}

    answer, state = await cancel(console, ann, content=content, headers=headers)

    assert (answer.status_code, state) == (400, JobState.PENDING)
    checked(answer)


async def test_a_form_without_end_is_cut_off(console: Console, ann: Visitor) -> None:
    headers = FORM_HEADERS | {"Content-Type": "application/x-www-form-urlencoded"}

    async def endless() -> object:
        for _ in range(FORM_LIMIT // 1_000 + 1):
            yield b"x" * 1_000

    answer, state = await cancel(console, ann, content=endless(), headers=headers)

    assert (answer.status_code, state) == (413, JobState.PENDING)


async def test_an_action_is_no_link(console: Console, ann: Visitor) -> None:
    job_id = (await console.scene.accept()).id

    answer = await ann.client.get(f"/console/jobs/{job_id}/cancel")

    assert answer.status_code == 405
    assert (await console.scene.job(job_id)).state is JobState.PENDING
