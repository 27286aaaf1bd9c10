"""What both trackers elsewhere do when HTTP goes wrong: which category, and whether it had an effect."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from pydantic import SecretStr

from agentjobs.domain.failures import Category, JobError, PermanentError, RetryableError
from agentjobs.stack.ports import LOOPBACK
from agentjobs.trackers.github import GithubTracker
from agentjobs.trackers.http import ANSWER_LIMIT_BYTES
from agentjobs.trackers.roundup import RoundupTracker
from agentjobs.trackers.tracker import TicketReceipt
from tests.ports import free_port
from tests.trackers.places import a_job, a_ticket, key_of

SECRET = "canary-91ae-secret"
REFUSAL = {"message": f"no, {SECRET}", "error": {"msg": f"no, {SECRET}"}}
"""In the words of both."""

Handler = Callable[[httpx.Request], httpx.Response]
Elsewhere = RoundupTracker | GithubTracker


def roundup(url: str, handler: Handler | None = None) -> RoundupTracker:
    return RoundupTracker(url, "agentjobs", SecretStr(SECRET), client=_client(handler))


def github(url: str, handler: Handler | None = None) -> GithubTracker:
    return GithubTracker("acme/support", SecretStr(SECRET), base_url=url, client=_client(handler))


def _client(handler: Handler | None) -> httpx.AsyncClient | None:
    return None if handler is None else httpx.AsyncClient(transport=httpx.MockTransport(handler))


Kind = Callable[..., Elsewhere]
both = pytest.mark.parametrize("kind", [roundup, github])


async def failure_of(tracker: Elsewhere) -> JobError:
    """What a creation fails with. Whatever it is, it tells no secret."""
    job = a_job()
    with pytest.raises(JobError) as caught:
        await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)
    told = f"{caught.value} {caught.value.__cause__!r} {caught.value.__dict__}"
    assert SECRET not in told and "Basic" not in told and "Bearer" not in told
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


def answering(status: int, **headers: str) -> Handler:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: httpx.Response(status, headers=named, json=REFUSAL)


def failing(error: type[httpx.RequestError]) -> Handler:
    def handler(request: httpx.Request) -> httpx.Response:
        raise error(f"with {request.headers}", request=request)

    return handler


@both
async def test_a_server_that_is_down_got_nothing(kind: Kind) -> None:
    tracker = kind(f"http://{LOOPBACK}:{free_port()}")

    error = await failure_of(tracker)
    await tracker.aclose()

    assert isinstance(error, RetryableError)
    assert (error.category, error.nothing_happened) == (Category.UNAVAILABLE, True)


@both
async def test_a_question_to_a_server_that_is_down_says_nothing_of_an_earlier_creation(kind: Kind) -> None:
    tracker, job = kind(f"http://{LOOPBACK}:{free_port()}"), a_job()

    with pytest.raises(RetryableError) as caught:
        await tracker.find(key_of(job), job=job)
    await tracker.aclose()

    assert (caught.value.category, caught.value.nothing_happened) == (Category.UNAVAILABLE, False)


@both
@pytest.mark.parametrize(
    ("raised", "category", "nothing_happened"),
    [
        (httpx.ConnectError, Category.UNAVAILABLE, True),
        (httpx.ConnectTimeout, Category.TIMEOUT, True),
        (httpx.PoolTimeout, Category.TIMEOUT, True),
        (httpx.ProxyError, Category.UNAVAILABLE, True),
        (httpx.ReadTimeout, Category.TIMEOUT, False),
        (httpx.WriteTimeout, Category.TIMEOUT, False),
        (httpx.ReadError, Category.UNAVAILABLE, False),
        (httpx.WriteError, Category.UNAVAILABLE, False),
        (httpx.RemoteProtocolError, Category.UNAVAILABLE, False),
        (httpx.DecodingError, Category.UNAVAILABLE, False),
    ],
)
async def test_only_what_fails_before_the_connection_stands_had_certainly_no_effect(
    kind: Kind, raised: type[httpx.RequestError], category: Category, nothing_happened: bool
) -> None:
    error = await failure_of(kind("http://tracker.test", failing(raised)))

    assert isinstance(error, RetryableError)
    assert (error.category, error.nothing_happened) == (category, nothing_happened)


@both
async def test_a_request_that_breaks_the_rules_of_http_is_a_bug(kind: Kind) -> None:
    error = await failure_of(kind("http://tracker.test", failing(httpx.LocalProtocolError)))

    assert (type(error), error.category) == (PermanentError, Category.BUG)


@both
@pytest.mark.parametrize(
    ("status", "category"),
    [
        (301, Category.INVALID_INPUT),
        (400, Category.INVALID_INPUT),
        (401, Category.ACCESS_DENIED),
        (403, Category.ACCESS_DENIED),
        (404, Category.NOT_FOUND),
        (410, Category.NOT_FOUND),
        (413, Category.PAYLOAD_TOO_LARGE),
        (422, Category.INVALID_INPUT),
        (451, Category.CONTENT_REFUSED),
    ],
)
async def test_what_no_attempt_can_change_is_permanent(kind: Kind, status: int, category: Category) -> None:
    error = await failure_of(kind("http://tracker.test", answering(status)))

    assert (type(error), error.category) == (PermanentError, category)


@both
@pytest.mark.parametrize(
    ("status", "category", "nothing_happened"),
    [
        (408, Category.TIMEOUT, True),
        (429, Category.RATE_LIMITED, True),
        (500, Category.UNAVAILABLE, False),
        (502, Category.UNAVAILABLE, False),
        (503, Category.UNAVAILABLE, False),
        (504, Category.TIMEOUT, False),
    ],
)
async def test_a_refusal_had_no_effect_and_a_server_error_may_have_had_one(
    kind: Kind, status: int, category: Category, nothing_happened: bool
) -> None:
    error = await failure_of(kind("http://tracker.test", answering(status)))

    assert isinstance(error, RetryableError)
    assert (error.category, error.nothing_happened) == (category, nothing_happened)


@both
@pytest.mark.parametrize("status", [429, 503])
async def test_a_wait_in_seconds_is_passed_on(kind: Kind, status: int) -> None:
    error = await failure_of(kind("http://tracker.test", answering(status, retry_after="7")))

    assert isinstance(error, RetryableError)
    assert error.retry_after_seconds == 7


@both
async def test_a_wait_until_a_date_is_counted_from_the_destinations_own_clock(kind: Kind) -> None:
    theirs = datetime(2020, 1, 1, tzinfo=UTC)
    until = format_datetime(theirs + timedelta(seconds=90), usegmt=True)
    handler = answering(429, retry_after=until, date=format_datetime(theirs, usegmt=True))

    error = await failure_of(kind("http://tracker.test", handler))

    assert isinstance(error, RetryableError)
    assert error.retry_after_seconds == 90


@both
async def test_a_wait_that_makes_no_sense_is_left_to_our_own_waits(kind: Kind) -> None:
    error = await failure_of(kind("http://tracker.test", answering(503, retry_after="soon, NaN")))

    assert isinstance(error, RetryableError)
    assert error.retry_after_seconds is None


@dataclass
class Endless(httpx.AsyncByteStream):
    """A body without an end; counts what was taken of it."""

    taken: int = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.taken += 1_000_000
            yield b"x" * 1_000_000


@both
async def test_an_endless_answer_is_not_read_to_its_end_and_leaves_a_doubt(kind: Kind) -> None:
    body = Endless()

    error = await failure_of(kind("http://tracker.test", lambda request: httpx.Response(201, stream=body)))

    assert isinstance(error, RetryableError)
    assert (error.category, error.nothing_happened) == (Category.UNAVAILABLE, False)
    assert body.taken <= ANSWER_LIMIT_BYTES + 1_000_000


@both
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"null", b"[]", b'{"data": {"id": "../1"}}', b'{"number": -1}', b"[" * 100_000]
)
async def test_an_acknowledgement_that_cannot_be_read_leaves_a_doubt(kind: Kind, body: bytes) -> None:
    error = await failure_of(kind("http://tracker.test", lambda request: httpx.Response(201, content=body)))

    assert isinstance(error, RetryableError)
    assert (error.category, error.nothing_happened) == (Category.UNAVAILABLE, False)


@both
async def test_credentials_do_not_follow_a_redirect(kind: Kind) -> None:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.host)
        return httpx.Response(307, headers={"Location": "http://elsewhere.test/"})

    await failure_of(kind("http://tracker.test", handler))

    assert seen == ["tracker.test"]


@both
async def test_a_proxy_of_the_environment_gets_no_credentials(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("HTTP_PROXY", f"http://{LOOPBACK}:{free_port()}")
    tracker = kind(f"http://{LOOPBACK}:{port}")

    mounts = tracker._http._client._mounts
    await tracker.aclose()

    assert not mounts


@both
@pytest.mark.parametrize(
    "url",
    ["", "tracker.test", "ftp://tracker.test", "http://", f"http://u:{SECRET}@tracker.test", "http://t/?q=1"],
)
def test_an_unusable_address_is_refused_without_being_quoted(kind: Kind, url: str) -> None:
    with pytest.raises(ValueError, match="address") as caught:
        kind(url)

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("secret", ["", f"{SECRET}\n", f"{SECRET}ü"])
def test_an_unusable_credential_is_refused_without_being_quoted(secret: str) -> None:
    with pytest.raises(ValueError, match="credential") as first:
        RoundupTracker("http://tracker.test", "agentjobs", SecretStr(secret))
    with pytest.raises(ValueError, match="credential") as second:
        GithubTracker("acme/support", SecretStr(secret))

    assert SECRET not in f"{first.value}{second.value}"


@pytest.mark.parametrize(
    "repository", ["", "acme", "acme/", "acme/..", "acme/support/x", "../support", "acme/a b", "acme/support\n"]
)
def test_a_repository_that_is_none_is_refused(repository: str) -> None:
    with pytest.raises(ValueError, match="repository"):
        GithubTracker(repository, SecretStr(SECRET))


@both
@pytest.mark.parametrize("number", ["", "../1", "1/../2", "%2e%2e", "\uff11", "1\n"])
async def test_a_receipt_that_is_no_number_reaches_no_url(kind: Kind, number: str) -> None:
    sent: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={})

    with pytest.raises(PermanentError) as caught:
        tracker = kind("http://tracker.test", handler)
        await tracker.close(TicketReceipt(id=number), job=a_job(), connection=None)

    assert (caught.value.category, sent) == (Category.INVALID_INPUT, [])
