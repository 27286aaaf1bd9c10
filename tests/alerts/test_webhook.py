"""The webhook keeps to Standard Webhooks 1.0.0, and goes nowhere that it was not allowed to go."""

import asyncio
import base64
import ipaddress
import json
import shutil
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from agentjobs.alerts.addresses import Forbidden, Place, allowed_addresses, checked_place, is_public
from agentjobs.alerts.message import webhook_body
from agentjobs.alerts.signing import Signer
from agentjobs.alerts.sink import NotTaken, Refusal
from agentjobs.alerts.webhook import WebhookSink
from agentjobs.domain.alerts import AlertKind
from agentjobs.stack.ports import free_port
from tests.alerts.receiver import OTHER_SECRET, SECRET, Receiver, receiving
from tests.alerts.test_grouping import NOW, alert


def sink(url: str, secrets: str = SECRET) -> WebhookSink:
    """A sink that signs with these secrets."""
    return WebhookSink(url, Signer(SecretStr(secrets)), links_base="https://jobs.example.org/")


async def refused(url: str) -> NotTaken:
    """How an alert that goes there fails."""
    one = sink(url)
    try:
        with pytest.raises(NotTaken) as caught:
            await one.deliver(alert())
        return caught.value
    finally:
        await one.aclose()


async def test_an_alert_is_posted_with_id_timestamp_and_signature(receiver: Receiver) -> None:
    one = sink(receiver.url)
    before = int(datetime.now(UTC).timestamp())

    taken = await one.deliver(alert())
    await one.aclose()

    (request,) = receiver.received
    assert taken.status == 204
    assert request.head == "POST /hook HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.id == "alert_1"
    assert before <= int(request.headers["webhook-timestamp"]) <= before + 60
    assert request.is_signed_with(SECRET)
    assert not request.is_signed_with(OTHER_SECRET)


def test_the_signature_is_the_one_of_the_standards_own_example() -> None:
    # Standard Webhooks 1.0.0, reference implementations: the vector that all of their tests share.
    signer = Signer(SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))

    signature = signer.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')

    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_while_a_secret_is_rotated_receivers_of_both_can_verify(receiver: Receiver) -> None:
    one = sink(receiver.url, f"{OTHER_SECRET}, {SECRET}")

    await one.deliver(alert())
    await one.aclose()

    assert [receiver.received[0].is_signed_with(secret) for secret in (SECRET, OTHER_SECRET)] == [True, True]


def test_the_body_is_thin_and_has_type_timestamp_and_data() -> None:
    ids = tuple(f"{number:064}" for number in range(10))
    body = webhook_body(
        alert(kind=AlertKind.JOBS_DIED, letter_count=2_000, shown_ids=ids), "https://jobs.example.org/"
    )

    document = json.loads(body)
    assert len(body) < 20_000
    assert sorted(document) == ["data", "timestamp", "type"]
    assert (document["type"], document["timestamp"]) == ("jobs.died", NOW.isoformat())
    assert document["data"]["count"] == 2_000
    assert document["data"]["links"][0] == f"https://jobs.example.org/v1/dead-letters/{ids[0]}"
    assert set(document["data"]) == {
        "alert", "tenant", "agent", "reason", "count", "in_doubt", "first_died_at", "last_died_at", "jobs",
        "links",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "refusal"),
    [
        (400, Refusal.LATER),
        (404, Refusal.LATER),
        (410, Refusal.NEVER_AGAIN),
        (429, Refusal.SLOWER),
        (500, Refusal.LATER),
        (502, Refusal.SLOWER),
        (504, Refusal.SLOWER),
    ],
)
async def test_only_2xx_is_success(receiver: Receiver, status: int, refusal: Refusal) -> None:
    receiver.status = status
    receiver.headers = {"Retry-After": "120"}

    error = await refused(receiver.url)

    assert (error.status, error.refusal, error.asked_seconds) == (status, refusal, 120)


async def test_a_redirect_is_no_success_and_is_not_followed(receiver: Receiver) -> None:
    async with receiving() as elsewhere:
        receiver.status = 307
        receiver.headers = {"Location": elsewhere.url}

        error = await refused(receiver.url)

    assert (error.status, elsewhere.received) == (307, [])


async def test_a_receiver_that_is_down_is_told_later() -> None:
    error = await refused(f"http://127.0.0.1:{free_port()}/hook")

    assert (error.refusal, error.status) == (Refusal.LATER, None)


async def test_a_receiver_that_never_answers_is_given_up_for_now(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = asyncio.Event()
    receiver.before = lambda _: never.wait()  # type: ignore[assignment, return-value]
    monkeypatch.setattr("agentjobs.alerts.webhook.WHOLE_SECONDS", 0.3)

    error = await refused(receiver.url)
    never.set()

    assert (error.refusal, str(error)) == (Refusal.LATER, "no answer (TimeoutError)")


@pytest.mark.parametrize(
    "secrets",
    [
        "",
        "not-a-secret",
        "whsec_***",
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
        f"{SECRET},whsec_short",
    ],
)
def test_a_secret_that_is_none_is_refused_without_being_quoted(secrets: str) -> None:
    with pytest.raises(ValueError, match=r"secret|whsec_") as caught:
        Signer(SecretStr(secrets))

    assert secrets.removeprefix("whsec_") not in str(caught.value) or not secrets


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/hook",
        "http://10.0.0.1/hook",
        "ftp://example.org/",
        "https:///path",
        "https://user:pass@example.org/",
        "https://example.org/#part",
    ],
)
def test_an_address_that_is_no_https_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ValueError, match="a webhook") as caught:
        checked_place(url, private=False)

    assert "example" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "10.1.2.3", "127.0.0.1", "169.254.169.254", "192.168.0.1", "172.16.0.1", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1",
        "64:ff9b::a00:1", "2002:7f00:1::", "255.255.255.255",
    ],
)  # fmt: skip
async def test_an_address_inside_is_not_public(address: str) -> None:
    host = f"[{address}]" if ":" in address else address

    assert not is_public(ipaddress.ip_address(address))
    if not ipaddress.ip_address(address).is_loopback:
        with pytest.raises(Forbidden):
            await allowed_addresses(Place.of(f"https://{host}/"), private=False)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


async def test_a_name_that_leads_inside_is_found_at_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place.of("https://hooks.example.org/")
    answers = iter([["93.184.215.14"], ["93.184.215.14", "10.0.0.7"], ["127.0.0.1"]])

    async def looked_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [(2, 1, 6, "", (address, port)) for address in next(answers)]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", looked_up)

    public = await allowed_addresses(place, private=False)
    for _ in range(2):
        with pytest.raises(Forbidden):
            await allowed_addresses(place, private=False)

    assert [str(address) for address in public] == ["93.184.215.14"]
    assert place.at(public[0]) == "https://93.184.215.14:443/"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://10.0.0.7/", True),
        ("https://10.0.0.7/", True),
        ("http://[fd00::7]/", True),
        ("http://93.184.215.14/", False),
        ("https://169.254.169.254/", False),
        ("https://0.0.0.0/", False),
    ],
)
async def test_with_the_setting_a_webhook_goes_inside_but_not_openly_outside(url: str, allowed: bool) -> None:
    place = checked_place(url, private=True)

    try:
        found = bool(await allowed_addresses(place, private=True))
    except Forbidden:
        found = False

    assert found is allowed


async def test_the_sink_refuses_what_is_forbidden_and_sends_nothing(receiver: Receiver) -> None:
    one = WebhookSink(f"https://10.255.255.1:{receiver.port}/", Signer(SecretStr(SECRET)))

    with pytest.raises(NotTaken, match="AGENTJOBS_ALERT_WEBHOOK_PRIVATE"):
        await one.deliver(alert())
    await one.aclose()

    assert receiver.received == []


def certificate_for(name: str, folder: Path) -> Path:
    """A certificate of its own authority, with its key, in one file."""
    file, key = folder / f"{name}.pem", folder / f"{name}.key"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"]
    words += ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(file)]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + key.read_bytes())
    return file


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
@pytest.mark.parametrize("name", ["localhost", "elsewhere.example.org"])
async def test_the_certificate_must_be_the_names_although_the_address_is_connected_to(
    tmp_path: Path, name: str
) -> None:
    file = certificate_for(name, tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    async with receiving(serving) as receiver:
        url = f"https://localhost:{receiver.port}/hook"
        one = WebhookSink(url, Signer(SecretStr(SECRET)), tls=ssl.create_default_context(cafile=str(file)))

        try:
            status = (await one.deliver(alert())).status
        except NotTaken as error:
            status = error.status
        await one.aclose()

    assert (status, len(receiver.received)) == ((204, 1) if name == "localhost" else (None, 0))


def test_another_address_is_another_sink() -> None:
    names = {sink(f"https://example.org/{path}").name for path in ("a", "b", "a")}

    assert len(names) == 2
