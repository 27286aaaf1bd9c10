"""The signed webhook: Standard Webhooks 1.0.0 to the letter.

Only 2xx is success. 410 means "never again", 429, 502 and 504 mean "slower"; a redirect is followed nowhere, since
the place that it names was not checked. When it is tried again is not decided here.
"""

import asyncio
import hashlib
import ssl
from datetime import UTC, datetime
from typing import Final

import httpx

from agentjobs.alerts.addresses import Address, Forbidden, allowed_addresses, checked_place
from agentjobs.alerts.message import webhook_body
from agentjobs.alerts.signing import Signer
from agentjobs.alerts.sink import NotTaken, Refusal, Taken
from agentjobs.domain.alerts import Alert
from agentjobs.domain.retry_after import asked_seconds

TIMEOUT: Final = httpx.Timeout(10.0, connect=5.0)
WHOLE_SECONDS: Final = 20.0
"""For looking up, connecting and the answer's first line: the standard asks for 15 to 30 s."""

_SLOWER: Final = frozenset({429, 502, 504})
_GONE: Final = 410


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
    ) -> None:
        """`tls`: which certificates are trusted; the public ones, unless given.

        Raises ValueError for an address that is refused, without quoting it.
        """
        self._place = checked_place(url, private=private)
        self._signer = signer
        self._private = private
        self._links_base = links_base
        self._name = f"webhook-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
        # No proxy from the environment: it would connect where nothing was checked.
        self._client = httpx.AsyncClient(
            verify=tls or True, timeout=TIMEOUT, follow_redirects=False, trust_env=False
        )

    @property
    def name(self) -> str:
        """By its address, so that another one begins anew: what was disabled stays so for the old one only."""
        return self._name

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def deliver(self, alert: Alert) -> Taken:
        """Send it; the id is the alert's, the timestamp this attempt's. Raises NotTaken."""
        try:
            async with asyncio.timeout(WHOLE_SECONDS):
                status, headers = await self._sent(alert)
        except Forbidden as error:
            raise NotTaken(str(error)) from None
        except (httpx.HTTPError, OSError, TimeoutError) as error:
            raise NotTaken(f"no answer ({type(error).__name__})") from None
        if 200 <= status < 300:
            return Taken(status=status)
        raise NotTaken(
            f"HTTP {status}",
            refusal=_refusal(status),
            status=status,
            asked_seconds=asked_seconds(headers, datetime.now(UTC)),
        )

    async def _sent(self, alert: Alert) -> tuple[int, httpx.Headers]:
        addresses = await allowed_addresses(self._place, private=self._private)
        for address in addresses[:-1]:
            try:
                return await self._post(address, alert)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # nothing was sent: the next address of the name
        return await self._post(addresses[-1], alert)

    async def _post(self, address: Address, alert: Alert) -> tuple[int, httpx.Headers]:
        body = webhook_body(alert, self._links_base)
        timestamp = int(datetime.now(UTC).timestamp())
        request = self._client.build_request(
            "POST",
            self._place.at(address),
            content=body,
            headers={
                "Host": self._place.authority,
                "Content-Type": "application/json",
                "User-Agent": "agentjobs",
                "webhook-id": alert.id,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": self._signer.signature(alert.id, timestamp, body),
            },
            # The certificate must be the name's, although we connect by the address.
            extensions={"sni_hostname": self._place.host},
        )
        response = await self._client.send(request, stream=True)
        await response.aclose()  # its body is of no interest, and may be of any length
        return response.status_code, response.headers


def _refusal(status: int) -> Refusal:
    if status == _GONE:
        return Refusal.NEVER_AGAIN
    return Refusal.SLOWER if status in _SLOWER else Refusal.LATER
