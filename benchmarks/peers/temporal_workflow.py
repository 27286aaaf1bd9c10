"""The bare workflow, in a file of its own: the sandbox loads this file for every run, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

CALL = "call_model"
TICKET = "open_ticket"


@dataclass
class Options:
    """Timeouts in seconds; None: as it comes."""

    start_to_close: float = 60
    heartbeat: float | None = None
    task: float | None = None
    first_retry: float = 1

    @classmethod
    def named(cls, name: str) -> Options:
        """plain: as the samples show it. tuned: what noticed a death soonest."""
        return {"plain": cls(), "tuned": cls(heartbeat=1, task=1, first_retry=0.1)}[name]

    @property
    def task_timeout(self) -> timedelta | None:
        """Of the workflow."""
        return None if self.task is None else timedelta(seconds=self.task)


@dataclass
class Wanted:
    """The workflow's input."""

    job_id: str
    steps: int
    seconds: float
    options: Options


@workflow.defn
class BareJob:
    """plan, model calls, ticket."""

    @workflow.run
    async def run(self, wanted: Wanted) -> None:
        """One after the other."""
        options = wanted.options
        limits = workflow.ActivityConfig(
            start_to_close_timeout=timedelta(seconds=options.start_to_close + wanted.seconds),
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=options.first_retry)),
        )
        calls: workflow.ActivityConfig = {**limits}
        if options.heartbeat is not None:
            calls["heartbeat_timeout"] = timedelta(seconds=options.heartbeat)
        await workflow.execute_activity("plan", wanted.job_id, **limits)
        for step in range(wanted.steps):
            await workflow.execute_activity(CALL, args=[wanted, step], **calls)
        await workflow.execute_activity(TICKET, wanted.job_id, **limits)
