"""The whole embedded stack, as a user starts it: every part its own process."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentjobs.commands.dev_tenant import prepare_dev_tenant
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.options import StackOptions
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.stack import Stack, running_stack
from tests.ports import free_ports

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


async def run(*words: str, environment: dict[str, str] | None = None, said: str = "") -> Ended:
    """A command of ours as a process of its own, to its end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTJOBS_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        cwd=CHECKOUT,
        env=kept | (environment or {}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(120):
        out, err = await process.communicate(said.encode())
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@dataclass
class Running:
    """A running stack with what a test needs of it."""

    stack: Stack
    ledger: Ledger
    home: Path

    async def starter(self, *words: str, said: str = "") -> Ended:
        """`python starter.py ...` for this stack."""
        return await run("starter.py", *words, environment={"AGENTJOBS_HOME": str(self.home)}, said=said)

    async def submit(self, text: str, *options: str) -> str:
        """Submit by the command line; the job's id."""
        ended = await self.starter("submit", text, "--json", *options)
        assert ended.code == 0, ended.err
        job_id: str = json.loads(ended.out)["id"]
        return job_id


def options_for(home: Path, workers: int = 1, **environment: str) -> StackOptions:
    """A stack on ports of its own."""
    postgres, temporal, ui, api = free_ports(4)
    return StackOptions(
        home=home,
        postgres_port=postgres,
        temporal_port=temporal,
        ui_port=ui,
        api_port=api,
        workers=workers,
        # One user submits whatever a test needs; tests of quotas set their own.
        extra_env={"AGENTJOBS_QUOTA_IN_FLIGHT": "0", "AGENTJOBS_QUOTA_PER_MINUTE": "0", **environment},
    )


def started(options: StackOptions) -> AbstractAsyncContextManager[Stack]:
    """The stack as `starter.py dev` starts it."""
    return running_stack(options, prepare_dev_tenant)


@pytest.fixture(scope="package")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """One stack with two workers for all tests that leave it running as they found it."""
    home = tmp_path_factory.mktemp("stack")
    async with started(options_for(home, workers=2)) as stack:
        ledger = await Ledger.open(stack.info.database, size=4, application_name="tests")
        yield Running(stack, ledger, home)
        await ledger.close()
    EmbeddedPostgres(home, 1).remove()
