"""One attempt: look up, check every address, connect to one that was checked, send, and hear the first line.

Every message of every webhook goes this way: there is no other client that could forget a check. When it is tried
again is not decided here.
"""

import asyncio
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import httpx

from agentjobs.domain.retry_after import asked_seconds
from agentjobs.domain.webhooks import Answer
from agentjobs.tracing.contexts import passed_on
from agentjobs.webhooks.addresses import Address
from agentjobs.webhooks.looking_up import LookUp, SystemLookUp
from agentjobs.webhooks.places import Place, Reach, check_address, checked_place
from agentjobs.webhooks.signing import Signer

WHOLE_SECONDS: Final = 15.0
"""For looking up, connecting and the answer's first line: the standard asks for 15 to 30 s."""

TIMEOUT: Final = httpx.Timeout(10.0, connect=5.0)


class Unreachable(Exception):
    """No answer came. The message is the kind of failure: for our log, and not for whoever gave the address."""


@dataclass(frozen=True)
class Message:
    """What is sent. The id is the same over all attempts; `timestamp`, of this attempt, is seconds since 1970."""

    id: str
    timestamp: int
    body: bytes


class Sender:
    """Sends signed messages within its reach."""

    def __init__(self, reach: Reach, *, tls: ssl.SSLContext | None = None, look_up: LookUp | None = None) -> None:
        """`tls`: which certificates are trusted; the public ones, unless given."""
        self._reach = reach
        self._system = SystemLookUp()
        self._look_up = look_up or self._system
        # No proxy from the environment: it would connect where nothing was checked. And each connection for one
        # message only: it is kept by its IP address, so another name of that address would get a connection whose
        # certificate was not checked for it.
        self._client = httpx.AsyncClient(
            verify=tls or True,
            timeout=TIMEOUT,
            follow_redirects=False,
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
        self._system.close()

    async def send(self, url: str, signer: Signer, message: Message) -> Answer:
        """Send it once. Raises Forbidden when the address leads where it must not, and Unreachable."""
        place = checked_place(url, self._reach)
        try:
            async with asyncio.timeout(WHOLE_SECONDS):
                return await self._sent(place, signer, message)
        except (httpx.HTTPError, OSError, UnicodeError, TimeoutError) as error:
            raise Unreachable(type(error).__name__) from None

    async def _sent(self, place: Place, signer: Signer, message: Message) -> Answer:
        *others, last = await self._addresses(place)
        for address in others:
            try:
                return await self._post(place, address, signer, message)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # nothing was sent: the next address of the name
        return await self._post(place, last, signer, message)

    async def _addresses(self, place: Place) -> list[Address]:
        addresses = [place.literal] if place.literal else await self._look_up(place.host, place.port)
        for address in addresses:
            check_address(place, address, self._reach)
        if not addresses:
            raise OSError("the name has no address")
        return addresses

    async def _post(self, place: Place, address: Address, signer: Signer, message: Message) -> Answer:
        request = self._client.build_request(
            "POST",
            place.at(address),
            content=message.body,
            headers={
                "Host": place.authority,
                "Content-Type": "application/json",
                "User-Agent": "agentjobs",
                "webhook-id": message.id,
                "webhook-timestamp": str(message.timestamp),
                "webhook-signature": signer.signature(message.id, message.timestamp, message.body),
                **passed_on(),
            },
            # The certificate must be the name's, although we connect by the address.
            extensions={"sni_hostname": place.host},
        )
        response = await self._client.send(request, stream=True)
        await response.aclose()  # its body is of no interest, and may be of any length
        asked = asked_seconds(response.headers, datetime.now(UTC))
        return Answer(status=response.status_code, asked_seconds=asked)
