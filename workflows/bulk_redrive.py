"""BulkRedrive: gives the word on many dead letters, a few first, and stops by itself when they die again.

The workflow holds nothing but how often it has looked in vain: which letters, and what became of each, is in the
ledger. So a word to pause, stop or cancel holds from the moment at which the ledger has it.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import assert_never

from temporalio import workflow

from activities.bulk import AskUpTo, BulkWork, EndNow, Looked, RedriveRef
from agentjobs.domain import bulk
from agentjobs.temporal import BULK_REDRIVE
from workflows import options


@workflow.defn(name=BULK_REDRIVE)
class BulkRedrive:
    """Workflow id: bulk-redrive-<id>. A run that was ended by force is replaced by another; nothing is lost."""

    @workflow.init
    def __init__(self, ref: RedriveRef) -> None:
        self._ref = ref
        self._called = False
        self._looks_in_vain = 0

    @workflow.signal
    def look(self) -> None:
        """Something was said to it: it is in the ledger."""
        self._called = True

    @workflow.run
    async def run(self, _: RedriveRef) -> None:
        """Until all letters have their verdict, or too many have failed, or a person cancels it."""
        while True:
            self._called = False
            looked = await self._look()
            self._show(looked)
            following = bulk.next_of(looked.pace, looked.standing, self._looks_in_vain)
            if isinstance(following, bulk.Over):
                return
            await self._carry_out(following)
            if workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(self._ref)

    async def _carry_out(self, following: bulk.Ask | bulk.Wait | bulk.End) -> None:
        match following:
            case bulk.Ask():
                self._looks_in_vain = 0
                await self._ask(following.up_to)
                # Also when called: somebody who pauses and resumes is not to raise the rate.
                await workflow.sleep(timedelta(seconds=following.rest_seconds), summary="as the rate allows")
            case bulk.Wait():
                self._looks_in_vain += 1
                await self._wait(following.seconds)
            case bulk.End():
                await self._end(following)
            case _:
                assert_never(following)

    async def _wait(self, seconds: float) -> None:
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: self._called, timeout=timedelta(seconds=seconds), timeout_summary="until the next look"
            )

    async def _look(self) -> Looked:
        return await workflow.execute_activity_method(
            BulkWork.look_at_redrive, self._ref, activity_id="look", summary="how it stands", **options.RECORD
        )

    async def _ask(self, up_to: int) -> None:
        await workflow.execute_activity_method(
            BulkWork.ask_letters,
            AskUpTo(redrive_id=self._ref.redrive_id, up_to=up_to),
            activity_id=f"ask-{up_to}",
            summary=f"ask, up to letter {up_to}",
            **options.RECORD,
        )

    async def _end(self, end: bulk.End) -> None:
        await workflow.execute_activity_method(
            BulkWork.end_redrive,
            EndNow(redrive_id=self._ref.redrive_id, end=end),
            activity_id="end",
            summary=f"into the ledger: {end.state}",
            **options.RECORD,
        )

    def _show(self, looked: Looked) -> None:
        counts, state = looked.standing.counts, looked.standing.state
        stage = bulk.stage_of(looked.pace, counts)
        workflow.set_current_details(
            f"{state}, {stage}: {counts.taken} of {looked.pace.letters} letters asked, "
            f"{counts.recovered} recovered, {counts.died_again} died again, {counts.skipped} skipped."
        )
