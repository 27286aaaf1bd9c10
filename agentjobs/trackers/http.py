"""JSON over HTTP to a destination for tickets: one request, one answer, every failure translated once.

What a failure says about the effect is decided here, by one rule: before the connection stands, nothing was sent;
an answer of 4xx is a refusal, so nothing happened; everything else that goes wrong leaves a doubt.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel, ConfigDict, JsonValue, SecretStr, ValidationError

from agentjobs.domain.classification import Facts, classify
from agentjobs.domain.failures import RETRYABLE, Category, JobError, PermanentError, RetryableError
from agentjobs.domain.retry_after import asked_seconds, http_date
from agentjobs.tracing.contexts import passed_on

TIMEOUT: Final = httpx.Timeout(15.0, connect=5.0)
"""Creating an issue takes a second at most; who needs longer than 15 is not well."""

WHOLE_SECONDS: Final = 30.0
"""For a request with its answer: httpx counts only the silence between two pieces of it."""

CONNECTIONS: Final = 8
"""At once, from one worker: Roundup lets five wait to be accepted, and of twenty at once some are reset; GitHub
asks for few at a time. Who finds none free within the timeout has sent nothing."""

ANSWER_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""A page of 50 issues with the longest bodies that GitHub takes (65,536 characters of up to 4 bytes): 13 MiB."""

_NOTHING_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)

Read = TypeVar("Read", bound=BaseModel)


class Told(BaseModel):
    """Base of what a destination tells: we take what we need, and it may add what it likes."""

    model_config = ConfigDict(frozen=True, extra="ignore")


@dataclass(frozen=True)
class Answer:
    """What came back, whatever its status."""

    destination: str
    changing: bool
    """Whether the request was to change something; a question says nothing about an effect."""

    status: int
    headers: httpx.Headers
    document: JsonValue
    """None when the body is no JSON, or too long to be read."""

    @property
    def succeeded(self) -> bool:
        """2xx."""
        return 200 <= self.status < 300

    @property
    def sent_at(self) -> datetime:
        """The destination's own clock, so that ours need not agree with it."""
        return http_date(self.headers.get("date")) or datetime.now(UTC)

    @property
    def retry_after_seconds(self) -> float | None:
        """What the answer asks to wait, by the destination's own clock."""
        return asked_seconds(self.headers, datetime.now(UTC))

    def read_as(self, model: type[Read]) -> Read:
        """The document as a model. Raises RetryableError: what was done is not known."""
        try:
            return model.model_validate(self.document)
        except ValidationError:
            raise RetryableError(
                classify(Facts(connection_lost=True)),
                f"an answer of {self.destination} (HTTP {self.status}) could not be read",
            ) from None

    def refused(self, advice: str = "") -> JobError:
        """The failure that an answer of 300 or above means. Its own words are left out: they may quote content."""
        category = classify(Facts(http_status=self.status))
        message = f"{self.destination} answered HTTP {self.status}" + (f": {advice}" if advice else "")
        if category in RETRYABLE:
            return self.try_later(category, message, self.retry_after_seconds)
        return PermanentError(category, message)

    def try_later(self, category: Category, message: str, asked_seconds: float | None = None) -> RetryableError:
        """Another attempt may succeed; after a refusal (4xx) the request had certainly no effect."""
        return RetryableError(
            category,
            message,
            retry_after_seconds=asked_seconds,
            nothing_happened=self.changing and 400 <= self.status < 500,
        )


class Destination:
    """One service at one address, with one set of credentials."""

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        headers: dict[str, str],
        auth: httpx.Auth | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._name = name
        self._base_url = checked_url(base_url)
        self._headers = {"Accept": "application/json", "User-Agent": "agentjobs", **headers}
        self._auth = auth
        self._own = client is None
        self._client = _own_client() if client is None else client

    async def aclose(self) -> None:
        """Close the connections, unless the client was given."""
        if self._own:
            await self._client.aclose()

    async def ask(self, *path: str, params: dict[str, str | int] | None = None) -> Answer:
        """A question. Its failure never says that nothing happened: an earlier request may have been executed."""
        return await self._exchange("GET", path, changing=False, params=params)

    async def change(
        self, method: str, *path: str, document: dict[str, Any], headers: dict[str, str] | None = None
    ) -> Answer:
        """A request that changes something."""
        return await self._exchange(method, path, changing=True, json=document, headers=headers)

    async def _exchange(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        changing: bool,
        headers: dict[str, str] | None = None,
        **content: Any,
    ) -> Answer:
        request = self._client.build_request(
            method,
            "/".join((self._base_url, *(quote(part, safe="") for part in path))),
            headers=self._headers | passed_on() | (headers or {}),
            timeout=TIMEOUT,
            **content,
        )
        try:
            async with asyncio.timeout(WHOLE_SECONDS):
                response = await self._client.send(request, auth=self._auth, follow_redirects=False, stream=True)
                try:
                    document = await _document(response)
                finally:
                    await response.aclose()
        except (httpx.HTTPError, TimeoutError) as error:
            raise self._broken_off(error, changing=changing) from None
        return Answer(self._name, changing, response.status_code, response.headers, document)

    def _broken_off(self, error: Exception, *, changing: bool) -> JobError:
        # By its type only: the text of an error may quote a header, and a header holds the credentials.
        category = classify(_facts(error))
        message = f"the exchange with {self._name} broke off ({type(error).__name__})"
        if category not in RETRYABLE:
            return PermanentError(category, message)
        return RetryableError(category, message, nothing_happened=changing and isinstance(error, _NOTHING_SENT))


def checked_url(url: str) -> str:
    """An address from the settings without its last slash. Raises ValueError, which does not quote it."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("a tracker's address begins with https:// (or http://) and a host")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("a tracker's address has no credentials, query or fragment in it")
    return url.rstrip("/")


def checked_secret(secret: SecretStr) -> str:
    """A credential that fits into a header. Raises ValueError, which does not quote it."""
    value = secret.get_secret_value()
    if not value or not (value.isascii() and value.isprintable()):
        raise ValueError("a tracker's credential is empty, or has characters that do not fit into a header")
    return value


def _own_client() -> httpx.AsyncClient:
    # No proxy and no certificates from the environment: what decides where credentials go stands in the settings.
    # Temporal retries; httpx repeats nothing unless its transport is told to.
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    return httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False, trust_env=False, limits=limits)


async def _document(response: httpx.Response) -> JsonValue:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > ANSWER_LIMIT_BYTES:
            return None
    try:
        document: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document


def _facts(error: Exception) -> Facts:
    match error:
        case TimeoutError() | httpx.TimeoutException():
            return Facts(timed_out=True)
        case httpx.LocalProtocolError() | httpx.UnsupportedProtocol():  # we ourselves broke the rules of HTTP
            return Facts()
        case _:
            return Facts(connection_lost=True)
