"""The OpenAPI document against what runs: requests that it allows and requests that it does not, by Schemathesis.

Every operation, every check, sequences of requests too. SCHEMATHESIS_CASES=100 tries more of each kind.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.conftest import fresh_database
from tests.ledger.scene import Scene
from tests.served import CHECKOUT, served_api

CONFIG = Path(__file__).with_name("schemathesis.toml")
CASES = int(os.environ.get("SCHEMATHESIS_CASES", "5"))
LETTERS = 8
UNLIMITED = {"AGENTJOBS_QUOTA_IN_FLIGHT": "0", "AGENTJOBS_QUOTA_PER_MINUTE": "0"}


@pytest.fixture
async def address(
    postgres: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """An API over dead letters, and in the environment the key of somebody with all roles in their own tenant."""
    async with fresh_database(postgres) as url:
        ledger = await Ledger.open(url, size=2, application_name="tests")
        for tenant in ("first", "acme"):  # the first admin may make keys for other tenants, and cannot see them
            await ledger.identity.create_tenant(tenant)
            key, _ = await ledger.identity.create_key(tenant, "ann", frozenset(Role))
        for number in range(1, LETTERS + 1):
            await Scene(ledger).dead(id=f"dead-{number}")
        await ledger.close()
        monkeypatch.setenv("AGENTJOBS_API_KEY", key)
        settings = UNLIMITED | {"AGENTJOBS_METRICS_TOKEN": key}
        async with served_api(url, tmp_path / "api.log", **settings) as served:
            yield served


@pytest.mark.timeout(600 + 60 * CASES)  # half a minute, if the machine does nothing else
async def test_the_document_and_the_api_agree(address: str, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("schemathesis")
    words = [
        "--config-file",
        str(CONFIG),
        "--no-color",
        "run",
        f"{address}/openapi.json",
        "--max-examples",
        str(CASES),
    ]
    trying = await asyncio.create_subprocess_exec(
        *(str(program), *words),
        cwd=tmp_path,  # it leaves notes of its own
        env=os.environ | {"SCHEMATHESIS_HOOKS": "tests.api.schemathesis_hooks", "PYTHONPATH": str(CHECKOUT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )

    said, _ = await trying.communicate()

    assert trying.returncode == 0, said.decode()
