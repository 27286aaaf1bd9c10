"""People at the console, in a real Chromium, over the whole stack."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from agentjobs.domain.states import JobState
from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.info import StackInfo
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.stack import Stack
from agentjobs.tools.tickets import TICKETS_CREATE
from tests.console.browser import PATIENCE_MILLISECONDS, chromium, signed_in
from tests.e2e.conftest import options_for, started
from tests.world import eventually

pytestmark = pytest.mark.e2e

HOSTILE = """<img src=x onerror="alert(1)"><script>alert(2)</script> printer 'on' fire"""
PHONE = {"width": 360, "height": 740}

expect.set_options(timeout=PATIENCE_MILLISECONDS)


@dataclass
class Installation:
    """A running stack. Its tracker fails until the first test mends it, so that this one surely sees a wait."""

    stack: Stack
    ledger: Ledger
    is_mended: bool = False

    @property
    def info(self) -> StackInfo:
        """Where everything is."""
        return self.stack.info

    async def mend(self) -> None:
        """From now on tickets can be made: a worker that is started again has no failpoint."""
        if not self.is_mended:
            await self.stack.kill("worker-1")
        self.is_mended = True

    async def key(self, user: str, *roles: Role, tenant: str = "dev") -> str:
        """A new key."""
        await self.ledger.identity.create_tenant(tenant)
        plain, _ = await self.ledger.identity.create_key(tenant, user, frozenset(roles))
        return plain

    async def submit(self, key: str, text: str) -> str:
        """A job; its id."""
        async with httpx.AsyncClient(base_url=self.info.api, trust_env=False) as client:
            answer = await client.post(
                "/v1/jobs", json={"input": {"text": text}}, headers={"Authorization": f"Bearer {key}"}
            )
        job_id: str = answer.json()["id"]
        return job_id

    async def until(self, job_id: str, state: JobState) -> None:
        """Until the job is in this state."""

        async def look() -> bool:
            job = await self.ledger.jobs.read("dev", job_id)
            return job is not None and job.state is state

        await eventually(look, f"job {job_id} to be {state}", lambda: asyncio.sleep(0.1))

    async def dead(self, user: str, text: str = "No grant yet") -> str:
        """A job that died since its user may not create tickets; its id."""
        job_id = await self.submit(await self.key(user, Role.SUBMIT), text)
        await self.until(job_id, JobState.DEAD)
        return job_id

    async def grant(self, user: str) -> None:
        """Let the user create tickets."""
        await self.ledger.identity.add_grant("dev", user, TICKETS_CREATE, granted_by="test")


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    home = tmp_path_factory.mktemp("console")
    async with started(options_for(home, AGENTJOBS_FAILPOINTS="tool.in_transaction=raise")) as running:
        ledger = await Ledger.open(running.info.database, size=3, application_name="tests")
        yield Installation(running, ledger)
        await ledger.close()
    EmbeddedPostgres(home, 1).remove()


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    if shutil.which("chromium") is None and "CI" not in os.environ:
        pytest.skip("no chromium on the PATH: apt-get install chromium")
    async with chromium() as opened:
        yield opened


@pytest.fixture
async def desk(stack: Installation, browser: Browser) -> AsyncIterator[Page]:
    """A tab of somebody with every role."""
    async with signed_in(browser, stack.info.api, stack.info.admin_key) as page:
        yield page


async def mark(page: Page) -> None:
    """From now on a load of the page would be noticed."""
    await page.evaluate("window.isTheSame = true")


async def is_the_same(page: Page) -> bool:
    """Whether the page was not loaded since."""
    return bool(await page.evaluate("window.isTheSame === true"))


async def test_a_job_is_watched_from_a_wait_to_its_ticket(stack: Installation, desk: Page) -> None:
    await desk.goto(f"{stack.info.console}jobs")
    await mark(desk)
    job_id = await stack.submit(stack.info.api_key, "I was charged twice in May")
    await desk.locator(f'a[title="{job_id}"]').click()
    await mark(desk)

    await expect(desk.locator(".banner.retry_wait")).to_contain_text("The next one begins")
    await expect(desk.locator("#headline")).to_contain_text("retry wait")
    await stack.mend()
    await expect(desk.locator("#headline")).to_contain_text("succeeded")

    await expect(desk.locator("#effects")).to_contain_text("T-")
    await expect(desk.locator("#answer")).to_contain_text("T-")
    await expect(desk.locator("#timeline")).to_contain_text("attempt 2")
    await expect(desk.locator(".banner")).to_have_count(0)
    assert await is_the_same(desk)


async def test_a_dead_job_is_redriven_and_recovers(stack: Installation, desk: Page) -> None:
    await stack.mend()
    job_id = await stack.dead("temp")
    await stack.grant("temp")
    await desk.goto(f"{stack.info.console}dead")

    await desk.locator(f'a[title="{job_id}"]').click()
    await desk.get_by_text("Redrive…").click()
    await desk.get_by_label("Why").first.fill("the grant is in place now")
    await desk.get_by_role("button", name="Redrive", exact=True).click()

    await expect(desk.locator(".notice")).to_contain_text("The redrive is on its way.")
    await expect(desk.locator("#headline")).to_contain_text("redriven")
    await expect(desk.locator("#decide")).to_contain_text("the grant is in place now")
    await expect(desk.locator("#deaths")).to_contain_text("recovered")
    await desk.get_by_role("link", name="Its job").click()
    await expect(desk.locator("#headline")).to_contain_text("succeeded")


async def test_a_canary_stops_a_bulk_redrive(stack: Installation, desk: Page) -> None:
    letters = [await stack.dead("nobody") for _ in range(3)]
    await desk.goto(f"{stack.info.console}dead?reason=access_denied")

    await desk.get_by_role("link", name="Redrive these…").click()
    await desk.get_by_role("button", name="Try it out").click()
    await expect(desk.get_by_role("heading", name="3 letters")).to_be_visible()
    await desk.get_by_label("Why").fill("I believe that it is mended")
    await desk.get_by_role("button", name="Start the bulk redrive").click()
    await mark(desk)

    await expect(desk.locator(".banner.dead")).to_contain_text("a letter of the canary died again")
    await expect(desk.locator("#headline")).to_contain_text("stopped")
    await expect(desk.locator(".tile.died_again .count")).to_have_text("1")
    await expect(desk.locator(".tile.waiting .count")).to_have_text("2")
    assert await is_the_same(desk)
    untouched = [await stack.ledger.dead_letters.read("dev", job_id) for job_id in letters]
    assert sorted(letter.generation for letter in untouched if letter) == [1, 1, 2]


async def test_what_a_request_says_does_nothing_in_a_browser(stack: Installation, desk: Page) -> None:
    job_id = await stack.dead("mallory", HOSTILE)

    for path in (f"jobs/{job_id}", "dead", f"dead/{job_id}", f"dead/{job_id}?show=request"):
        await desk.goto(f"{stack.info.console}{path}")

    await expect(desk.locator(".written").first).to_have_text(HOSTILE)
    assert await desk.locator("img").count() == 1  # the mark in the corner


async def test_a_tenant_sees_nothing_of_another(stack: Installation, browser: Browser) -> None:
    job_id = await stack.submit(stack.info.api_key, "Mine alone")
    key = await stack.key("gus", *Role, tenant="globex")

    async with signed_in(browser, stack.info.api, key) as page:
        await expect(page.locator("#no-jobs")).to_contain_text("There is no job yet.")
        await page.goto(f"{stack.info.console}jobs/{job_id}")
        await expect(page.get_by_role("heading")).to_contain_text("Not found")
        assert job_id not in await page.content()


async def test_counts_move_by_themselves(stack: Installation, desk: Page) -> None:
    await stack.mend()
    count = desk.locator(".tile.succeeded .count")
    before = int(await count.inner_text())
    await mark(desk)

    await stack.submit(stack.info.api_key, "Another one")

    await expect(count).to_have_text(str(before + 1))
    await expect(desk.locator(".live-mark")).to_have_text("live")
    assert await is_the_same(desk)


async def test_a_form_that_is_being_filled_in_stays_while_the_page_goes_on(
    stack: Installation, desk: Page
) -> None:
    job_id = await stack.dead("slow")
    await desk.goto(f"{stack.info.console}dead/{job_id}")
    await desk.get_by_text("Redrive…").click()
    note = desk.get_by_label("Why").first
    await note.fill("I am still writ")

    await stack.ledger.dead_letters.request("discard", "dev", job_id, actor="ben", note="mine", payload={})

    await expect(desk.locator("#headline")).to_contain_text("discard")
    await expect(note).to_have_value("I am still writ")
    await expect(note).to_be_focused()


async def test_everything_is_reached_from_the_keyboard(stack: Installation, desk: Page) -> None:
    await desk.goto(f"{stack.info.console}jobs")

    await desk.keyboard.press("Tab")
    await expect(desk.get_by_role("link", name="Skip to the content")).to_be_focused()
    await desk.keyboard.press("Enter")
    await expect(desk.locator("main")).to_be_focused()
    await desk.keyboard.press("Tab")
    await expect(desk.get_by_label("State")).to_be_focused()
    for _ in range(3):
        await desk.keyboard.press("Tab")
    focused = desk.locator("tbody a").first
    await expect(focused).to_be_focused()
    await stack.submit(stack.info.api_key, "One more, and the list is drawn anew")
    await expect(desk.locator("tbody tr").first).to_contain_text("succeeded")
    assert await desk.evaluate("document.activeElement.localName") == "a"  # focus is where it was
    await desk.keyboard.press("Enter")
    await expect(desk.get_by_role("heading", level=1)).to_contain_text("Job")


async def test_no_page_is_wider_than_a_phone(stack: Installation, browser: Browser) -> None:
    letter = await stack.dead("phone")
    desk = ("dead", f"dead/{letter}", "dead/report", "redrives")
    paths = ("", "jobs", f"jobs/{letter}", *desk, "usage", "audit", "admin", "admin/webhooks", "admin/erasures")

    async with signed_in(browser, stack.info.api, stack.info.admin_key, viewport=PHONE) as page:
        too_wide = {}
        for path in paths:
            await page.goto(f"{stack.info.console}{path}")
            too_wide[path] = await page.evaluate("document.documentElement.scrollWidth - innerWidth")

    assert too_wide == dict.fromkeys(paths, 0)


async def test_without_scripts_everything_works_by_links_and_forms(stack: Installation, browser: Browser) -> None:
    job_id = await stack.dead("plain")

    async with signed_in(browser, stack.info.api, stack.info.admin_key, java_script_enabled=False) as page:
        await page.get_by_role("link", name="Dead letters").first.click()
        await page.locator(f'a[title="{job_id}"]').click()
        await page.get_by_text("Discard…").click()
        await page.get_by_label("Why").last.fill("sent by mistake")
        await page.get_by_role("button", name="Discard").click()
        await expect(page.locator(".notice")).to_contain_text("The job is being given up.")
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()

    await stack.until(job_id, JobState.DISCARDED)
