"""DeadLetterDesk: one a tenant. Hears of every death, and sees to it that somebody is told, and told again.

It also hears of calls that begin to wait for a person.
"""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from temporalio import workflow
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ActivityError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from activities.alerts import DeskWork
from activities.inputs import AlertRef, DeathNotice, Deaths, DeskDone, DeskRef, DeskStart, OneDeath
from agentjobs.domain import alerts
from agentjobs.temporal import DEAD_LETTER_DESK, TENANT
from workflows import options
from workflows.desk_delivery import ID_PREFIX, AlertDelivery

CARRIED: Final = 5_000
"""Notices over a continue-as-new: 650 KB. Those beyond it are untold in the ledger, and told again from there."""

LOOK_AGAIN: Final = timedelta(minutes=1)
"""After a look that failed."""


@workflow.defn(name=DEAD_LETTER_DESK)
class DeadLetterDesk:
    """Workflow id: dead-letter-desk-<tenant>. Started by the first death, and open from then on."""

    @workflow.init
    def __init__(self, start: DeskStart) -> None:
        self._tenant = start.tenant
        self._notices = {_key(notice): notice for notice in start.notices}
        self._collected = start.collected
        # Nothing but the newer signal sets it: histories from before that signal are replayed as they were made.
        self._in_batches = start.in_batches
        self._look_at = start.look_at

    @workflow.signal
    def job_died(self, notice: DeathNotice) -> None:
        """A job died. The same notice may come twice; the ledger knows whether it was alerted."""
        self._notices.setdefault(_key(notice), notice)

    @workflow.signal
    def jobs_died(self, notices: list[DeathNotice]) -> None:
        """Jobs died. As `job_died`, many at once: a workflow takes a few signals a second, and a storm is more."""
        self._in_batches = True
        for notice in notices:
            self.job_died(notice)

    @workflow.signal
    def approvals_requested(self) -> None:
        """Calls wait for a person. The ledger knows which: a look finds them, with those that come by then."""
        self._look_at = _earlier(self._look_at, workflow.now() + alerts.WINDOW)

    @workflow.query
    def waiting_notices(self) -> list[DeathNotice]:
        """Deaths that nobody was told of yet."""
        return list(self._notices.values())

    @workflow.run
    async def run(self, _: DeskStart) -> None:
        """Collect and tell, look at what is open for long, for ever."""
        while True:
            self._show()
            await self._until_something_is_due()
            if self._look_is_due():
                await self._look()
            elif self._notices and self._in_batches:
                await self._tell_together()
            elif self._notices:
                await self._tell_first()
            if workflow.info().is_continue_as_new_suggested():
                await self._continue_as_new()

    async def _until_something_is_due(self) -> None:
        while True:
            until = self._look_at
            timeout = None if until is None else max(until - workflow.now(), timedelta(0))
            with suppress(asyncio.TimeoutError):
                await workflow.wait_condition(
                    partial(self._is_woken, until),
                    timeout=timeout,
                    timeout_summary="until the next look",
                )
            # A call that begins to wait for a person brings the look forward: then the sleep is a shorter one.
            if self._look_at == until:
                return

    def _is_woken(self, until: datetime | None) -> bool:
        return bool(self._notices) or self._look_at != until

    def _show(self) -> None:
        look = "none is due" if self._look_at is None else f"{self._look_at:%Y-%m-%d %H:%M:%S} UTC"
        workflow.set_current_details(
            f"Deaths to tell of: {len(self._notices)}. Next look at letters that are open for long: {look}."
        )

    def _look_is_due(self) -> bool:
        return self._look_at is not None and self._look_at <= workflow.now()

    async def _tell_first(self) -> None:
        key, notice = next(iter(self._notices.items()))
        try:
            done = await workflow.execute_activity_method(
                DeskWork.raise_alert,
                OneDeath(tenant=self._tenant, notice=notice),
                activity_id=f"alert.{notice.job_id}.{notice.generation}",
                summary="a death to tell of",
                **options.RECORD,
            )
            await self._go_on(done)
        except ActivityError:
            # One alert that cannot be raised must not silence those behind it; the letter itself is in the
            # ledger, without its alerted_at.
            workflow.logger.error("alert_failed", extra={"job": notice.job_id})
        self._notices.pop(key)

    async def _tell_together(self) -> None:
        await self._collect()
        together = list(self._notices.values())[: alerts.RECORDED_AT_ONCE]
        self._collected = len(together)
        try:
            done = await workflow.execute_activity_method(
                DeskWork.raise_alerts,
                Deaths(tenant=self._tenant, notices=tuple(together)),
                activity_id="alerts",
                summary=f"deaths to tell of: {len(together)}",
                **options.RECORD,
            )
            await self._go_on(done)
        except ActivityError:  # as above: the letters are told again from the ledger
            workflow.logger.error("alerts_failed", extra={"count": len(together)})
        for notice in together:
            self._notices.pop(_key(notice))

    async def _collect(self) -> None:
        storm = alerts.is_storm(self._collected)
        limit = alerts.STORM_COLLECTED if storm else alerts.COLLECTED
        window = alerts.STORM_WINDOW if storm else alerts.WINDOW
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: len(self._notices) >= limit, timeout=window, timeout_summary="collect deaths"
            )

    async def _look(self) -> None:
        self._look_at = None
        try:
            done = await workflow.execute_activity_method(
                DeskWork.look_at_letters,
                DeskRef(tenant=self._tenant),
                activity_id="look",
                summary="what is open for long?",
                **options.RECORD,
            )
            await self._go_on(done)
        except ActivityError:
            workflow.logger.error("look_failed")
            self._look_at = workflow.now() + LOOK_AGAIN

    async def _go_on(self, done: DeskDone | None) -> None:
        if done is None:  # of a release that answered nothing
            return
        for alert in done.deliveries:
            await self._begin_delivery(alert)
        if done.look_in_seconds is not None:
            due = workflow.now() + timedelta(seconds=done.look_in_seconds)
            self._look_at = _earlier(self._look_at, due)

    async def _begin_delivery(self, alert: AlertRef) -> None:
        try:
            await workflow.start_child_workflow(
                AlertDelivery.run,
                alert,
                id=ID_PREFIX + alert.alert_id,
                # It outlives a desk that continues as new or is ended.
                parent_close_policy=ParentClosePolicy.ABANDON,
                search_attributes=TypedSearchAttributes([SearchAttributePair(TENANT, self._tenant)]),
                static_summary="an alert",
            )
        except WorkflowAlreadyStartedError:
            return  # under way already

    async def _continue_as_new(self) -> None:
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(
            DeskStart(
                tenant=self._tenant,
                notices=tuple(self._notices.values())[:CARRIED],
                collected=self._collected,
                in_batches=self._in_batches,
                look_at=self._look_at,
            )
        )


def _key(notice: DeathNotice) -> tuple[str, int]:
    return notice.job_id, notice.generation


def _earlier(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else min(one, other)
