"""`python -m tests.console.temporal_screenshots DIR`: what the Temporal UI shows of our workflows, as pictures.

A whole stack with a job in each state that is worth a look: it waits for a retry, or for an approval, is dead,
has succeeded; with the desk of the tenant, and a bulk redrive that was stopped by its canary.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from playwright.async_api import Page, ViewportSize

from agentjobs.api.shown import WAITING_QUERY
from agentjobs.domain import bulk, keys
from tests.chaos.rig import until
from tests.console.browser import PATIENCE_MILLISECONDS, chromium
from tests.e2e.model_double import Rule
from tests.e2e.model_rig import ModelRig, running_model_rig
from tests.providers.double_faults import Fault

TENANT: Final = "dev"
APPROVED: Final = "create_ticket"
DEAD: Final = 4
PATIENCE_SECONDS: Final = 120
SIZE: Final[ViewportSize] = {"width": 1400, "height": 1180}
SCALE: Final = 0.75
SETTLED_MILLISECONDS: Final = 9_000
"""The UI asks for one thing after the other, and says nowhere that it has all of it."""


async def put_up(rig: ModelRig) -> dict[str, str]:
    """Jobs in all states; what the UI shows of them, by name: the rest of its address."""
    rig.double.rule(
        Rule(Fault("status", status=429, headers={"Retry-After": "900"}), says="waits", stage="step"),
        Rule(Fault("status", status=401), says="dies", stage="step"),
    )
    succeeded = await _approved(rig)
    asked = await rig.submit("asks")
    await rig.in_state(asked["id"], "waiting_approval")
    dead = await rig.submit_many("dies", DEAD)
    await rig.all_over(dead, seconds=PATIENCE_SECONDS)
    redrive = await _redriven(rig)
    # The last one: a provider that asks for a pause gets it from all jobs.
    waiting = await rig.submit("waits")
    await rig.in_state(waiting["id"], "retry_wait")
    return {
        "list": "",
        "view-waiting": "?query=" + quote(WAITING_QUERY, safe=""),
        "succeeded": f"/{keys.workflow_id(succeeded)}",
        "waiting-approval": f"/{keys.workflow_id(asked['id'])}",
        "retry-wait": f"/{keys.workflow_id(waiting['id'])}",
        "dead": f"/{keys.workflow_id(dead[0]['id'])}",
        "desk": f"/{keys.desk_id(TENANT)}",
        "redrive": f"/{bulk.workflow_id(redrive)}",
    }


async def _approved(rig: ModelRig) -> str:
    job = await rig.submit("succeeds")
    await rig.in_state(job["id"], "waiting_approval")
    (asked,) = (await rig.read(f"/v1/jobs/{job['id']}/approvals"))["items"]
    body = {"decision": "approve", "note": "as agreed", "fingerprint": asked["fingerprint"]}
    answer = await rig.admin.post(f"/v1/jobs/{job['id']}/approvals/{asked['step']}", json=body)
    answer.raise_for_status()
    await rig.over(job["id"])
    return str(job["id"])


async def _redriven(rig: ModelRig) -> str:
    body: dict[str, Any] = {"filter": {}, "note": "the key is renewed"}
    answer = await rig.admin.post("/v1/redrives", json=body)
    answer.raise_for_status()
    redrive_id = str(answer.json()["id"])

    async def over() -> bool:
        return bool((await rig.read(f"/v1/redrives/{redrive_id}"))["state"] != "running")

    await until(over, "the redrive to stop", PATIENCE_SECONDS)
    return redrive_id


async def photograph(page: Page, url: str, path: Path) -> None:
    """One page when it has stopped to change; of a workflow also what it tells of itself."""
    is_workflow = "/workflows/" in url
    await page.goto(url)
    mark = page.get_by_text("User Metadata").first if is_workflow else page.get_by_text("Workflow ID").first
    await mark.wait_for()
    await page.wait_for_timeout(SETTLED_MILLISECONDS)
    await page.screenshot(path=path)
    if is_workflow:
        await mark.click()
        await page.wait_for_timeout(SETTLED_MILLISECONDS)
        await page.screenshot(path=path.with_stem(f"{path.stem}-metadata"))


async def main(into: Path) -> None:
    """All of them."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            running_model_rig(Path(folder), 1, AGENTJOBS_APPROVALS=f"{APPROVED}=3600") as rig,
            chromium() as browser,
        ):
            shown = await put_up(rig)
            page = await browser.new_page(viewport=SIZE, device_scale_factor=SCALE)
            page.set_default_timeout(2 * PATIENCE_MILLISECONDS)
            ui = f"{rig.running.stack.info.temporal_ui}/namespaces/default/workflows"
            for name, rest in shown.items():
                await photograph(page, f"{ui}{rest}", into / f"temporal-{name}.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(folder))
