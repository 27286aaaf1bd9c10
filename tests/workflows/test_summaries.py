"""What the Temporal UI shows in a workflow's own words: a line at each step and timer, and nothing of a user's."""

import re
from collections.abc import AsyncIterator

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHandle

from agentjobs.domain import keys
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.states import JobState
from agentjobs.temporal import DATA_CONVERTER
from tests.docs.pages import DOCS, section
from tests.fakes import ScriptedProvider
from tests.world import World

TEXT = "canary-3f7a My printer is on fire"
NONE_WAS_SHORT = "short steps, from plan on"
TOLD_OF = (
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
    EventType.EVENT_TYPE_MARKER_RECORDED,
    EventType.EVENT_TYPE_TIMER_STARTED,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
)


def read(payload: Payload) -> str:
    """The text of a summary, or nothing."""
    text: str = DATA_CONVERTER.payload_converter.from_payload(payload, str) if payload.data else ""
    return text


async def events(handle: "WorkflowHandle[object, object]") -> AsyncIterator[HistoryEvent]:
    """All that happened."""
    async for event in handle.fetch_history_events():
        yield event


async def summaries(handle: "WorkflowHandle[object, object]") -> list[str]:
    """Of everything that the UI draws a bar for."""
    return [read(event.user_metadata.summary) async for event in events(handle) if event.event_type in TOLD_OF]


async def heading(handle: "WorkflowHandle[object, object]") -> tuple[str, str]:
    """Summary and details of the workflow as a whole."""
    async for event in events(handle):
        return read(event.user_metadata.summary), read(event.user_metadata.details)
    raise AssertionError("no events")


async def test_each_step_of_a_job_has_its_line_and_the_job_says_where_to_look_on(world: World) -> None:
    job_id = await world.submit(TEXT)

    async with world.running():
        await world.until(job_id, JobState.SUCCEEDED)

    lines = await summaries(world.workflow(job_id))
    summary, details = await heading(world.workflow(job_id))
    assert lines == [
        NONE_WAS_SHORT,
        "the plan",
        "what to do in step 1",
        "short steps, from step-1.create_ticket on",
        "what to do in step 2",
        "the answer",
        "into the ledger: succeeded",
    ]
    assert summary == "support-triage"
    assert f"`{world.tenant}`" in details
    assert f"`python starter.py status {job_id}`" in details
    assert "canary" not in "".join([summary, details, *lines])


async def test_a_death_and_its_desk_say_what_they_do(world: World) -> None:
    provider = ScriptedProvider(errors=(PermanentError(Category.ACCESS_DENIED, "no"),))
    job_id = await world.submit(TEXT)

    async with world.running(provider):
        await world.until(job_id, JobState.DEAD)
        await world.until_alerted(job_id)

    desk = world.client.get_workflow_handle(keys.desk_id(world.tenant))
    lines, of_desk = await summaries(world.workflow(job_id)), await summaries(desk)
    assert lines == [NONE_WAS_SHORT, "the plan", "into the ledger: dead of access_denied"]
    assert of_desk[:2] == ["collect deaths", "deaths to tell of: 1"]
    assert "" not in of_desk
    assert await heading(desk) == (
        "dead letters",
        f"Tenant `{world.tenant}`. `python starter.py dead list` shows the letters.",
    )


async def test_every_view_that_is_documented_is_a_query_that_the_server_takes(world: World) -> None:
    views = re.findall(r"\| `([^`]+)` \|$", section(DOCS / "temporal-ui.md", "Views"), re.MULTILINE)

    counts = [(await world.client.count_workflows(query)).count for query in views]

    assert len(counts) == 8
