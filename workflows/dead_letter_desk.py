"""DeadLetterDesk: one a tenant. Hears of every death, and sees to it that somebody is told."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

from activities.inputs import Alert, DeathNotice, DeskStart
from activities.records import Records
from agentjobs.temporal import DEAD_LETTER_DESK
from workflows import options


@workflow.defn(name=DEAD_LETTER_DESK)
class DeadLetterDesk:
    """Workflow id: dead-letter-desk-<tenant>. Started by the first death, and open from then on."""

    @workflow.init
    def __init__(self, start: DeskStart) -> None:
        self._tenant = start.tenant
        self._notices: list[DeathNotice] = list(start.notices)

    @workflow.signal
    def job_died(self, notice: DeathNotice) -> None:
        """A job died. The same notice may come twice; the ledger knows whether it was alerted."""
        if notice not in self._notices:
            self._notices.append(notice)

    @workflow.query
    def waiting_notices(self) -> list[DeathNotice]:
        """Deaths that nobody was told of yet."""
        return self._notices

    @workflow.run
    async def run(self, _: DeskStart) -> None:
        """Alert one death after the other, for ever."""
        while True:
            await workflow.wait_condition(lambda: bool(self._notices))
            await self._alert(self._notices[0])
            self._notices.pop(0)
            if workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(DeskStart(tenant=self._tenant, notices=tuple(self._notices)))

    async def _alert(self, notice: DeathNotice) -> None:
        try:
            await workflow.execute_activity_method(
                Records.raise_alert,
                Alert(tenant=self._tenant, notice=notice),
                activity_id=f"alert.{notice.job_id}.{notice.generation}",
                **options.RECORD,
            )
        except ActivityError:
            # One alert that cannot be raised must not silence those behind it; the letter itself is in the
            # ledger, without its alerted_at.
            workflow.logger.error("alert_failed", extra={"job": notice.job_id})
