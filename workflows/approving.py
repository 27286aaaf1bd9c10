"""The wait for a person's word on a tool call. What was said is in the ledger: the word only wakes."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from temporalio import workflow

from activities.inputs import ApprovalNow
from agentjobs.domain.approvals import ApprovalState
from agentjobs.domain.decisions import AskApproval
from workflows.steps import Steps

LEAST_WAIT = timedelta(seconds=1)
"""The database says when a request is over; its clock may be a little behind Temporal's."""


class Approving:
    """One job's wait. `show` is called with what is waited for, and until when."""

    def __init__(self, steps: Steps, show: Callable[[AskApproval, datetime], None]) -> None:
        self._steps = steps
        self._show = show
        self._is_called = False

    def call(self) -> None:
        """Somebody has decided."""
        self._is_called = True

    async def verdict(self, action: AskApproval) -> ApprovalState:
        """What was decided, or EXPIRED."""
        while (now := await self._look(action)).state is ApprovalState.REQUESTED:
            self._show(action, now.expires_at)
            with suppress(TimeoutError):
                remaining = max(now.expires_at - workflow.now(), LEAST_WAIT)
                await workflow.wait_condition(
                    lambda: self._is_called,
                    timeout=remaining,
                    timeout_summary=f"{action.wanted.tool} waits for an approval",
                )
        return now.state

    async def _look(self, action: AskApproval) -> ApprovalNow:
        self._is_called = False
        return await self._steps.ask_approval(action)
