"""The watchdog as it runs: looks that fail hold up no others, and do not fill the log."""

import asyncio
from collections import Counter

import pytest
import structlog
from temporalio.client import Client

from agentjobs.domain.states import JobState
from agentjobs.outbox import watchdog
from agentjobs.outbox.watchdog import Watchdog
from tests.world import World, eventually


async def test_looks_that_fail_are_told_once_and_the_others_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "LOOK_SECONDS", 0.01)
    elsewhere = await Client.connect(world.client.service_client.config.target_host, namespace="nowhere")
    looks_made = Counter[str]()
    window = world.ledger.comparing.live_window

    async def counted(*given: object, **options: object) -> object:
        looks_made["unmoved_jobs"] += 1
        return await window(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(world.ledger.comparing, "live_window", counted)
    job_id = await world.submit()
    await world.ledger.database.pool.execute(
        "UPDATE jobs SET dispatched_at = now() - interval '1 hour', updated_at = now() - interval '1 hour'"
    )

    with structlog.testing.capture_logs() as logs:
        running = asyncio.create_task(Watchdog(world.ledger, elsewhere, world.tenant).run())

        async def looked_often() -> bool:
            return looks_made["unmoved_jobs"] > 5

        await eventually(looked_often, "some looks")
        still_alive = (await world.job(job_id)).state
        await world.ledger.database.pool.execute(
            "UPDATE jobs SET deadline_at = now() - interval '1 hour', updated_at = now() - interval '1 hour'"
        )
        await world.until(job_id, JobState.DEAD)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    told = Counter(entry["look"] for entry in logs if entry["event"] == "watch_failed")
    assert still_alive is JobState.PENDING  # nothing was concluded from the errors
    assert told["unmoved_jobs"] == 1
    assert set(told.values()) == {1}
    assert "overdue_jobs" not in told
