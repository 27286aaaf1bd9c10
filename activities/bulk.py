"""The work of a bulk redrive: count, give the word on the next letters, end. The ledger keeps all of it."""

from __future__ import annotations

from temporalio import activity

from activities.failures import judged
from agentjobs.domain.bulk import End, Pace, Standing
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.job import Frozen
from agentjobs.ledger.ledger import Ledger


class RedriveRef(Frozen):
    """The input of BulkRedrive: all that is carried over a continue-as-new. The rest is in the ledger."""

    redrive_id: str
    tenant: str


class AskUpTo(Frozen):
    """Give the word on waiting letters, until so many were asked in all."""

    redrive_id: str
    up_to: int


class EndNow(Frozen):
    """The bulk redrive ends so."""

    redrive_id: str
    end: End


class Looked(Frozen):
    """How a bulk redrive proceeds, and where it stands. Counts only."""

    pace: Pace
    standing: Standing


class BulkWork:
    """Each may be repeated without a second consequence."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @activity.defn
    async def look_at_redrive(self, ref: RedriveRef) -> Looked:
        """Count what has become of its letters."""
        with judged():
            await self._ledger.redrives.looked_at(ref.redrive_id)
            record = await self._ledger.redrives.read(None, ref.redrive_id)
            if record is None:
                raise PermanentError(Category.NOT_FOUND, "there is no such bulk redrive")
            return Looked(pace=record.pace, standing=await self._ledger.redrives.standing(record))

    @activity.defn
    async def ask_letters(self, asked: AskUpTo) -> None:
        """Give a person's word on the next letters, each as one alone would be given it."""
        with judged():
            await self._ledger.redrives.ask(asked.redrive_id, asked.up_to)

    @activity.defn
    async def end_redrive(self, ending: EndNow) -> None:
        """No further letter is touched, and those that wait are free."""
        with judged():
            await self._ledger.redrives.end(ending.redrive_id, ending.end.state, ending.end.because)
