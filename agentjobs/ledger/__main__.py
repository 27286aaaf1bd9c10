"""`python -m agentjobs.ledger`: bring the database of AGENTJOBS_DATABASE_URL to this version's schema, and end."""

import sys

from agentjobs.ledger.migrate import migrate
from agentjobs.processes import started
from agentjobs.settings import Settings


async def _migrate(settings: Settings) -> None:
    await migrate(settings.dsn)


if __name__ == "__main__":
    sys.exit(started("migrate", _migrate))
