"""A delivery on its way: sent under one id until it has arrived or was given up, however often somebody dies."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import SecretStr
from standardwebhooks import WebhookVerificationError

from agentjobs.domain.states import JobState
from agentjobs.domain.webhooks import (
    ATTEMPTS,
    FAILED_DELIVERIES,
    RETRY_SECONDS,
    DisabledBecause,
    EventType,
    Miss,
    WebhookState,
)
from agentjobs.outbox.webhook_deliveries import EACH_AT_ONCE, LEASE_SECONDS
from tests.alerts.receiver import Received, Receiver, receiving
from tests.ports import free_port
from tests.webhooks.hooks import OTHER_SECRET, SECRET, Hooks, verified
from tests.world import eventually

NEVER = 3600


async def test_a_death_arrives_signed_and_thin(hooks: Hooks, receiver: Receiver) -> None:
    webhook = await hooks.add(receiver.url)
    job_id = await hooks.scene.dead()

    tried = await hooks.lane.run_once()

    (received,) = receiver.received
    delivery = await hooks.only(webhook)
    assert tried == 1
    assert verified(received) == {
        "type": "job.dead",
        "timestamp": delivery.created_at.isoformat(),
        "data": {
            "id": job_id,
            "state": "dead",
            "agent": "support-triage",
            "generation": 1,
            "reason": "access_denied",
            "links": {
                "job": f"https://jobs.example.org/v1/jobs/{job_id}",
                "dead_letter": f"https://jobs.example.org/v1/dead-letters/{job_id}",
            },
        },
    }
    assert received.id == delivery.id
    assert len(received.body) < 1_000
    assert (delivery.state, delivery.attempts, delivery.last_status) == (WebhookState.DELIVERED, 1, 204)
    assert await hooks.lane.run_once() == 0


async def test_another_secret_and_a_changed_body_are_not_verified(hooks: Hooks, receiver: Receiver) -> None:
    await hooks.add(receiver.url)
    await hooks.scene.dead()
    await hooks.lane.run_once()
    (received,) = receiver.received

    changed = Received(received.head, received.headers, received.body.replace(b"dead", b"fine"))

    for secret, message in ((OTHER_SECRET, received), ("whsec_" + "QUFB" * 8, changed)):
        with pytest.raises(WebhookVerificationError):
            verified(message, secret)


async def test_it_is_tried_by_the_schedule_under_one_id_and_then_has_failed(
    hooks: Hooks, receiver: Receiver
) -> None:
    receiver.status = 500
    webhook = await hooks.add(receiver.url)
    await hooks.scene.dead()

    waits = [await hooks.attempt() for _ in range(ATTEMPTS)]
    after_the_end = await hooks.lane.run_once()

    failed = await hooks.only(webhook)
    for wait, scheduled in zip(waits, RETRY_SECONDS, strict=False):
        assert wait == pytest.approx(scheduled, abs=5)
    assert (waits[-1], after_the_end) == (None, 0)
    assert {received.id for received in receiver.received} == {failed.id}
    assert len(receiver.received) == ATTEMPTS
    assert (failed.state, failed.attempts, failed.last_status) == (WebhookState.FAILED, ATTEMPTS, 500)
    assert failed.last_error is Miss.REFUSED


@pytest.mark.parametrize(("chance", "expected"), [(0.0, 4.0), (0.999, 6.0)])
async def test_waits_are_spread(hooks: Hooks, receiver: Receiver, chance: float, expected: float) -> None:
    receiver.status = 500
    hooks.chance = chance
    await hooks.add(receiver.url)
    await hooks.scene.dead()

    assert await hooks.attempt() == pytest.approx(expected, abs=0.5)


async def test_what_is_not_due_is_not_sent(hooks: Hooks, receiver: Receiver) -> None:
    receiver.status = 500
    await hooks.add(receiver.url)
    await hooks.scene.dead()
    await hooks.lane.run_once()

    assert await hooks.lane.run_once() == 0
    assert len(receiver.received) == 1


async def test_a_relay_that_dies_before_it_says_so_sends_it_again_and_it_is_delivered_once(
    hooks: Hooks, receiver: Receiver
) -> None:
    webhook = await hooks.add(receiver.url)
    await hooks.scene.dead()
    arrived = asyncio.Event()

    async def dies(_: Received) -> None:
        arrived.set()
        await asyncio.sleep(NEVER)

    receiver.before = dies
    dying = asyncio.create_task(hooks.lane.run_once())
    await arrived.wait()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    receiver.before = None

    held = await hooks.another_lane().run_once()
    lease = (await hooks.only(webhook)).next_attempt_at
    await hooks.attempt()

    delivery = await hooks.only(webhook)
    assert held == 0
    assert lease is not None
    assert timedelta(0) < lease - datetime.now(UTC) <= timedelta(seconds=LEASE_SECONDS)
    assert [received.id for received in receiver.received] == [delivery.id, delivery.id]
    assert (delivery.state, delivery.attempts) == (WebhookState.DELIVERED, 2)


async def test_a_late_word_of_a_lost_attempt_changes_nothing_unless_it_arrived(
    hooks: Hooks, receiver: Receiver
) -> None:
    webhook = await hooks.add(receiver.url)
    await hooks.scene.dead()
    ledger = hooks.scene.ledger.webhook_deliveries
    (first,) = await ledger.claim(10, each=3, busy={}, lease_seconds=0)
    (second,) = await ledger.claim(10, each=3, busy={}, lease_seconds=60)
    missed = {"error": Miss.UNREACHABLE, "status": None, "throttle_seconds": 0.0, "is_gone": False}

    await ledger.not_delivered(first, wait_seconds=None, **missed)  # type: ignore[arg-type]
    after_a_failure = (await hooks.only(webhook)).state
    await ledger.delivered(first, status=200)
    await ledger.not_delivered(second, wait_seconds=5.0, **missed)  # type: ignore[arg-type]

    assert after_a_failure is WebhookState.WAITING
    assert (await hooks.only(webhook)).state is WebhookState.DELIVERED


async def test_two_relays_at_once_send_each_once(hooks: Hooks, receiver: Receiver) -> None:
    for _ in range(3):
        await hooks.add(receiver.url)
    for _ in range(4):
        await hooks.scene.dead()
    lanes = [hooks.lane, hooks.another_lane()]

    rounds = [await asyncio.gather(*(lane.run_once() for lane in lanes)) for _ in range(3)]

    ids = [received.id for received in receiver.received]
    assert sum(map(sum, rounds)) == len(ids) == len(set(ids)) == 12


async def test_a_slow_receiver_keeps_its_own_places_and_delays_no_other(hooks: Hooks, receiver: Receiver) -> None:
    async with receiving() as slow:
        slow.before = lambda _: asyncio.sleep(NEVER)
        stuck = await hooks.add(slow.url)
        await hooks.add(receiver.url)
        for _ in range(EACH_AT_ONCE + 2):
            await hooks.scene.dead()
        running = asyncio.create_task(hooks.lane.run())

        async def all_arrived() -> bool:
            return len(receiver.received) == EACH_AT_ONCE + 2

        await eventually(all_arrived, "everything to arrive at the other one")
        held = [delivery.attempts for delivery in await hooks.deliveries(stuck)]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert (len(slow.received), sum(held)) == (EACH_AT_ONCE, EACH_AT_ONCE)


async def test_410_disables_the_webhook_and_drops_what_waits(hooks: Hooks, receiver: Receiver) -> None:
    webhook = await hooks.add(receiver.url)
    for _ in range(5):
        await hooks.scene.dead()
    receiver.status = 410

    await hooks.lane.run_once()
    await hooks.scene.dead()
    later = await hooks.lane.run_once()

    gone = await hooks.read(webhook)
    deliveries = await hooks.deliveries(webhook)
    assert gone.disabled_because is DisabledBecause.GONE
    assert (later, len(deliveries), len(receiver.received)) == (0, 5, EACH_AT_ONCE)
    assert {delivery.state for delivery in deliveries} == {WebhookState.FAILED}
    assert {delivery.last_error for delivery in deliveries} <= {Miss.REFUSED, Miss.WEBHOOK_DISABLED}
    assert ("relay", "disable_webhook", {"because": "gone"}) in await hooks.audited()


async def test_an_enabled_webhook_is_told_of_what_happens_from_then_on(hooks: Hooks, receiver: Receiver) -> None:
    webhook = await hooks.add(receiver.url)
    await hooks.scene.ledger.webhooks.disable(webhook.id, DisabledBecause.GONE)
    await hooks.scene.dead()

    enabled = await hooks.scene.ledger.webhooks.enable("acme", webhook.id, actor="adam")
    await hooks.scene.dead()
    await hooks.lane.run_once()

    assert enabled is not None
    assert (enabled.disabled_at, enabled.disabled_because) == (None, None)
    assert len(receiver.received) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_retry_after_holds_back_everything_for_the_webhook(
    hooks: Hooks, receiver: Receiver, status: int
) -> None:
    webhook = await hooks.add(receiver.url)
    await hooks.scene.dead()
    receiver.status, receiver.headers = status, {"Retry-After": "120"}

    await hooks.lane.run_once()
    await hooks.scene.dead()
    held = await hooks.lane.run_once()
    receiver.status, receiver.headers = 204, {}
    await hooks.scene.execute("UPDATE webhooks SET throttled_until = now()")
    after = await hooks.lane.run_once()

    first, second = await hooks.deliveries(webhook)
    assert (held, after) == (0, 1)
    assert (first.attempts, second.state) == (1, WebhookState.DELIVERED)
    assert first.next_attempt_at is not None
    assert first.next_attempt_at - first.created_at > timedelta(seconds=119)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("60", 60), ("0", 5), ("-5", 5), ("soon", 5), ("999999999", 86_400), ("nan", 5), ("inf", 86_400)],
)
async def test_retry_after_is_read_with_care(
    hooks: Hooks, receiver: Receiver, asked: str, expected: float
) -> None:
    await hooks.add(receiver.url)
    await hooks.scene.dead()
    receiver.status, receiver.headers = 429, {"Retry-After": asked}

    assert await hooks.attempt() == pytest.approx(expected, abs=2)


async def test_retry_after_may_be_a_date(hooks: Hooks, receiver: Receiver) -> None:
    await hooks.add(receiver.url)
    await hooks.scene.dead()
    now = datetime.now(UTC)
    until = format_datetime(now + timedelta(minutes=3), usegmt=True)
    receiver.status = 503
    receiver.headers = {"Retry-After": until, "Date": format_datetime(now, usegmt=True)}

    assert await hooks.attempt() == pytest.approx(180, abs=2)


async def test_a_webhook_that_fails_for_days_is_disabled_and_one_that_recovers_is_not(
    hooks: Hooks, receiver: Receiver
) -> None:
    receiver.status = 500
    webhook = await hooks.add(receiver.url)
    recovers = await hooks.add(receiver.url)
    for one, count in ((webhook, FAILED_DELIVERIES - 1), (recovers, FAILED_DELIVERIES)):
        await hooks.scene.execute(
            "UPDATE webhooks SET failing_since = now() - interval '6 days', failed_count = $2 WHERE id = $1",
            one.id,
            count,
        )
    await hooks.scene.dead()
    await hooks.scene.execute("UPDATE webhook_deliveries SET attempts = $1 WHERE webhook_id = $2", 9, webhook.id)
    await hooks.scene.execute(
        "UPDATE webhook_deliveries SET next_attempt_at = now() + interval '1 h' WHERE webhook_id = $1", recovers.id
    )

    await hooks.lane.run_once()
    receiver.status = 204
    await hooks.attempt()

    failing, well = await hooks.read(webhook), await hooks.read(recovers)
    assert failing.disabled_because is DisabledBecause.FAILING
    assert ("relay", "disable_webhook", {"because": "failing"}) in await hooks.audited()
    assert (well.disabled_at, well.failing_since, well.failed_count) == (None, None, 0)


async def test_many_failed_deliveries_of_one_day_disable_nothing(hooks: Hooks, receiver: Receiver) -> None:
    receiver.status = 500
    webhook = await hooks.add(receiver.url)
    await hooks.scene.execute("UPDATE webhooks SET failing_since = now(), failed_count = $1", 1_000)
    await hooks.scene.dead()
    await hooks.scene.execute("UPDATE webhook_deliveries SET attempts = $1", 9)

    await hooks.lane.run_once()

    assert (await hooks.only(webhook)).state is WebhookState.FAILED
    assert (await hooks.read(webhook)).disabled_at is None


@pytest.mark.parametrize("state", [WebhookState.DELIVERED, WebhookState.FAILED])
async def test_a_replay_has_the_same_id_and_begins_the_schedule_anew(
    hooks: Hooks, receiver: Receiver, state: WebhookState
) -> None:
    webhook = await hooks.add(receiver.url)
    await hooks.scene.dead()
    receiver.status = 204 if state is WebhookState.DELIVERED else 500
    for _ in range(ATTEMPTS):
        await hooks.attempt()
    before = await hooks.only(webhook)
    deliveries = hooks.scene.ledger.webhook_deliveries

    replayed = await deliveries.replay("acme", webhook.id, before.id, actor="adam")
    receiver.status = 500
    wait = await hooks.attempt()
    receiver.status = 204
    await hooks.attempt()

    after = await hooks.only(webhook)
    assert replayed is not None
    assert (before.state, replayed.state, after.state) == (state, WebhookState.WAITING, WebhookState.DELIVERED)
    assert wait == pytest.approx(5, abs=2)
    assert after.attempts == before.attempts + 2
    assert {received.id for received in receiver.received} == {before.id}
    assert ("adam", "replay_webhook_delivery", {"delivery": before.id}) in await hooks.audited()


async def test_during_a_rotation_both_secrets_verify_and_after_it_the_new_one(
    hooks: Hooks, receiver: Receiver
) -> None:
    webhook = await hooks.add(receiver.url)
    ledger = hooks.scene.ledger.webhooks
    await ledger.rotate_secret("acme", webhook.id, SecretStr(OTHER_SECRET), overlap_seconds=60, actor="adam")
    await hooks.scene.dead()
    await hooks.lane.run_once()
    await hooks.scene.execute("UPDATE webhooks SET old_secret_until = now()")
    await hooks.scene.dead()
    await hooks.lane.run_once()

    during, after = receiver.received
    for secret in (SECRET, OTHER_SECRET):
        assert verified(during, secret)["type"] == "job.dead"
    assert verified(after, OTHER_SECRET)["type"] == "job.dead"
    with pytest.raises(WebhookVerificationError):
        verified(after, SECRET)


async def test_who_is_unreachable_or_forbidden_is_told_apart_by_nobody(hooks: Hooks) -> None:
    webhooks = [
        await hooks.add(url)
        for url in (
            f"http://127.0.0.1:{free_port()}/",
            "https://169.254.169.254/",
            "https://nobody.invalid/",
            "http://8.8.8.8/",
        )
    ]
    await hooks.scene.dead()

    await hooks.lane.run_once()

    seen = {(one.last_error, one.last_status, one.attempts) for w in webhooks for one in await hooks.deliveries(w)}
    assert seen == {(Miss.UNREACHABLE, None, 1)}


async def test_removing_a_webhook_drops_what_waits_also_while_it_is_sent(hooks: Hooks, receiver: Receiver) -> None:
    webhook = await hooks.add(receiver.url)
    for _ in range(EACH_AT_ONCE + 1):
        await hooks.scene.dead()

    async def removed(_: Received) -> None:
        await hooks.scene.ledger.webhooks.remove("acme", webhook.id, actor="adam")

    receiver.before = removed
    await hooks.lane.run_once()

    assert await hooks.lane.run_once() == 0
    assert await hooks.scene.count("webhook_deliveries") == 0
    assert ("adam", "remove_webhook", {}) in await hooks.audited()


async def test_deliveries_that_are_over_are_pruned_after_their_time(hooks: Hooks, receiver: Receiver) -> None:
    webhook = await hooks.add(receiver.url, EventType.DEAD)
    deliveries = hooks.scene.ledger.webhook_deliveries
    for _ in range(3):
        await hooks.scene.dead()
    await hooks.lane.run_once()
    await hooks.scene.dead()
    await hooks.scene.execute("UPDATE webhook_deliveries SET created_at = now() - interval '31 days'")
    await hooks.scene.execute("UPDATE webhooks SET old_secret = 's', old_secret_until = now()")

    pruned = [await deliveries.prune(limit=2) for _ in range(3)]

    assert pruned == [2, 1, 0]
    assert (await hooks.only(webhook)).state is WebhookState.WAITING
    assert await hooks.scene.rows("SELECT old_secret FROM webhooks") == [{"old_secret": None}]


async def test_a_database_that_is_away_stops_no_lane(hooks: Hooks, receiver: Receiver) -> None:
    await hooks.add(receiver.url)
    await hooks.scene.dead()
    await hooks.scene.execute("ALTER TABLE webhook_deliveries RENAME TO elsewhere")
    try:
        while_away = await hooks.lane.run_once()
    finally:
        await hooks.scene.execute("ALTER TABLE elsewhere RENAME TO webhook_deliveries")

    assert (while_away, await hooks.lane.run_once()) == (0, 1)


async def test_a_finished_job_is_told_as_such(hooks: Hooks, receiver: Receiver) -> None:
    await hooks.add(receiver.url)
    job_id = (await hooks.scene.accept()).id
    await hooks.scene.move(job_id, JobState.CANCELLED)

    await hooks.lane.run_once()

    told = verified(receiver.received[0])
    assert (told["type"], told["data"]["state"]) == ("job.cancelled", "cancelled")
    assert told["data"]["links"] == {"job": f"https://jobs.example.org/v1/jobs/{job_id}"}
