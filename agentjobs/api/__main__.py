"""The API as a process: `python -m agentjobs.api`."""

import socket
import sys

import uvicorn

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.api.app import create_app
from agentjobs.ledger.ledger import Ledger
from agentjobs.processes import started
from agentjobs.settings import Settings, StartError

GRACE_SECONDS = 10
"""How long requests in flight may take at the end: each is one statement."""


async def serve(settings: Settings) -> None:
    """Answer until SIGTERM or SIGINT; then finish the requests in flight."""
    listening = _listen(settings.api_host, settings.api_port)
    ledger = await Ledger.open(settings.dsn, size=settings.database_pool_size, application_name="agentjobs-api")
    try:
        app = create_app(ledger, built_in_agents(), temporal_ui_url=settings.temporal_ui_url)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,  # ours is an event with the route and no query
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=16 * 1024,
        )
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        await ledger.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        why = f"cannot listen on {host}:{port} ({error.strerror}); set AGENTJOBS_API_PORT to a free port"
        raise StartError(why) from None
    return listening


if __name__ == "__main__":
    sys.exit(started("api", serve))
