"""`python -m tests.console.screenshots DIR`: some pages as pictures, over data made for it.

With `--all` each page, on a wide screen and on a phone, light and dark.
"""

import asyncio
import itertools
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import FloatRect, Page, ViewportSize

from agentjobs.console.app import mount
from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.migrate import migrate
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.api.event_source import Served, serving
from tests.console.browser import chromium, signed_in
from tests.console.scenery import Scenery
from tests.ledger.scene import Scene
from tests.ports import free_port

SIZES: dict[str, ViewportSize] = {"wide": {"width": 1160, "height": 760}, "phone": {"width": 390, "height": 844}}
SCHEMES = ("light", "dark")
TALLEST = 880
"""Of the chosen ones, in pixels: what lies below is cut off."""

CHOSEN = {
    ("overview", "wide", "light"),
    ("job", "wide", "light"),
    ("dead-letter", "wide", "light"),
    ("report", "wide", "dark"),
    ("redrive", "wide", "light"),
    ("overview", "phone", "dark"),
}
"""For the README, and for whoever reads about the console."""


@asynccontextmanager
async def prepared(folder: Path) -> AsyncIterator[tuple[Served, str, dict[str, str]]]:
    """A server with something to look at: it, a key, and ids by name."""
    postgres = EmbeddedPostgres(folder, free_port(), durable=False)
    await postgres.start("console")
    try:
        await migrate(postgres.dsn("console"))
        ledger = await Ledger.open(postgres.dsn("console"), size=8, application_name="screenshots")
        scene = await Scene.set_up(ledger)
        await ledger.budgets.set(scene.tenant, tokens=2_000_000, usd=None, actor="adam")
        key, _ = await ledger.identity.create_key(scene.tenant, "rita", frozenset(Role))
        shown = await Scenery(scene).put_up() | await Scenery(scene).administered()
        async with serving(ledger, postgres.dsn("console")) as served:
            mount(served.app)
            yield served, key, shown
        await ledger.close()
    finally:
        await postgres.stop()
        postgres.remove()


def pages_of(shown: dict[str, str]) -> dict[str, str]:
    """Where each page is, by its name."""
    return {
        "overview": "",
        "jobs": "jobs",
        "job": f"jobs/{shown['succeeded']}",
        "job-waiting": f"jobs/{shown['retry_wait']}",
        "job-writing": f"jobs/{shown['running']}",
        "job-approval": f"jobs/{shown['approval']}",
        "dead": "dead",
        "dead-letter": f"dead/{shown['dead']}",
        "report": "dead/report",
        "redrives": "redrives",
        "redrive": f"redrives/{shown['redrive']}",
        "usage": "usage",
        "audit": "audit",
        "admin": "admin",
        "webhooks": "admin/webhooks",
        "webhook": f"admin/webhooks/{shown['webhook']}",
        "erasures": "admin/erasures",
    }


async def take(page: Page, url: str, path: Path, *, tallest: int | None) -> None:
    """One picture."""
    await page.goto(url)
    width, height = await page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    clip: FloatRect = {"x": 0, "y": 0, "width": width, "height": min(height, tallest or height)}
    await page.screenshot(path=path, full_page=True, clip=clip)


async def main(into: Path, *, is_all: bool) -> None:
    """Take them."""
    with tempfile.TemporaryDirectory() as folder:
        async with prepared(Path(folder)) as (served, key, shown), chromium() as browser:
            for size, scheme in itertools.product(SIZES, SCHEMES):
                look: dict[str, Any] = {"viewport": SIZES[size], "color_scheme": scheme}
                async with signed_in(browser, served.url, key, **look) as page:
                    for name, path in pages_of(shown).items():
                        if is_all or (name, size, scheme) in CHOSEN:
                            place = into / f"{name}-{size}-{scheme}.png"
                            tallest = None if is_all else TALLEST
                            await take(page, f"{served.url}/console/{path}", place, tallest=tallest)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(target, is_all="--all" in sys.argv))
