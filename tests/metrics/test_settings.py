"""Where metrics are served, and to whom: refused where it cannot be, closed in production."""

import socket

import pytest

from agentjobs.settings import SettingsError, StartError, load
from agentjobs.temporal import connect

DSN = "postgresql://agentjobs:x@127.0.0.1/agentjobs"


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTJOBS_DATABASE_URL", DSN)


@pytest.mark.parametrize("address", ["9101", "localhost:9101", "127.0.0.1", ":9101", "[::1]9101"])
def test_an_address_that_is_none_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("AGENTJOBS_METRICS_ADDRESS", address)

    with pytest.raises(SettingsError, match="AGENTJOBS_METRICS_ADDRESS"):
        load()


@pytest.mark.parametrize("address", ["127.0.0.1:9101", "0.0.0.0:9101", "[::1]:9101"])
def test_an_address_is_taken(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("AGENTJOBS_METRICS_ADDRESS", address)

    assert load().metrics_address == address


def test_a_short_token_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTJOBS_METRICS_TOKEN", "hunter2")

    with pytest.raises(SettingsError, match="AGENTJOBS_METRICS_TOKEN") as refused:
        load()

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("environment", "host", "is_open"),
    [
        ("production", "127.0.0.1", False),
        ("dev", "127.0.0.1", True),
        ("test", "127.0.0.1", True),
        ("dev", "0.0.0.0", False),
    ],
)
def test_without_a_token_it_is_open_only_on_a_developers_own_machine(
    monkeypatch: pytest.MonkeyPatch, environment: str, host: str, is_open: bool
) -> None:
    monkeypatch.setenv("AGENTJOBS_ENVIRONMENT", environment)
    monkeypatch.setenv("AGENTJOBS_API_HOST", host)

    assert load().metrics_open is is_open


async def test_an_occupied_address_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(StartError, match=f"cannot listen on {address}; set AGENTJOBS_METRICS_ADDRESS"):
            await connect(address)
