"""The operator's signed webhook: alerts of all tenants to one address, by Standard Webhooks 1.0.0."""

import hashlib
import ssl
from datetime import UTC, datetime

from agentjobs.alerts.message import webhook_body
from agentjobs.alerts.sink import NotTaken, Refusal, Taken
from agentjobs.domain.alerts import Alert
from agentjobs.domain.webhooks import Answer
from agentjobs.webhooks.looking_up import LookUp
from agentjobs.webhooks.places import Forbidden, Reach, checked_place
from agentjobs.webhooks.sending import Message, Sender, Unreachable
from agentjobs.webhooks.signing import Signer


class WebhookSink:
    """One address for the alerts of all tenants."""

    def __init__(
        self,
        url: str,
        signer: Signer,
        *,
        private: bool = False,
        links_base: str | None = None,
        tls: ssl.SSLContext | None = None,
        look_up: LookUp | None = None,
    ) -> None:
        """Raises Forbidden for an address that is refused, without quoting it. `tls`, `look_up`: Sender's."""
        reach = Reach.of_operators(private=private)
        checked_place(url, reach)
        self._url = url
        self._signer = signer
        self._links_base = links_base
        self._name = f"webhook-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
        self._sender = Sender(reach, tls=tls, look_up=look_up)

    @property
    def name(self) -> str:
        """By its address, so that another one begins anew: what was disabled stays so for the old one only."""
        return self._name

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sender.aclose()

    async def deliver(self, alert: Alert) -> Taken:
        """Send it; the id is the alert's, the timestamp this attempt's. Raises NotTaken."""
        try:
            answer = await self._sender.send(self._url, self._signer, self._message(alert))
        except Forbidden as error:
            raise NotTaken(f"{error} (AGENTJOBS_ALERT_WEBHOOK_PRIVATE allows private ones)") from None
        except Unreachable as error:
            raise NotTaken(f"no answer ({error})") from None
        if answer.is_success:
            return Taken(status=answer.status)
        raise NotTaken(
            f"HTTP {answer.status}",
            refusal=_refusal(answer),
            status=answer.status,
            asked_seconds=answer.asked_seconds,
        )

    def _message(self, alert: Alert) -> Message:
        now = int(datetime.now(UTC).timestamp())
        return Message(id=alert.id, timestamp=now, body=webhook_body(alert, self._links_base))


def _refusal(answer: Answer) -> Refusal:
    if answer.is_gone:
        return Refusal.NEVER_AGAIN
    return Refusal.SLOWER if answer.asks_to_slow_down else Refusal.LATER
