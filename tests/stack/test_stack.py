"""The whole stack with real servers and dummy programs."""

import socket
from collections.abc import AsyncIterator

import asyncpg
import psutil
import pytest
from temporalio.client import Client

from agentjobs.stack.errors import PortTakenError
from agentjobs.stack.info import StackInfo
from agentjobs.stack.options import StackOptions
from agentjobs.stack.ports import is_free
from agentjobs.stack.stack import Stack, running_stack
from tests.stack.conftest import options_for, temporary_home
from tests.stack.dummies import dummy_programs, prepare


@pytest.fixture(scope="module")
async def stack() -> AsyncIterator[Stack]:
    with temporary_home() as home:
        async with running_stack(options_for(home), prepare, dummy_programs) as running:
            yield running


def published(stack: Stack) -> StackInfo:
    return StackInfo.model_validate_json((stack.home.path / "stack.json").read_text())


async def value(stack: Stack, statement: str) -> object:
    session = await asyncpg.connect(stack.info.database)
    try:
        return await session.fetchval(statement)
    finally:
        await session.close()


def listening(stack: Stack) -> set[tuple[str, int]]:
    sockets = [at for pid in stack.info.pids.values() for at in psutil.Process(pid).net_connections("inet")]
    return {(at.laddr.ip, at.laddr.port) for at in sockets if at.status == psutil.CONN_LISTEN}


async def test_stack_json_says_where_everything_is(stack: Stack) -> None:
    told = published(stack)

    assert told == stack.info
    assert list(told.pids) == ["postgres", "temporal", "api", "relay", "worker-1"]
    assert told.console == f"{told.api}/console/"
    assert told.metrics == {"api": f"{told.api}/metrics"}


async def test_a_crashed_child_is_started_again_and_stack_json_follows(stack: Stack) -> None:
    before = published(stack)
    await value(stack, "CREATE TABLE marks AS SELECT 42 AS n")

    for name in ("postgres", "temporal", "worker-1"):
        await stack.kill(name)
        await stack.until_ready(name)

    after = published(stack)
    changed = {name for name in before.pids if before.pids[name] != after.pids[name]}
    assert changed == {"postgres", "temporal", "worker-1"}
    assert await value(stack, "SELECT n FROM marks") == 42
    assert "rror" not in (stack.home.logs / "temporal.log").read_text()  # search attributes registered twice


async def test_temporal_can_be_held_down_and_started_again(stack: Stack) -> None:
    host, port = stack.info.temporal.split(":")
    await stack.stop_child("temporal")
    assert is_free(int(port))
    assert "temporal" not in published(stack).pids

    await stack.start_child("temporal")

    client = await Client.connect(f"{host}:{port}")
    assert (await client.count_workflows("JobState = 'running'")).count == 0


async def test_two_stacks_run_side_by_side_on_loopback_only(stack: Stack, options: StackOptions) -> None:
    async with running_stack(options, prepare, dummy_programs) as other:
        addresses = listening(stack) | listening(other)

        assert {ip for ip, _ in addresses} == {"127.0.0.1"}
        assert set(options.ports.values()) <= {port for _, port in addresses}
        assert await value(stack, "SELECT 1") == await value(other, "SELECT 1") == 1


async def test_an_occupied_port_is_told_before_anything_starts(options: StackOptions) -> None:
    with (
        socket.create_server(("127.0.0.1", options.temporal_port)),
        pytest.raises(PortTakenError, match="--temporal-port"),
    ):
        async with running_stack(options, prepare, dummy_programs):
            pass

    assert not (options.home / "postgres").exists()
