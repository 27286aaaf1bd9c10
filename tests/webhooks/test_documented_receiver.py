"""The receiver of docs/webhooks.md, as it stands there, takes what we send and refuses what we did not."""

import http.server
import threading
import time
from collections.abc import Iterator
from types import ModuleType

import pytest
from pydantic import SecretStr

from agentjobs.webhooks.sending import Message
from agentjobs.webhooks.signing import Signer
from tests.alerts.receiver import OTHER_SECRET, SECRET
from tests.docs.pages import DOCS, marked_block
from tests.webhooks.hooks import Hooks


@pytest.fixture
def documented(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The documented receiver, running; its address."""
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    module = ModuleType("receiver")
    exec(marked_block(DOCS / "webhooks.md", "webhook: receiver"), module.__dict__)
    monkeypatch.setattr(module.Receiver, "log_message", lambda *_: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), module.Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_it_takes_a_delivery_and_a_repetition_does_nothing(
    hooks: Hooks, documented: str, capsys: pytest.CaptureFixture[str]
) -> None:
    webhook = await hooks.add(documented)
    job_id = await hooks.scene.dead()
    await hooks.lane.run_once()
    delivery = await hooks.only(webhook)

    await hooks.scene.ledger.webhook_deliveries.replay("acme", webhook.id, delivery.id, actor="adam")
    await hooks.lane.run_once()

    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("job.dead")]
    assert (await hooks.only(webhook)).last_status == 204
    assert (await hooks.only(webhook)).attempts == 2
    assert len(printed) == 1
    assert job_id in printed[0]


@pytest.mark.parametrize(
    ("off_seconds", "secret", "sent", "status"),
    [
        (0, SECRET, b'{"type":"t","data":{}}', 204),
        (-600, SECRET, b'{"type":"t","data":{}}', 401),
        (600, SECRET, b'{"type":"t","data":{}}', 401),
        (0, OTHER_SECRET, b'{"type":"t","data":{}}', 401),
        (0, SECRET, b'{"type":"t","data":{"changed":1}}', 401),
    ],
    ids=["as it was signed", "ten minutes old", "ten minutes ahead", "another secret", "tampered with"],
)
async def test_it_refuses_what_is_old_or_changed_or_not_ours(
    hooks: Hooks, documented: str, off_seconds: int, secret: str, sent: bytes, status: int
) -> None:
    now = int(time.time())
    signer = _Signed(secret, b'{"type":"t","data":{}}')

    answer = await hooks.sender.send(documented, signer, Message("msg_1", now + off_seconds, sent))

    assert answer.status == status


class _Signed(Signer):
    """Signs this body, whatever is sent."""

    def __init__(self, secret: str, body: bytes) -> None:
        super().__init__(SecretStr(secret))
        self._body = body

    def signature(self, message_id: str, timestamp: int, body: bytes) -> str:
        """Of the body that was to be sent."""
        return super().signature(message_id, timestamp, self._body)
