"""Sends what tenants' webhooks are to be told. Several relays may run: each delivery is claimed by one of them.

Nothing is locked while a receiver is waited for: a claim is a lease. Whoever takes longer than it, or dies, has
its delivery sent again under the same id, by which the receiver knows it.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Final

import structlog

from agentjobs.domain.webhooks import Answer, Miss, throttle_after, wait_after
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.webhook_deliveries import ClaimedDelivery
from agentjobs.outbox.measures import RelayMeasures, WebhookOutcome
from agentjobs.outbox.relay import until_woken
from agentjobs.outbox.webhook_spans import heard, webhook_told
from agentjobs.webhooks.message import body_of
from agentjobs.webhooks.places import Forbidden
from agentjobs.webhooks.sending import WHOLE_SECONDS, Message, Sender, Unreachable
from agentjobs.webhooks.signing import Signer

log = structlog.get_logger()

AT_ONCE: Final = 128
"""Sends in flight, of all tenants: a waiting one costs a socket and some kilobytes."""

EACH_AT_ONCE: Final = 3
"""Of one webhook. A slow one holds so many places for 15 s each, and leaves the rest to the others."""

LEASE_SECONDS: Final = WHOLE_SECONDS + 15.0
"""An attempt and the word about it, with the database away for some seconds."""


class WebhookLane:
    """One place for each send: a slow receiver keeps its own place only."""

    def __init__(
        self,
        ledger: Ledger,
        sender: Sender,
        *,
        links_base: str | None = None,
        chance: Callable[[], float] = random.random,
        measures: RelayMeasures | None = None,
    ) -> None:
        self._measures = measures or RelayMeasures()
        self._deliveries = ledger.webhook_deliveries
        self._sender = sender
        self._links_base = links_base
        self._chance = chance
        self._busy: Counter[str] = Counter()
        self._place_free = asyncio.Event()

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as sends:
            while True:
                self._place_free.clear()
                for claimed in await self._claimed():
                    sends.create_task(self._carried_out(claimed))
                await until_woken(self._place_free)

    async def run_once(self) -> int:
        """One batch; returns how many deliveries were tried."""
        claimed = await self._claimed()
        await asyncio.gather(*(self._carried_out(one) for one in claimed))
        return len(claimed)

    async def _claimed(self) -> list[ClaimedDelivery]:
        free = AT_ONCE - self._busy.total()
        if free <= 0:
            return []
        try:
            claimed = await self._deliveries.claim(
                free, each=EACH_AT_ONCE, busy=self._busy, lease_seconds=LEASE_SECONDS
            )
        except Exception as error:
            _tell("webhooks_not_claimed", error)
            return []
        self._busy.update(one.webhook_id for one in claimed)
        return claimed

    async def _carried_out(self, claimed: ClaimedDelivery) -> None:
        try:
            with webhook_told(claimed) as span:
                answer = await self._answer(claimed)
                heard(span, answer)
            self._measures.webhook_tried(_outcome(answer))
            await self._record(claimed, answer)
        except Exception as error:  # its lease ends, and it is sent again
            _tell("webhook_not_recorded", error)
        finally:
            self._busy[claimed.webhook_id] -= 1
            self._busy += Counter()  # forgets who has none
            self._place_free.set()

    async def _answer(self, claimed: ClaimedDelivery) -> Answer | None:
        """What the receiver said; None when nothing came, or it may not be asked."""
        signer = Signer(claimed.secrets)
        timestamp = int(claimed.claimed_at.timestamp())
        body = body_of(claimed.type, claimed.created_at, claimed.data, links_base=self._links_base)
        try:
            message = Message(claimed.id, timestamp, body)
            return await self._sender.send(claimed.url.get_secret_value(), signer, message)
        except (Forbidden, Unreachable) as error:
            kind = "forbidden" if isinstance(error, Forbidden) else str(error)
            log.info("webhook_unreachable", webhook=claimed.webhook_id, delivery=claimed.id, kind=kind)
            return None

    async def _record(self, claimed: ClaimedDelivery, answer: Answer | None) -> None:
        if answer is not None and answer.is_success:
            await self._deliveries.delivered(claimed, status=answer.status)
            return
        is_gone = answer is not None and answer.is_gone
        asked = None if answer is None else answer.asked_seconds
        wait = None if is_gone else wait_after(claimed.tries, chance=self._chance(), asked_seconds=asked)
        because = await self._deliveries.not_delivered(
            claimed,
            error=Miss.UNREACHABLE if answer is None else Miss.REFUSED,
            status=None if answer is None else answer.status,
            wait_seconds=wait,
            throttle_seconds=throttle_after(answer, wait),
            is_gone=is_gone,
        )
        if wait is None and not is_gone:
            log.warning("webhook_delivery_failed", webhook=claimed.webhook_id, delivery=claimed.id)
        if because is not None:
            log.warning("webhook_disabled", webhook=claimed.webhook_id, because=because)


def _outcome(answer: Answer | None) -> WebhookOutcome:
    if answer is None:
        return WebhookOutcome.UNREACHABLE
    return WebhookOutcome.DELIVERED if answer.is_success else WebhookOutcome.REFUSED


def _tell(event: str, error: Exception) -> None:
    if not is_unavailable(error):
        log.error(event, error_type=type(error).__name__)
