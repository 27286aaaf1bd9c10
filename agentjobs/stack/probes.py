"""How the supervisor finds out that a child is ready: by asking for what its users will ask for."""

import ssl

import asyncpg
import httpx

from agentjobs.stack.children import Child, Probe

# One attempt's limit: a child that accepts and does not answer must not stop the asking.
ATTEMPT_SECONDS = 2.0


def alive_for(seconds: float) -> Probe:
    """Ready when it has not exited by then: enough to catch a bad setting, which ends a process at once."""

    async def probe(child: Child) -> bool:
        return child.age_seconds >= seconds

    return probe


def log_line(text: str) -> Probe:
    """Ready when it has said so in its log."""

    async def probe(child: Child) -> bool:
        return text in child.output()

    return probe


def http_answer(url: str, containing: tuple[str, ...] = ()) -> Probe:
    """Ready when the address answers 200 with each of these words in the body."""

    async def probe(_: Child) -> bool:
        async with _plain_client() as client:
            try:
                reply = await client.get(url)
            except httpx.HTTPError:
                return False
        return reply.status_code == 200 and all(word in reply.text for word in containing)

    return probe


def postgres_session(dsn: str) -> Probe:
    """Ready when a session can be opened: the port alone is open while crash recovery still runs."""

    async def probe(_: Child) -> bool:
        try:
            session = await asyncpg.connect(dsn, timeout=ATTEMPT_SECONDS, ssl=False)
        except (OSError, TimeoutError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError):
            return False
        await session.close()
        return True

    return probe


def _plain_client() -> httpx.AsyncClient:
    # Loopback and plain HTTP: no proxy from the environment, and no second spent on loading certificates.
    return httpx.AsyncClient(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False, timeout=ATTEMPT_SECONDS
    )
