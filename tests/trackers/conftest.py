"""The destinations: a database, a Roundup server and a double of GitHub, each a session long or a test long."""

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.trackers.github import GithubTracker
from agentjobs.trackers.postgres import PostgresTracker
from agentjobs.trackers.roundup import RoundupTracker
from tests.conftest import fresh_database
from tests.trackers.github_double import REPOSITORY, TOKEN, GithubDouble
from tests.trackers.places import TENANTS, GithubPlace, Place, PostgresPlace, RoundupPlace
from tests.trackers.roundup_server import PASSWORD, USER, RoundupServer


@pytest.fixture(scope="session")
async def postgres_place(postgres: EmbeddedPostgres) -> AsyncIterator[PostgresPlace]:
    """Tickets in a database for all tests of this folder."""
    async with fresh_database(postgres) as url:
        ledger = await Ledger.open(url, size=10, application_name="tests")
        for tenant in TENANTS:
            await ledger.identity.create_tenant(tenant)
        yield PostgresPlace(ledger, PostgresTracker(ledger.tickets))
        await ledger.close()


@pytest.fixture(scope="session")
async def roundup_server() -> AsyncIterator[RoundupServer]:
    """A Roundup server for all tests of this folder."""
    async with RoundupServer.running() as server:
        yield server


@pytest.fixture
async def roundup(roundup_server: RoundupServer) -> AsyncIterator[RoundupPlace]:
    """A tracker on the Roundup server."""
    tracker = RoundupTracker(roundup_server.url, USER, SecretStr(PASSWORD))
    yield RoundupPlace(roundup_server, tracker)
    await tracker.aclose()


@pytest.fixture
async def github() -> AsyncIterator[GithubPlace]:
    """A tracker on a double of its own."""
    async with GithubDouble.running() as double:
        tracker = GithubTracker(REPOSITORY, SecretStr(TOKEN), base_url=double.base_url)
        yield GithubPlace(double, tracker)
        await tracker.aclose()


@pytest.fixture(params=["postgres", "roundup", "github"])
def place(
    request: pytest.FixtureRequest,
    postgres_place: PostgresPlace,
    roundup: RoundupPlace,
    github: GithubPlace,
) -> Place:
    """Each destination in turn."""
    places: dict[str, Place] = {"postgres": postgres_place, "roundup": roundup, "github": github}
    return places[request.param]
