"""Where the tests go: to the deployment that the environment names, or else to a stack of their own."""

import os
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.conformance.deployment import Caller, Deployment

PREFIX = "AGENTJOBS_CONFORMANCE_"


@pytest.fixture(scope="session")
async def deployment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    """The deployment under test."""
    if f"{PREFIX}URL" in os.environ:
        given = _given()
        yield given
        await given.close()
        return
    from tests.e2e.conftest import options_for, started  # elsewhere there is nothing to start

    options = options_for(tmp_path_factory.mktemp("stack"), AGENTJOBS_QUOTA_IN_FLIGHT="10")
    async with started(options) as stack:
        other = _key_of_another_tenant(stack.info.api, stack.info.admin_key)
        own = Deployment(stack.info.api, stack.info.api_key, other, stack.info.admin_key)
        yield own
        await own.close()


def _given() -> Deployment:
    url, key, other_key = (os.environ[PREFIX + name] for name in ("URL", "KEY", "OTHER_KEY"))
    return Deployment(url.rstrip("/"), key, other_key, os.environ.get(f"{PREFIX}ADMIN_KEY"))


def _key_of_another_tenant(url: str, admin_key: str) -> str:
    wanted = {"tenant": "conformance-other", "user": "otto", "roles": ["submit", "review", "admin"]}
    headers = {"Authorization": f"Bearer {admin_key}"}
    answer = httpx.post(f"{url}/v1/keys", json=wanted, headers=headers, trust_env=False)
    assert answer.status_code == 201, answer.text
    key: str = answer.json()["key"]
    return key


@pytest.fixture
async def caller(deployment: Deployment) -> Caller:
    """One who may submit."""
    return await deployment.caller(deployment.key)


@pytest.fixture
async def other(deployment: Deployment) -> Caller:
    """One of another tenant."""
    return await deployment.caller(deployment.other_key)


@pytest.fixture
async def stranger(deployment: Deployment) -> Caller:
    """One without a key."""
    return await deployment.caller(None)


@pytest.fixture
async def admin(deployment: Deployment) -> Caller:
    """One with the roles review and admin, of the caller's tenant."""
    if deployment.admin_key is None:
        pytest.skip(f"needs {PREFIX}ADMIN_KEY")
    return await deployment.caller(deployment.admin_key)


@pytest.fixture
async def newcomer(deployment: Deployment, admin: Caller, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    """A user who may submit, and whose jobs may have no effect: no action is granted."""
    wanted = {"user": "conformance-newcomer", "roles": ["submit"], "expires_in_seconds": 3600}
    made = (await admin.post("/v1/keys", wanted)).json()
    yield await deployment.caller(made["key"])
    await admin.http.delete(f"/v1/keys/{made['id']}")
