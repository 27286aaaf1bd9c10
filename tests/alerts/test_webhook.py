"""The operator's webhook keeps to Standard Webhooks 1.0.0. Where webhooks may go: tests/webhooks."""

import asyncio
import ipaddress
import json
import shutil
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from agentjobs.alerts.message import webhook_body
from agentjobs.alerts.sink import NotTaken, Refusal
from agentjobs.alerts.webhook import WebhookSink
from agentjobs.domain.alerts import AlertKind
from agentjobs.webhooks.addresses import Address
from agentjobs.webhooks.signing import Signer
from tests.alerts.receiver import OTHER_SECRET, SECRET, Receiver, receiving
from tests.alerts.test_grouping import NOW, alert
from tests.ports import free_port


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


async def test_while_a_secret_is_rotated_receivers_of_both_can_verify(receiver: Receiver) -> None:
    one = sink(receiver.url, f"{OTHER_SECRET}, {SECRET}")

    await one.deliver(alert())
    await one.aclose()

    assert [receiver.received[0].is_signed_with(secret) for secret in (SECRET, OTHER_SECRET)] == [True, True]


def test_the_body_is_thin_and_has_type_timestamp_and_data() -> None:
    ids = tuple(f"{number:064}" for number in range(10))
    body = webhook_body(alert(kind=AlertKind.JOBS_DIED, count=2_000, shown_ids=ids), "https://jobs.example.org/")

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
        (503, Refusal.SLOWER),
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
    monkeypatch.setattr("agentjobs.webhooks.sending.WHOLE_SECONDS", 0.3)

    error = await refused(receiver.url)
    never.set()

    assert (error.refusal, str(error)) == (Refusal.LATER, "no answer (TimeoutError)")


async def test_the_sink_refuses_what_is_forbidden_and_sends_nothing(receiver: Receiver) -> None:
    async def leads_inside(host: str, port: int) -> list[Address]:
        return [ipaddress.ip_address("10.255.255.1")]

    url = f"https://hooks.example.org:{receiver.port}/"
    one = WebhookSink(url, Signer(SecretStr(SECRET)), look_up=leads_inside)

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
