"""The environment of the children: what is passed on, what is set, and what must not get through."""

from collections.abc import Mapping
from pathlib import Path

from agentjobs.stack.options import StackOptions
from agentjobs.stack.ports import LOOPBACK

# TEMPORAL_*: an address, key or TLS setting meant for a cluster elsewhere would be used on, or sent to, the
# embedded one. PG*: libpq's and asyncpg's defaults (PGSSLMODE, PGOPTIONS) change what a plain DSN means.
FOREIGN_PREFIXES = ("TEMPORAL_", "PG")
# The servers get no more than this: API keys of models are nothing to them.
SERVER_VARIABLES = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
CHECKOUT = Path(__file__).resolve().parents[2]


def for_servers(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of PostgreSQL and of the Temporal server."""
    kept = {name: inherited[name] for name in SERVER_VARIABLES if name in inherited}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}


def for_programs(inherited: Mapping[str, str], options: StackOptions, dsn: str) -> dict[str, str]:
    """The environment of the API, the relay and the workers: ours, with the way to this stack."""
    passed_on = {name: value for name, value in inherited.items() if not name.startswith(FOREIGN_PREFIXES)}
    return passed_on | _addresses(options, dsn) | _import_path(inherited) | dict(options.extra_env)


def _addresses(options: StackOptions, dsn: str) -> dict[str, str]:
    return {
        "AGENTJOBS_ENVIRONMENT": "dev",
        "AGENTJOBS_DATABASE_URL": dsn,
        "AGENTJOBS_API_HOST": LOOPBACK,
        "AGENTJOBS_API_PORT": str(options.api_port),
        "AGENTJOBS_TEMPORAL_UI_URL": options.temporal_ui_url,
        "TEMPORAL_ADDRESS": options.temporal_address,
        "TEMPORAL_NAMESPACE": "default",
        # An empty file: the user's own ~/.config/temporalio/temporal.toml is for another cluster.
        "TEMPORAL_CONFIG_FILE": "/dev/null",
    }


def _import_path(inherited: Mapping[str, str]) -> dict[str, str]:
    # worker, workflows and activities are top-level modules of the checkout, whatever directory we are in.
    before = inherited.get("PYTHONPATH")
    return {"PYTHONPATH": f"{CHECKOUT}:{before}" if before else str(CHECKOUT), "PYTHONUNBUFFERED": "1"}
