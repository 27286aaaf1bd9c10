"""The relay: every row is delivered at least once, and none holds up the others."""

import asyncio
import logging
from collections import Counter
from datetime import UTC, datetime

import pytest
from temporalio.service import RPCStatusCode

from agentjobs.agents.spec import UnknownAgent
from agentjobs.domain.states import JobState
from agentjobs.failpoints import FailpointError, Failpoints
from agentjobs.ledger.outbox import OutboxRow
from agentjobs.outbox import relay as relays
from agentjobs.outbox.delivery import NotYet
from agentjobs.outbox.relay import BATCH, Relay, TemporalDown
from tests.ledger.scene import Scene, submission
from tests.outbox.deliveries import Answer, ScriptedDelivery, relay, rpc_error
from tests.world import eventually

DOWN = (
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.ABORTED,
)


def only(job_id: str, problem: Exception) -> Answer:
    """This job's rows fail so; all others are taken."""

    def answer(row: OutboxRow) -> Exception | None:
        return problem if row.job_id == job_id else None

    return answer


async def test_rows_that_commit_out_of_order_are_all_delivered(scene: Scene) -> None:
    delivery = ScriptedDelivery()
    late = submission(scene.tenant)
    async with scene.ledger.database.transaction() as connection:
        await scene.ledger.jobs.accept(late, connection)  # has the lower id, and commits last
        early = await scene.accept()
        await relay(scene.ledger, delivery).start_once()
        seen_before_the_commit = list(delivery.taken)

    await relay(scene.ledger, delivery).start_once()

    assert seen_before_the_commit == [early.id]
    assert delivery.taken == [early.id, late.id]
    assert await scene.count("outbox") == 0


async def test_two_relays_at_once_deliver_each_start_once(scene: Scene) -> None:
    jobs = {(await scene.accept()).id for _ in range(3 * BATCH)}
    delivery = ScriptedDelivery()
    relays = [relay(scene.ledger, delivery) for _ in range(2)]

    while await scene.count("outbox"):
        await asyncio.gather(*(one.start_once() for one in relays))

    assert Counter(delivery.taken) == Counter(dict.fromkeys(jobs, 1))


async def test_two_relays_at_once_deliver_each_command_once(scene: Scene) -> None:
    jobs = [await scene.dead() for _ in range(2 * BATCH)]
    await scene.execute("DELETE FROM outbox WHERE topic = 'start_job'")
    await scene.execute("UPDATE outbox SET topic = 'cancel_job'")
    delivery = ScriptedDelivery()
    relays = [relay(scene.ledger, delivery) for _ in range(2)]

    delivered = await asyncio.gather(*(one.command_once() for one in relays))

    assert Counter(delivery.taken) == Counter(dict.fromkeys(jobs, 1))
    assert sum(delivered) == len(jobs)


async def test_a_relay_says_how_many_rows_it_delivered(scene: Scene) -> None:
    for _ in range(BATCH + 1):
        await scene.accept()
    one = relay(scene.ledger, ScriptedDelivery())

    assert [await one.start_once() for _ in range(3)] == [BATCH, 1, 0]


@pytest.mark.parametrize("failpoint", ["outbox.after_claim", "outbox.after_start"])
async def test_a_relay_that_dies_before_the_mark_loses_nothing(scene: Scene, failpoint: str) -> None:
    job = await scene.accept()
    delivery = ScriptedDelivery()
    dying = relay(scene.ledger, delivery, f"{failpoint}=raise@1")
    with pytest.raises(FailpointError):
        await dying.start_once()
    waiting = await scene.topics()

    await dying.start_once()

    assert waiting == ["start_job"]
    assert delivery.taken == [job.id] * (2 if failpoint == "outbox.after_start" else 1)
    assert await scene.count("outbox") == 0


@pytest.mark.parametrize("status", DOWN)
async def test_while_temporal_is_down_rows_stay_as_they_are(scene: Scene, status: RPCStatusCode) -> None:
    job = await scene.accept()
    delivery = ScriptedDelivery(lambda _: rpc_error(status))
    before = await scene.rows("SELECT * FROM outbox")

    for _ in range(3):
        with pytest.raises(TemporalDown):
            await relay(scene.ledger, delivery).start_once()

    assert await scene.rows("SELECT * FROM outbox") == before
    assert (await scene.job(job.id)).state is JobState.PENDING

    delivery.answer = lambda _: None
    assert await relay(scene.ledger, delivery).start_once() == 1


async def test_what_temporal_took_before_it_went_down_stays_taken(scene: Scene) -> None:
    jobs = [(await scene.accept()).id for _ in range(3)]
    delivery = ScriptedDelivery(only(jobs[1], rpc_error(RPCStatusCode.UNAVAILABLE)))

    with pytest.raises(TemporalDown):
        await relay(scene.ledger, delivery).start_once()

    assert [row["job_id"] for row in await scene.rows("SELECT job_id FROM outbox")] == [jobs[1]]


@pytest.mark.parametrize(
    "problem", [UnknownAgent(), rpc_error(RPCStatusCode.INVALID_ARGUMENT)], ids=["unknown agent", "refused"]
)
async def test_a_start_that_can_never_succeed_ends_dead_and_rows_behind_it_flow(
    scene: Scene, problem: Exception
) -> None:
    hopeless, behind = (await scene.accept()).id, (await scene.accept()).id
    delivery = ScriptedDelivery(only(hopeless, problem))

    await relay(scene.ledger, delivery).start_once()

    assert delivery.taken == [behind]
    job, letter = await scene.job(hopeless), await scene.letter(hopeless)
    assert (job.state, letter.reason, letter.worker) == (JobState.DEAD, "invalid_input", "relay")
    assert await scene.rows("SELECT topic, job_id FROM outbox") == [{"topic": "job_died", "job_id": hopeless}]


async def test_a_start_that_fails_because_of_the_installation_is_not_given_up(scene: Scene) -> None:
    job = await scene.accept()
    unregistered = rpc_error(
        RPCStatusCode.INVALID_ARGUMENT, "Namespace default has no mapping for search attribute"
    )

    await relay(scene.ledger, ScriptedDelivery(lambda _: unregistered)).start_once()

    assert (await scene.job(job.id)).state is JobState.PENDING
    assert await scene.topics() == ["start_job"]


async def test_a_row_that_fails_for_a_reason_of_its_own_is_tried_later_and_holds_nobody_up(scene: Scene) -> None:
    odd, behind = (await scene.accept()).id, (await scene.accept()).id
    delivery = ScriptedDelivery(only(odd, RuntimeError("s3cr3t content")))
    one = relay(scene.ledger, delivery)

    delivered = await one.start_once(), await one.start_once()

    assert (delivered, delivery.taken) == ((1, 0), [behind])
    row = (await scene.rows("SELECT job_id, attempts, last_error, available_at FROM outbox"))[0]
    assert (row["job_id"], row["attempts"], row["last_error"]) == (odd, 1, "RuntimeError")
    assert row["available_at"] > datetime.now(UTC)


async def test_a_row_that_was_put_off_is_delivered_when_its_time_has_come(scene: Scene) -> None:
    job = await scene.accept()
    delivery = ScriptedDelivery(lambda _: NotYet())
    await relay(scene.ledger, delivery).start_once()
    delivery.answer = lambda _: None
    await scene.execute("UPDATE outbox SET available_at = now()")

    assert await relay(scene.ledger, delivery).start_once() == 1
    assert delivery.taken == [job.id]


async def test_a_command_that_can_never_be_taken_does_not_kill_its_job_again(scene: Scene) -> None:
    job_id = await scene.dead()

    await relay(scene.ledger, ScriptedDelivery(lambda _: UnknownAgent())).command_once()

    assert (await scene.job(job_id)).generation == 1
    assert await scene.topics() == ["start_job", "job_died"]


async def test_starts_commands_and_deaths_go_by_lanes_of_their_own(scene: Scene) -> None:
    started, died = (await scene.accept()).id, await scene.dead()
    cancelled = await scene.dead()
    await scene.execute(
        "UPDATE outbox SET topic = 'cancel_job' WHERE topic = 'job_died' AND job_id = $1", cancelled
    )
    delivery = ScriptedDelivery()

    for lane in (relay(scene.ledger, delivery).command_once, relay(scene.ledger, delivery).desk_once):
        assert await lane() == 1
    await relay(scene.ledger, delivery).start_once()

    assert delivery.taken == [cancelled, died, started, died, cancelled]


async def test_a_failed_delivery_is_logged_by_its_kind_only(
    scene: Scene, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    await scene.accept(text="s3cr3t request")
    caplog.set_level(logging.DEBUG)

    await relay(scene.ledger, ScriptedDelivery(lambda _: RuntimeError("s3cr3t content"))).start_once()

    told = caplog.text + capsys.readouterr().out
    assert "RuntimeError" in told
    assert "s3cr3t" not in told


async def test_the_backlog_is_counted_with_its_age(scene: Scene) -> None:
    empty = await scene.ledger.outbox.backlog()
    await scene.accept()
    await scene.accept()
    await scene.execute(
        "UPDATE outbox SET created_at = now() - interval '1 minute' WHERE id = (SELECT min(id) FROM outbox)"
    )

    rows, oldest_seconds = await scene.ledger.outbox.backlog()

    assert empty == (0, 0.0)
    assert rows == 2
    assert 60 <= oldest_seconds < 70


class Looking(Relay):
    """Counts how often it has looked for starts."""

    looks = 0

    async def start_once(self) -> int:
        """As the relay does."""
        delivered = await super().start_once()
        self.looks += 1
        return delivered


async def test_a_start_on_disk_only_after_the_look_that_a_notify_caused_is_not_left_to_the_poll(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relays, "POLL_SECONDS", 3600.0)
    monkeypatch.setattr(relays, "ECHOES_SECONDS", (1.0,))
    delivery = ScriptedDelivery()
    looking = Looking(scene.ledger, delivery, Failpoints())

    async def looked(times: int) -> bool:
        return looking.looks >= times

    async def taken() -> list[str]:
        return delivery.taken

    running = asyncio.create_task(looking.run())
    await eventually(lambda: looked(1), "the first look")
    looking.wake()
    await eventually(lambda: looked(2), "the look for the neighbour")

    job = await scene.accept()

    assert await eventually(taken, "the start") == [job.id]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
