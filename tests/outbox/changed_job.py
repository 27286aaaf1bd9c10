"""AgentJob as a careless release might bring it: under the same name, with code that fits no history."""

from datetime import timedelta

from temporalio import workflow

from activities.inputs import JobStart
from agentjobs.domain.states import JobState
from agentjobs.temporal import AGENT_JOB


@workflow.defn(name=AGENT_JOB)
class SleepsFirst:
    """Begins with a timer: every history of before begins with an activity."""

    @workflow.run
    async def run(self, start: JobStart) -> JobState:
        """Never so far."""
        await workflow.sleep(timedelta(days=1))
        return JobState.SUCCEEDED


@workflow.defn(name=AGENT_JOB)
class Raises:
    """Has a fault, and its message quotes something that is nobody's business."""

    @workflow.run
    async def run(self, start: JobStart) -> JobState:
        """Fails its workflow task."""
        raise ValueError("hush-hush")


@workflow.defn(name=AGENT_JOB)
class ReadsAnotherInput:
    """Expects an input that its callers do not give."""

    @workflow.run
    async def run(self, start: int) -> JobState:
        """Is never reached: the input cannot be decoded."""
        return JobState.SUCCEEDED
