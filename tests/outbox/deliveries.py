"""A delivery that does what a test scripts, in place of Temporal."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from temporalio.service import RPCError, RPCStatusCode

from agentjobs.failpoints import Failpoints
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.outbox import OutboxRow
from agentjobs.outbox.delivery import Delivery
from agentjobs.outbox.relay import Relay

Answer: TypeAlias = Callable[[OutboxRow], Exception | None]


def rpc_error(status: RPCStatusCode, message: str = "as the test wants it") -> RPCError:
    """What the client raises when the server answers so."""
    return RPCError(message, status, b"")


class ScriptedDelivery(Delivery):
    """Notes every row, and raises what `answer` returns for it."""

    def __init__(self, answer: Answer = lambda _: None) -> None:
        self.answer = answer
        self.taken: list[str] = []

    async def deliver(self, row: OutboxRow) -> None:
        """Take the row or raise."""
        problem = self.answer(row)
        if problem is not None:
            raise problem
        self.taken.append(row.job_id)

    async def tell_desk(self, rows: Sequence[OutboxRow]) -> None:
        """Take the rows, or raise what is scripted for the first of them that has a problem."""
        for row in rows:
            await self.deliver(row)


def relay(ledger: Ledger, delivery: Delivery, failpoints: str = "") -> Relay:
    """A relay over it."""
    return Relay(ledger, delivery, Failpoints.parse(failpoints))
