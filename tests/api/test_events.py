"""A job's event stream: what it says, from where, and until when."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from agentjobs.api import event_stream
from agentjobs.domain.states import JobState
from agentjobs.ledger import events as ledger_events
from agentjobs.ledger.dead_letters import Action
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.api.event_source import Message, Served, serving, write_event
from tests.api.front import UNKNOWN, Front, check_problem, told
from tests.ledger.scene import CREATE_TICKET, Scene


@pytest.fixture
async def served(front: Front, postgres: EmbeddedPostgres) -> AsyncIterator[Served]:
    name = await front.ledger.database.pool.fetchval("SELECT current_database()")
    async with serving(front.ledger, postgres.dsn(name)) as opened:
        yield opened


async def finished(scene: Scene) -> str:
    """A job that has succeeded, with several events; its id."""
    job_id = await scene.running()
    await scene.done(job_id, CREATE_TICKET, {"ticket": "T-1"})
    await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
    return job_id


def types(messages: list[Message]) -> list[str]:
    return [message.event for message in messages]


async def test_the_snapshot_comes_first_then_what_happens_until_the_end(
    front: Front, scene: Scene, served: Served, key: str
) -> None:
    job_id = await scene.running()
    status = (await front.of("ann").get(f"/v1/jobs/{job_id}")).json()

    async with served.stream(key, job_id) as source:
        snapshot = await source.next()
        await scene.done(job_id, CREATE_TICKET, {"ticket": "T-1"})
        await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
        rest = await source.rest()

    events = await scene.ledger.jobs.events(job_id)
    assert (snapshot.event, snapshot.data) == ("snapshot", status)
    later = events[int(snapshot.id or 0) :]
    assert [(message.id, message.event) for message in rest] == [(str(one.seq), one.type) for one in later]
    assert rest[-1].event == "succeeded"
    assert source.retry is not None
    assert 1_000 <= source.retry < 3_000


async def test_each_event_tells_its_seq_type_time_and_data(scene: Scene, served: Served, key: str) -> None:
    job_id = await finished(scene)

    messages = await served.read(key, job_id, 0)

    events = await scene.ledger.jobs.events(job_id)
    assert [message.data for message in messages] == [
        {"seq": one.seq, "type": one.type, "at": one.at.isoformat().replace("+00:00", "Z"), **one.data}
        for one in events
    ]
    assert [message.data["seq"] for message in messages] == list(range(1, len(events) + 1))


async def test_from_every_position_the_same_rest_follows(scene: Scene, served: Served, key: str) -> None:
    job_id = await finished(scene)
    whole = await served.read(key, job_id, 0)

    resumed = [await served.read(key, job_id, position) for position in range(len(whole))]

    assert resumed == [whole[position:] for position in range(len(whole))]
    assert len(whole) > 3


async def test_more_than_a_page_arrives_whole_and_in_order(scene: Scene, served: Served, key: str) -> None:
    job_id = await scene.running()
    for number in range(200):
        await write_event(scene, job_id, text=f"piece {number}")
    await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)

    messages = await served.read(key, job_id, 0)

    assert [message.id for message in messages] == [str(number + 1) for number in range(len(messages))]
    texts = [message.data["text"] for message in messages if message.event == "text"]
    assert texts == [f"piece {number}" for number in range(200)]


@pytest.mark.parametrize(
    "text", ["a\nb", "a\r\nid: 7\r\n\r\nevent: died", "\u2028\u2029\x85", "日本 🖨", "data: x"]
)
async def test_no_text_can_break_out_of_its_line(scene: Scene, served: Served, key: str, text: str) -> None:
    job_id = await scene.running()
    await write_event(scene, job_id, text=text)
    await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)

    messages = await served.read(key, job_id, 0)

    assert [message.data["text"] for message in messages if message.event == "text"] == [text]
    assert types(messages)[-1] == "succeeded"


async def test_data_cannot_claim_another_seq(scene: Scene, served: Served, key: str) -> None:
    job_id = await scene.running()
    await write_event(scene, job_id, seq=99, type="died", at="never")
    await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)

    told = (await served.read(key, job_id, 0))[-2]

    assert (told.data["seq"], told.data["type"], told.event) == (int(told.id or 0), "text", "text")


async def test_an_ended_job_is_a_snapshot_and_the_end(scene: Scene, served: Served, key: str) -> None:
    jobs = [await finished(scene), await scene.dead()]

    streams = [await served.read(key, job_id) for job_id in jobs]

    assert [types(messages) for messages in streams] == [["snapshot"], ["snapshot"]]


async def test_who_knows_the_last_event_is_told_not_to_come_again(scene: Scene, served: Served, key: str) -> None:
    for job_id in (await finished(scene), await scene.dead()):
        last = (await served.read(key, job_id, 0))[-1]

        async with served.stream(key, job_id, last.id) as source:
            assert (source.response.status_code, await source.response.aread()) == (204, b"")


async def test_the_id_of_a_snapshot_is_as_good_as_that_of_an_event(scene: Scene, served: Served, key: str) -> None:
    job_id = await scene.running()
    async with served.stream(key, job_id) as source:
        snapshot = await source.next()
    await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)

    rest = await served.read(key, job_id, snapshot.id)

    assert types(rest) == ["succeeded"]


async def test_it_ends_at_dead_and_goes_on_after_a_redrive(scene: Scene, served: Served, key: str) -> None:
    job_id = await scene.running()
    async with served.stream(key, job_id) as source:
        await source.next()
        await scene.bury(job_id)
        until_death = await source.rest()
    await request(scene, job_id, "redrive")

    async with served.stream(key, job_id, until_death[-1].id) as source:
        asked = await source.next()
        await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
        redriven = await source.next()
        await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
        rest = await source.rest()

    assert types(until_death)[-1] == "died"
    assert types([asked, redriven, *rest]) == ["redrive_requested", "redriven", "succeeded"]


async def test_a_replay_does_not_end_at_a_death_that_was_redriven(
    scene: Scene, served: Served, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_events, "PAGE_EVENTS", 2)
    job_id = await scene.dead()
    await request(scene, job_id, "redrive")
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)

    messages = await served.read(key, job_id, 0)

    assert types(messages) == ["accepted", "died", "redrive_requested", "redriven", "succeeded"]


async def request(scene: Scene, job_id: str, action: Action) -> None:
    accepted = await scene.ledger.dead_letters.request(
        action,
        scene.tenant,
        job_id,
        actor="rita",
        note="again",
        payload={"policy": "original"},
    )
    assert accepted


async def test_the_parameter_does_what_the_header_does(scene: Scene, served: Served, key: str) -> None:
    job_id = await finished(scene)

    by_parameter = await served.read(key, job_id, last_event_id=2)
    by_both = await served.read(key, job_id, 3, last_event_id=0)

    assert by_parameter == await served.read(key, job_id, 2)
    assert by_both == await served.read(key, job_id, 3)


@pytest.mark.parametrize(
    "given",
    [
        "-1",
        "1.0",
        "+1",
        "0x1",
        "1e3",
        "one",
        "1 2",
        "1,2",
        "9" * 10,
        "9" * 5_000,
        "\u0663".encode(),
        b"\xff",
        "%00",
        "'",
    ],
    ids=lambda given: str(given)[:10],
)
async def test_an_id_that_can_be_none_is_refused(
    front: Front, scene: Scene, given: str | bytes, served: Served, key: str
) -> None:
    job_id = await scene.running()

    for kind in ({"headers": {b"Last-Event-ID": given}}, {"params": {"last_event_id": given}}):
        response = await front.of("ann").get(f"/v1/jobs/{job_id}/events", **kind)

        assert response.status_code == 400
        check_problem(response)


async def test_an_id_that_the_job_has_not_reached_is_refused(front: Front, scene: Scene) -> None:
    job_id = await scene.running()
    seq = len(await scene.events(job_id))

    response = await front.of("ann").get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": str(seq + 1)})

    assert response.status_code == 400
    assert check_problem(response)["type"].endswith("last_event_id_unknown")


async def test_two_ids_are_refused(front: Front, scene: Scene) -> None:
    job_id = await finished(scene)
    twice = [("Last-Event-ID", "1"), ("Last-Event-ID", "2")]

    response = await front.of("ann").get(f"/v1/jobs/{job_id}/events", headers=twice)

    assert response.status_code == 400


async def test_an_empty_id_is_none(scene: Scene, served: Served, key: str) -> None:
    job_id = await finished(scene)

    messages = await served.read(key, job_id, "")

    assert types(messages) == ["snapshot"]


async def test_what_was_removed_is_made_up_for_by_a_snapshot(scene: Scene, served: Served, key: str) -> None:
    job_id = await scene.running()
    await scene.execute("DELETE FROM job_events WHERE job_id = $1 AND seq < 3", job_id)

    async with served.stream(key, job_id, 1) as source:
        resync, snapshot = await source.next(), await source.next()
        await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
        rest = await source.rest()

    assert (resync.event, resync.id, resync.data) == ("resync", None, {"after": 1})
    assert (snapshot.event, snapshot.data["state"]) == ("snapshot", "running")
    assert [(message.id, message.event) for message in rest] == [(str(int(snapshot.id or 0) + 1), "succeeded")]


@pytest.mark.parametrize("name", ["gus", "ann_of_globex", "ben"])
async def test_a_stream_of_others_is_as_unknown_as_any(front: Front, scene: Scene, name: str) -> None:
    job_id = await finished(scene)
    stranger = front.of(name)

    unknown = await stranger.get(f"/v1/jobs/{UNKNOWN}/events")
    foreign = await stranger.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": "1"})

    assert told(foreign) == told(unknown)
    assert foreign.status_code == 404


async def test_a_reviewer_sees_the_streams_of_the_tenant(front: Front, scene: Scene, served: Served) -> None:
    job_id = await finished(scene)

    assert types(await served.read(front.keys["rita"], job_id)) == ["snapshot"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_other_methods_are_refused(front: Front, scene: Scene, served: Served, method: str) -> None:
    job_id = await finished(scene)

    async with httpx.AsyncClient(base_url=served.url) as client:
        headers = {"Authorization": f"Bearer {front.keys['ann']}"}
        response = await client.request(method, f"/v1/jobs/{job_id}/events", headers=headers)

    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


async def test_on_the_wire_it_is_chunked_unbuffered_and_kept_alive_by_comments(
    scene: Scene, served: Served, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "COMMENT_SECONDS", 0.05)
    job_id = await scene.running()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    ask = f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    writer.write(f"{ask}Accept-Encoding: gzip, br\r\n\r\n".encode())

    async with asyncio.timeout(30):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        first = await chunk(reader)
        comments = [await chunk(reader), await chunk(reader)]
        await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
        while last := await chunk(reader):
            final = last
    writer.close()

    assert head.startswith("http/1.1 200 ")
    for line in ("content-type: text/event-stream", "cache-control: no-store", "x-accel-buffering: no"):
        assert f"\r\n{line}\r\n" in head
    assert "transfer-encoding: chunked" in head
    assert "content-encoding" not in head
    assert "content-length" not in head
    assert first.startswith(b"retry: ")
    assert comments == [b": still here\n\n"] * 2
    assert b"event: succeeded\n" in final


async def chunk(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readline(), 16)
    content = await reader.readexactly(size)
    assert await reader.readexactly(2) == b"\r\n"
    return content


async def test_a_status_links_to_its_stream(front: Front, scene: Scene, served: Served, key: str) -> None:
    job_id = await finished(scene)

    links = (await front.of("ann").get(f"/v1/jobs/{job_id}")).json()["links"]

    assert links["events"] == f"/v1/jobs/{job_id}/events"


async def test_the_document_tells_of_stream_end_and_resuming(front: Front) -> None:
    operation = front.app.openapi()["paths"]["/v1/jobs/{id}/events"]["get"]

    assert operation["responses"]["200"]["content"].keys() == {"text/event-stream"}
    assert {"204", "400", "401", "404", "503"} <= operation["responses"].keys()
    assert [(one["name"], one["in"]) for one in operation["parameters"]] == [
        ("id", "path"),
        ("last_event_id", "query"),
        ("Last-Event-ID", "header"),
    ]


async def test_ids_go_on_over_a_ledger_read_by_another_instance(
    front: Front, scene: Scene, served: Served, key: str, ledger: Ledger, postgres: EmbeddedPostgres
) -> None:
    job_id = await scene.running()
    name = await ledger.database.pool.fetchval("SELECT current_database()")
    async with (
        serving(ledger, postgres.dsn(name)) as other,
        served.stream(key, job_id, 0) as here,
        other.stream(key, job_id, 0) as there,
    ):
        for number in range(20):
            await write_event(scene, job_id, text=str(number))
        await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)

        told_here, told_there = await here.rest(), await there.rest()

    assert told_here == told_there
    assert [message.id for message in told_here] == [str(seq + 1) for seq in range(len(told_here))]
