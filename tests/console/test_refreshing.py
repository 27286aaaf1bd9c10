"""What the script asks for: the same page again, and a word when something happens."""

from datetime import timedelta

import httpx

from agentjobs.console.app import mount
from agentjobs.domain.states import JobState
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.api.event_source import EventSource, serving
from tests.console.visitors import Clock, Console

PATIENCE_SECONDS = 20


async def test_a_page_as_it_was_is_not_sent_again(console: Console, clock: Clock) -> None:
    await console.scene.accept()
    rita = await console.visitor("rita")
    tag = (await rita.client.get("/console/jobs")).headers["etag"]

    same = await rita.client.get("/console/jobs", headers={"If-None-Match": tag})
    clock.move(timedelta(minutes=5))
    later = await rita.client.get("/console/jobs", headers={"If-None-Match": tag})

    assert (same.status_code, same.content) == (304, b"")
    assert later.status_code == 200
    assert "minutes ago" in later.text


async def test_the_script_is_told_that_its_session_is_over(console: Console) -> None:
    answer = await console.stranger().client.get("/console/jobs", headers={"X-Refresh": "1"})

    assert answer.status_code == 401


async def test_files_have_lasting_addresses_that_change_with_them(console: Console) -> None:
    stranger = console.stranger()
    html = (await stranger.see("sign-in")).html
    address = html.partition('<script src="')[2].partition('"')[0]

    now = await stranger.client.get(address)
    other = await stranger.client.get(address.replace("/static/", "/static/0"))

    assert now.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in now.headers["cache-control"]
    assert other.headers["cache-control"] == "no-store"


async def test_a_job_is_followed_with_the_session_alone(console: Console, postgres: EmbeddedPostgres) -> None:
    job_id = await console.scene.running()
    name = await console.ledger.database.pool.fetchval("SELECT current_database()")

    async with serving(console.ledger, postgres.dsn(name)) as served:
        mount(served.app)
        async with httpx.AsyncClient(base_url=served.url, timeout=PATIENCE_SECONDS, verify=False) as client:
            signed = await client.post(
                "/console/sign-in", data={"key": console.keys["ann"]}, headers={"Origin": served.url}
            )
            async with client.stream("GET", f"/console/jobs/{job_id}/stream") as response:
                source = EventSource(response)
                first = await source.next()
                await console.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
                rest = await source.rest()
            again = await client.get(
                f"/console/jobs/{job_id}/stream", headers={"Last-Event-ID": rest[-1].id or ""}
            )

    assert signed.status_code == 303
    assert (first.event, rest[-1].event) == ("snapshot", "succeeded")
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert again.status_code == 204
