"""One attempt: it goes to an address that was checked and nowhere else, and no receiver can hold it for long."""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable

import pytest
from pydantic import SecretStr

from agentjobs.domain.webhooks import Answer
from agentjobs.webhooks.addresses import Address
from agentjobs.webhooks.places import Forbidden
from agentjobs.webhooks.sending import Message, Sender, Unreachable
from agentjobs.webhooks.signing import Signer, new_secret
from tests.alerts.receiver import SECRET, Receiver, receiving
from tests.ports import free_port
from tests.webhooks.hooks import leading_to, sending

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

SIGNER = Signer(SecretStr(SECRET))
MESSAGE = Message("msg_1", 1_614_265_330, b"{}")
HERE = ipaddress.ip_address("127.0.0.1")
PUBLIC = ipaddress.ip_address("93.184.215.14")


class Flipping:
    """A name server that answers each question differently; the last answer stays."""

    def __init__(self, *answers: list[Address]) -> None:
        self._answers = list(answers)
        self.questions = 0

    async def __call__(self, host: str, port: int) -> list[Address]:
        self.questions += 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def test_the_signature_is_the_one_of_the_standards_own_example() -> None:
    # Standard Webhooks 1.0.0, reference implementations: the vector that all of their tests share.
    signer = Signer(SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))

    signature = signer.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')

    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "secrets", ["", "not-a-secret", "whsec_***", "whsec_c2hvcnQ=", f"{SECRET},whsec_short", "whsec_" + "QUFB" * 22]
)
def test_a_secret_that_is_none_is_refused_without_being_quoted(secrets: str) -> None:
    with pytest.raises(ValueError, match=r"secret|whsec_") as caught:
        Signer(SecretStr(secrets))

    assert secrets.removeprefix("whsec_") not in str(caught.value) or not secrets


def test_new_secrets_can_sign_and_differ_and_do_not_show_themselves() -> None:
    first, second = new_secret(), new_secret()

    assert Signer(first).signature("m", 1, b"") != Signer(second).signature("m", 1, b"")
    assert first.get_secret_value().removeprefix("whsec_") not in repr(first)


@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.7"], ["93.184.215.14", "127.0.0.1"], ["169.254.169.254"], ["::ffff:10.0.0.7"], ["64:ff9b::a00:7"]],
)
async def test_a_name_that_leads_inside_is_refused_even_if_it_also_leads_outside(addresses: list[str]) -> None:
    look_up = leading_to(*(ipaddress.ip_address(address) for address in addresses))

    async with sending(private=False, look_up=look_up) as sender:
        with pytest.raises(Forbidden):
            await sender.send("https://hooks.example.org/", SIGNER, MESSAGE)


async def test_a_name_is_looked_up_and_checked_at_every_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Address] = []

    async def post(_: object, __: object, address: Address, *___: object) -> Answer:
        sent.append(address)
        return Answer(status=204)

    monkeypatch.setattr(Sender, "_post", post)
    names = Flipping([PUBLIC], [HERE])

    async with sending(private=False, look_up=names) as sender:
        await sender.send("https://hooks.example.org/", SIGNER, MESSAGE)
        for _ in range(2):
            with pytest.raises(Forbidden):
                await sender.send("https://hooks.example.org/", SIGNER, MESSAGE)

    assert (sent, names.questions) == ([PUBLIC], 3)


async def test_what_was_checked_is_connected_to_without_a_second_look_up(receiver: Receiver) -> None:
    names = Flipping([HERE], [ipaddress.ip_address("10.255.255.1")])

    async with sending(look_up=names) as sender:
        answer = await sender.send(f"http://localhost:{receiver.port}/hook", SIGNER, MESSAGE)

    assert (answer.status, names.questions) == (204, 1)
    assert receiver.received[0].headers["host"] == f"localhost:{receiver.port}"


async def test_a_setting_that_changed_counts_for_what_was_stored_before(receiver: Receiver) -> None:
    async with sending(private=False) as sender:
        for url in (receiver.url, f"https://localhost:{receiver.port}/", "https://example.org:9000/"):
            with pytest.raises(Forbidden):
                await sender.send(url, SIGNER, MESSAGE)

    assert receiver.received == []


async def test_a_proxy_of_the_environment_is_not_asked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as proxy, sending() as sender:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with sending() as started_with_it:
            answers = [await one.send(receiver.url, SIGNER, MESSAGE) for one in (sender, started_with_it)]

    assert [answer.status for answer in answers] == [204, 204]
    assert proxy.received == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_nowhere(receiver: Receiver, status: int) -> None:
    async with receiving() as inside, sending() as sender:
        receiver.status, receiver.headers = status, {"Location": inside.url}

        answer = await sender.send(receiver.url, SIGNER, MESSAGE)

    assert (answer.status, answer.is_success, inside.received) == (status, False, [])


async def test_the_next_address_of_a_name_is_tried_when_one_does_not_answer(receiver: Receiver) -> None:
    both = leading_to(ipaddress.ip_address("127.0.0.2"), HERE)  # nobody listens at the first

    async with sending(look_up=both) as sender:
        answer = await sender.send(f"http://localhost:{receiver.port}/hook", SIGNER, MESSAGE)

    assert (answer.status, len(receiver.received)) == (204, 1)


async def endless_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A gigabyte, as fast as it is taken."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    for _ in range(1_024):
        writer.write(b"x" * 1_048_576)
        await writer.drain()


async def slow_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A first line, and then nothing."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
    await asyncio.sleep(3600)


async def endless_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Headers without an end, as fast as they are taken."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-More: " + b"x" * 1_000 + b"\r\n")
        await writer.drain()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """It takes the request and says nothing."""
    await asyncio.sleep(3600)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """It takes the connection and ends it."""
    writer.close()


async def asked(serve: Serve) -> Answer:
    """What a message to such a server comes to."""

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            writer.close()

    server = await asyncio.start_server(quietly, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with sending() as sender:
            return await sender.send(f"http://127.0.0.1:{port}/", SIGNER, MESSAGE)
    finally:
        server.close()


@pytest.mark.parametrize("serve", [endless_body, slow_body])
async def test_the_body_of_an_answer_is_not_waited_for(serve: Serve) -> None:
    async with asyncio.timeout(5):
        answer = await asked(serve)

    assert answer.status == 200


@pytest.mark.parametrize("serve", [silent, endless_headers, hang_up])
async def test_who_gives_no_answer_is_unreachable_in_bounded_time(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentjobs.webhooks.sending.WHOLE_SECONDS", 0.5)

    async with asyncio.timeout(5):
        with pytest.raises(Unreachable):
            await asked(serve)


async def test_a_look_up_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(host: str, port: int) -> list[Address]:
        await asyncio.sleep(3600)
        return []

    monkeypatch.setattr("agentjobs.webhooks.sending.WHOLE_SECONDS", 0.2)

    async with sending(private=False, look_up=never) as sender:
        with pytest.raises(Unreachable):
            await sender.send("https://hooks.example.org/", SIGNER, MESSAGE)


async def test_a_closed_port_a_name_of_nobody_and_an_empty_answer_are_all_unreachable() -> None:
    async with sending() as sender:
        for url in (f"http://127.0.0.1:{free_port()}/", "https://nobody.invalid/"):
            with pytest.raises(Unreachable):
                await sender.send(url, SIGNER, MESSAGE)
    async with sending(private=False, look_up=leading_to()) as sender:
        with pytest.raises(Unreachable):
            await sender.send("https://hooks.example.org/", SIGNER, MESSAGE)


async def test_each_connection_is_for_one_message_since_its_certificate_was_checked_for_one_name() -> None:
    connections = 0

    async def keeps_open(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while not reader.at_eof():
            await reader.readuntil(b"{}")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    server = await asyncio.start_server(keeps_open, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with sending(look_up=leading_to(HERE)) as sender:
        answers = [
            await sender.send(f"http://{host}:{port}/", SIGNER, MESSAGE) for host in ("localhost", "127.0.0.1")
        ]
    server.close()

    assert ([answer.status for answer in answers], connections) == ([200, 200], 2)
