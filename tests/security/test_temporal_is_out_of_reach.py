"""S16, S17, S25, S26: nothing passes a request on to Temporal, and Temporal passes on only what is meant."""

import asyncio
import sys
from dataclasses import dataclass
from typing import Any, cast

import pytest
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client

from agentjobs.ledger.ledger import Ledger
from agentjobs.temporal import DATA_CONVERTER
from tests.served import CHECKOUT
from tests.world import World

SHOWN = """
import sys, agentjobs.api.__main__
print(*{name.partition(".")[0] for name in sys.modules} & {"temporalio", "workflows", "activities"})
"""


@dataclass
class Wanted:
    """What a workflow might be given."""

    job_id: str


async def test_the_api_has_no_client_of_temporal() -> None:
    shown = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SHOWN), cwd=CHECKOUT, stdout=asyncio.subprocess.PIPE
    )

    said, _ = await shown.communicate()

    assert (shown.returncode, said.decode().strip()) == (0, "")


async def test_a_worker_takes_only_what_has_a_name(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(ledger, cast(Client, None), "acme")
    given: dict[str, list[Any]] = {}

    class Seen:
        def __init__(self, *_: object, **named: list[Any]) -> None:
            given.update(named)

        async def __aenter__(self) -> None:
            raise asyncio.CancelledError

        async def __aexit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("worker.Worker", Seen)
    with pytest.raises(asyncio.CancelledError):
        async with world.running():
            pass

    names = [
        *(activity._Definition.must_from_callable(one).name for one in given["activities"]),
        *(workflow._Definition.must_from_class(one).name for one in given["workflows"]),
    ]
    assert len(names) > 10
    # A dynamic one, which takes whatever is asked of it, has none.
    assert all(names)


@pytest.mark.parametrize(
    "encoding", ["binary/plain", "binary/protobuf", "json/protobuf", "binary/encrypted", "python/pickle", ""]
)
def test_a_payload_that_is_no_json_is_refused(encoding: str) -> None:
    metadata = {"encoding": encoding.encode(), "messageType": b"temporal.api.common.v1.Payload"}
    planted = Payload(metadata=metadata, data=b'{"job_id":"x"}')

    with pytest.raises((KeyError, RuntimeError)):
        DATA_CONVERTER.payload_converter.from_payloads([planted], [Wanted])


def test_what_a_workflow_tells_the_temporal_ui_is_written_as_it_reads_it() -> None:
    told = DATA_CONVERTER.payload_converter.to_payloads([WorkflowMetadata(current_details="waits")])

    assert [payload.data for payload in told] == [b'{"currentDetails":"waits"}']
    assert DATA_CONVERTER.payload_converter.from_payloads(told, [WorkflowMetadata])[0].current_details == "waits"
    with pytest.raises(RuntimeError):
        DATA_CONVERTER.payload_converter.from_payloads(told, [Wanted])


@pytest.mark.parametrize(
    "data", [b"", b"{", b'"text"', b"{}", b'{"job_id":7}', b"[" * 100_000], ids=lambda data: ascii(data)[:9]
)
def test_json_of_another_form_is_refused(data: bytes) -> None:
    planted = Payload(metadata={"encoding": b"json/plain"}, data=data)

    with pytest.raises((ValueError, RuntimeError)):
        DATA_CONVERTER.payload_converter.from_payloads([planted], [Wanted])
