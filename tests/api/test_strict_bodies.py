"""Bodies: only what every JSON reader understands in the same way, bounded, and never repeated in an answer."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient, Response

from agentjobs.api import strict_json
from agentjobs.api.strict_json import BODY_LIMIT
from tests.api.front import JSON, REQUEST, Front, check_problem

CANARY = "hunter2canary"
START = b'{"input":{"text":"x"},"priority":'


async def post(client: AsyncClient, body: bytes, headers: dict[str, str] | None = None) -> Response:
    return await client.post("/v1/jobs", content=body, headers=JSON if headers is None else headers)


async def in_parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"input":{"text":"x"}',
        b'{"input":{"text":"x"}}}',
        b"{'input':1}",
        b'{"input":{"text":"x\x00"}}',
        b'{"input":{"text":"x\ny"}}',
        b'{"input":{"text":"\xff"}}',
        b'{"input":{"text":"\xed\xa0\x80"}}',
        b'\xef\xbb\xbf{"input":{"text":"x"}}',
        '{"input":{"text":"x"}}'.encode("utf-16"),
        b'{"input":{"text":"\\x"}}',
        b"[" * 30 + b'"',
    ],
    ids=lambda body: ascii(body)[:30],
)
async def test_what_is_no_json_is_malformed(front: Front, ann: AsyncClient, body: bytes) -> None:
    response = await post(ann, body)

    assert response.status_code == 400
    assert await front.scene.count("jobs") == 0


@pytest.mark.parametrize(
    "body",
    [
        START + b"NaN}",
        START + b"Infinity}",
        START + b"-Infinity}",
        START + b"1e999}",
        START + b"9007199254740992}",
        START + b"-9223372036854775809}",
        START + b"1" * 5_000 + b"}",
        START + b"1" * 4_000 + b"}",
        b'{"input":{"text":"a"},"input":{"text":"b"}}',
        b'{"input":{"text":"a","text":"a"}}',
        b'{"input":{"text":"a","te\\u0078t":"b"}}',
        b'{"input":{"text":"a\\u0000b"}}',
        b'{"input":{"text":"\\ud800"}}',
        b'{"input":{"text":"\\udc00\\ud800"}}',
        b'{"input":{"te\\u0000xt":"a"}}',
        b'{"input":{"\\ud800":"a"}}',
        b'{"input":{' + b",".join(b'"k%d":1' % n for n in range(1_001)) + b"}}",
    ],
    ids=lambda body: ascii(body)[:60],
)
async def test_what_readers_disagree_on_is_refused(front: Front, ann: AsyncClient, body: bytes) -> None:
    response = await post(ann, body)

    assert response.status_code == 422
    assert await front.scene.count("jobs") == 0


@pytest.mark.parametrize("depth", [64, 100, 500, 2_000, 20_000, 100_000])
@pytest.mark.parametrize(("opened", "closed"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
async def test_deep_nesting_is_refused(ann: AsyncClient, depth: int, opened: bytes, closed: bytes) -> None:
    depth = min(depth, (BODY_LIMIT - 100) // (len(opened) + 1))
    whole = START + opened * depth + b"1" + closed * depth + b"}"
    cut_off = START + opened * depth

    answers = [await post(ann, whole), await post(ann, cut_off)]

    assert answers[0].status_code == 422
    assert answers[1].status_code in {400, 422}


async def test_a_pair_of_surrogates_is_one_character(ann: AsyncClient) -> None:
    response = await post(ann, b'{"input":{"text":"\\ud83d\\ude21"}}')

    assert response.status_code == 202


async def test_the_largest_body_is_taken_and_one_byte_more_is_not(ann: AsyncClient) -> None:
    request = json.dumps(REQUEST).encode()
    largest = request + b" " * (BODY_LIMIT - len(request))

    answers = [await post(ann, largest), await post(ann, largest + b" ")]

    assert [answer.status_code for answer in answers] == [202, 413]


async def test_a_body_of_unannounced_length_is_counted_while_it_arrives(front: Front, ann: AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            yield b" " * 65_536

    response = await ann.post("/v1/jobs", content=endless(), headers=JSON)

    assert response.status_code == 413
    assert sent <= BODY_LIMIT + 2 * 65_536


async def test_a_body_in_parts_is_one_body(ann: AsyncClient) -> None:
    response = await ann.post("/v1/jobs", content=in_parts(b'{"input":', b"", b'{"text":"x"}}'), headers=JSON)

    assert response.status_code == 202


@pytest.mark.parametrize("length", [str(BODY_LIMIT + 1), "9" * 30, "-1", "0x10", "\u0663"])
async def test_an_announced_length_is_refused_before_the_caller_is_looked_up(front: Front, length: str) -> None:
    stranger = front.of(None)

    response = await stranger.post(
        "/v1/jobs", content=b"{}", headers=[(b"Content-Length", length.encode("latin-1", "replace"))]
    )

    assert response.status_code == 413


@pytest.mark.parametrize(
    "body", [b"{", b'{"input":{"text":""}}', b"[" * 100_000], ids=["malformed", "bad", "deep"]
)
async def test_a_strangers_body_is_not_read(front: Front, body: bytes) -> None:
    read = False

    async def watched() -> AsyncIterator[bytes]:
        nonlocal read
        read = True
        yield body

    response = await front.of(None).post("/v1/jobs", content=watched(), headers=JSON)

    assert response.status_code == 401
    assert not read


async def test_a_body_that_does_not_arrive_is_given_up(ann: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "BODY_SECONDS", 0.01)

    async def stalled() -> AsyncIterator[bytes]:
        yield b'{"input":'
        await asyncio.Event().wait()

    response = await ann.post("/v1/jobs", content=stalled(), headers=JSON)

    assert response.status_code == 408
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize(
    "content_type",
    [
        *(
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonx",
        ),
        *("application/merge-patch+json", "application/json; charset=latin-1", "json", ""),
    ],
)
async def test_another_media_type_is_refused(front: Front, ann: AsyncClient, content_type: str) -> None:
    body = json.dumps(REQUEST).encode()
    headers = {"Content-Type": content_type}

    answers = [
        await post(ann, body, headers),
        await ann.post("/v1/jobs", content=in_parts(body), headers=headers),
    ]

    assert [answer.status_code for answer in answers] == [415, 415]
    assert await front.scene.count("jobs") == 0


async def test_no_media_type_and_two_are_refused(ann: AsyncClient) -> None:
    body = json.dumps(REQUEST).encode()
    two = [("Content-Type", "application/json"), ("Content-Type", "text/plain")]

    answers = [await post(ann, body, {}), await ann.post("/v1/jobs", content=body, headers=two)]

    assert [answer.status_code for answer in answers] == [415, 415]


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=UTF-8", "Application/JSON", 'application/json;charset="utf-8"']
)
async def test_every_spelling_of_json_is_taken(ann: AsyncClient, content_type: str) -> None:
    response = await post(ann, json.dumps(REQUEST).encode(), {"Content-Type": content_type})

    assert response.status_code == 202


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity", "gzip, gzip"])
async def test_a_compressed_body_is_refused(ann: AsyncClient, encoding: str) -> None:
    response = await post(ann, b"\x1f\x8b", JSON | {"Content-Encoding": encoding})

    assert response.status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        {CANARY: 1},
        {"input": {"text": "x", CANARY: CANARY}},
        {"input": {"text": {CANARY: CANARY}}},
        {"agent": CANARY, "input": {"text": "x"}},
        {"agent": f"../{CANARY}", "input": {"text": "x"}},
        {"priority": CANARY, "input": {"text": CANARY}},
        {"budget": {"usd": CANARY}, "input": {"text": CANARY}},
        {"budget": {CANARY: 1}, "input": {"text": CANARY}},
        {"input": CANARY},
        [CANARY],
        CANARY,
    ],
    ids=str,
)
async def test_no_answer_repeats_what_was_sent(ann: AsyncClient, body: object) -> None:
    response = await ann.post("/v1/jobs", json=body)

    assert response.status_code == 422
    assert CANARY not in response.text + str(response.headers)


async def test_a_member_that_is_not_known_hides_no_other_error(ann: AsyncClient) -> None:
    body = {"input": {"text": " ", CANARY: 1}, "priority": 9, "budget": {"usd": "1_0", CANARY: 1}, CANARY: 1}

    response = await ann.post("/v1/jobs", json=body)

    told = {(one["pointer"], one["detail"]) for one in check_problem(response)["errors"]}
    known = "Leave out what is not known; known are: "
    assert told == {
        ("", f"{known}agent, input, deadline_seconds, budget, priority."),
        ("/input", f"{known}text."),
        ("/input/text", "This is blank: write something that can be read."),
        ("/priority", "This must be less than or equal to 5"),
        ("/budget", f"{known}tokens, usd, steps."),
        ("/budget/usd", "Give the amount as digits, such as 12.50."),
    }
    assert CANARY not in response.text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/v1/{CANARY}", 404),
        (f"/v1/jobs/{CANARY}", 404),
        (f"/v1/jobs/{CANARY}!", 404),
        (f"/v1/jobs?state={CANARY}", 422),
        (f"/v1/jobs?limit={CANARY}", 422),
        (f"/v1/jobs?cursor={CANARY}", 422),
        (f"/v1/jobs?agent=.{CANARY}", 422),
        (f"/v1/jobs?{CANARY}=1", 422),
    ],
)
async def test_no_answer_repeats_the_path_or_the_query(ann: AsyncClient, path: str, status: int) -> None:
    response = await ann.get(path)

    assert response.status_code == status
    assert CANARY not in response.text + str(response.headers)


@pytest.mark.parametrize(
    "path", ["/v1/dead-letters/x/redrive", "/v1/dead-letters/x/discard", "/v1/keys", "/v1/grants"]
)
@pytest.mark.parametrize("body", [b"{", b'{"note":1,"note":1}', b"[" * 100_000, b'{"canary":1}'], ids=ascii)
async def test_every_route_reads_as_strictly(front: Front, path: str, body: bytes) -> None:
    response = await front.of("gus").post(path, content=body[:BODY_LIMIT], headers=JSON)

    assert response.status_code in {400, 422}
    assert "canary" not in str(check_problem(response))
