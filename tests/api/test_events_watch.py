"""`starter.py watch` against the real API: by the stream, over a restart of the API."""

import asyncio
import re
from pathlib import Path

from typer.testing import CliRunner, Result

from agentjobs.domain.states import JobState
from agentjobs.stack.postgres import EmbeddedPostgres
from starter import app
from tests.api.event_source import serving
from tests.api.front import Front
from tests.ledger.scene import CREATE_TICKET
from tests.world import eventually


def watch(url: str, key: str, home: Path, job_id: str) -> Result:
    environment = {"AGENTJOBS_API": url, "AGENTJOBS_API_KEY": key, "AGENTJOBS_HOME": str(home)}
    return CliRunner().invoke(app, ["watch", job_id], env=environment)


async def test_watch_shows_each_event_also_over_streams_that_are_ended(
    front: Front, postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    scene, key = front.scene, front.keys["ann"]
    job_id = await scene.running()
    dsn = postgres.dsn(await front.ledger.database.pool.fetchval("SELECT current_database()"))
    async with serving(front.ledger, dsn) as served:
        feed = served.app.state.event_feed

        async def waits() -> bool:
            return bool(feed.waiting_count == 1)

        watching = asyncio.create_task(asyncio.to_thread(watch, served.url, key, tmp_path, job_id))
        await eventually(waits, "the stream to wait")
        attempt = await scene.begin_attempt(job_id)
        await scene.fail(attempt, release=True, wait_seconds=5)
        await eventually(waits, "the stream to wait again")
        for task in list(served.app.state.streams._tasks):
            task.cancel()  # as at the age limit
        await scene.done(job_id, CREATE_TICKET, {"ticket": "T-1"}, attempt=2)
        await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
        result = await watching

    # The API's own log is there too, in another form.
    kinds = [line.split()[1] for line in result.stdout.splitlines() if re.match(r"20\d\d-\d\d-\d\dT\S+Z  ", line)]
    assert (result.exit_code, result.stderr) == (0, "")
    assert kinds[-4:] == ["retry_scheduled", "attempt_started", "step_completed", "succeeded"]
