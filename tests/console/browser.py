"""A real Chromium: Debian's package, since nothing is downloaded at run time. It reaches 127.0.0.1 only."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    async_playwright,
)

_FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
PATIENCE_MILLISECONDS = 30_000


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser without a window."""
    program = shutil.which("chromium")
    assert program, "no chromium here: apt-get install chromium"
    as_root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=[*_FLAGS, *as_root])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def signed_in(browser: Browser, url: str, key: str, **options: Any) -> AsyncIterator[Page]:
    """A tab of a browser of its own, signed in. What the page complains of fails the test."""
    context = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    complaints = watched(context)
    try:
        page = await context.new_page()
        await page.goto(f"{url}/console/")
        await page.get_by_label("API key").fill(key)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("heading", name="Overview").wait_for()
        yield page
        assert complaints == []
    finally:
        await context.close()


def watched(context: BrowserContext) -> list[str]:
    """What goes wrong in its tabs: errors of scripts, what the policy forbids, and requests to other hosts."""
    complaints: list[str] = []

    def on_page(page: Page) -> None:
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))

    def on_console(said: ConsoleMessage) -> None:
        # Of a page that is refused Chromium complains too; of other things that are, on_response does.
        if said.type == "error" and not said.text.startswith("Failed to load resource"):
            complaints.append(said.text)

    def on_response(answer: Response) -> None:
        if answer.status >= 400 and answer.request.resource_type != "document":
            complaints.append(f"{answer.status} for {answer.url}")

    def on_request(sent: Request) -> None:
        if "//127.0.0.1:" not in sent.url:
            complaints.append(f"request to {sent.url}")

    context.on("page", on_page)
    context.on("console", on_console)
    context.on("response", on_response)
    context.on("request", on_request)
    return complaints
