"""Recorded histories still replay: what would break a running job is caught here."""

import json
import re
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from agentjobs.domain import decisions
from agentjobs.temporal import DATA_CONVERTER, workflow_runner
from tests.replay.texts import texts_of
from workflows.agent_job import AgentJob
from workflows.bulk_redrive import BulkRedrive
from workflows.dead_letter_desk import DeadLetterDesk

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))
SHAPES = (
    "success",
    "retry",
    "fast_lane",
    "dead_and_redriven",
    "dead_and_waiting",
    "discarded",
    "cancelled",
    "desk",
    "approved",
    "unanswered",
    "bulk_redrive",
)


def replayer() -> Replayer:
    """With the sandbox and the converter of the workers."""
    return Replayer(
        workflows=[AgentJob, BulkRedrive, DeadLetterDesk],
        workflow_runner=workflow_runner(guarded=True),
        data_converter=DATA_CONVERTER,
    )


def history_of(path: Path) -> WorkflowHistory:
    """A recorded history."""
    return WorkflowHistory.from_json(path.stem, path.read_text("utf-8"))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_recorded_history_replays(path: Path) -> None:
    await replayer().replay_workflow(history_of(path))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_a_history(shape: str) -> None:
    assert [path for path in HISTORIES if f"-{shape}" in path.stem]


async def test_an_incompatible_change_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    # A plausible change: "no plan is needed any more". Jobs that have made one could not go on.
    decide = decisions.decide

    def without_plan(progress: decisions.Progress, max_steps: int) -> decisions.Action:
        return decide(progress.model_copy(update={"planned": True}), max_steps)

    monkeypatch.setattr(decisions, "decide", without_plan)
    success = next(path for path in HISTORIES if path.stem.endswith("-success"))

    with pytest.raises(NondeterminismError):
        await replayer().replay_workflow(history_of(success))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_history_holds_no_credential_and_no_request(path: Path) -> None:
    forbidden = re.compile(r"ajk_|\bsk-|ghp_|whsec_|Bearer |postgres(ql)?://|My printer|Printer on fire|It burns")

    found = [text for text in texts_of(json.loads(path.read_text("utf-8"))) if forbidden.search(text)]

    assert found == []
