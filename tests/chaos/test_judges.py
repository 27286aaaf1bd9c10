"""The judges: what they were asked is on disk, and the tracker is the product's own idea of a Roundup."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from agentjobs.stack.ports import LOOPBACK
from agentjobs.trackers.roundup import RoundupTracker
from tests.chaos.storm.judge_log import JudgeLog, read_log
from tests.chaos.storm.ticket_judge import TicketJudge, serve
from tests.trackers.places import a_job, a_ticket, key_of


@dataclass
class Desk:
    """A tracker on a judge of its own."""

    tracker: RoundupTracker
    log: Path

    def did(self) -> list[str]:
        """What the log says, in order."""
        return [line["event"] for line in read_log(self.log)]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """In this process."""
    with JudgeLog(tmp_path / "log") as log:
        judge = TicketJudge(log)
        server = await asyncio.start_server(lambda reader, writer: serve(judge, reader, writer), LOOPBACK, 0)
        url = f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}/tracker"
        tracker = RoundupTracker(url, "agentjobs", SecretStr("x"))
        yield Desk(tracker, tmp_path / "log")
        await tracker.aclose()
        server.close()


async def test_a_key_lets_one_ticket_in_and_every_request_is_on_record(desk: Desk) -> None:
    job = a_job()

    first = await desk.tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)
    again = await desk.tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)

    assert again == first
    assert await desk.tracker.find(key_of(job), job=job) == first
    assert desk.did() == ["created", "repeated"]


async def test_a_ticket_is_found_by_its_words_and_closed(desk: Desk) -> None:
    job, stranger = a_job(), a_job("globex")
    receipt = await desk.tracker.create(a_ticket("zebra quagga"), key=key_of(job), job=job, connection=None)

    found = await desk.tracker.search("quagga", job=job, limit=5)
    of_stranger = await desk.tracker.search("quagga", job=stranger, limit=5)
    await desk.tracker.close(receipt, job=job, connection=None)

    assert [ticket.id for ticket in found] == [receipt.id]
    assert of_stranger == []
    assert desk.did() == ["created", "closed"]


def test_a_log_goes_on_where_it_was(tmp_path: Path) -> None:
    for event in ("one", "two"):
        with JudgeLog(tmp_path / "log") as log:
            log.write(event, key="k")

    lines = list(read_log(tmp_path / "log"))

    assert [(line["event"], line["key"]) for line in lines] == [("one", "k"), ("two", "k")]
