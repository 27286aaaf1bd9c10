"""What the driver raises when its database goes away is never taken for a bug of ours."""

import asyncpg
import pytest

from agentjobs.domain.failures import RetryableError
from agentjobs.ledger.database import as_job_error, is_unavailable

AWAY = [
    asyncpg.InternalClientError("got result for unknown protocol state 3"),  # killed within a message
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
    asyncpg.AdminShutdownError("terminating connection"),
    asyncpg.CannotConnectNowError("the database system is starting up"),
    asyncpg.TooManyConnectionsError("sorry, too many clients already"),
    ConnectionRefusedError("refused"),
    ConnectionResetError("reset"),
    TimeoutError(),
]


@pytest.mark.parametrize("error", AWAY, ids=lambda error: type(error).__name__)
def test_a_database_that_is_away_is_waited_for(error: Exception) -> None:
    assert is_unavailable(error)
    assert isinstance(as_job_error(error), RetryableError)


def test_what_is_not_of_the_database_is_left_to_others() -> None:
    assert as_job_error(ValueError("no")) is None
    assert not is_unavailable(ValueError("no"))
