"""`python -m agentjobs.ledger`: bring the database of AGENTJOBS_DATABASE_URL to this version's schema, and end.

`python -m agentjobs.ledger first-key TENANT USER` also makes the first tenant and its admin key, and prints it.
All further keys are made through the API.
"""

import re
import sys

from agentjobs.domain.job import IDENTIFIER_PATTERN
from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.migrate import migrate
from agentjobs.processes import started
from agentjobs.settings import Settings, StartError

USAGE = "python -m agentjobs.ledger [first-key TENANT USER]"


async def _run(settings: Settings, words: list[str]) -> None:
    match words:
        case []:
            await migrate(settings.dsn)
        case ["first-key", tenant, user] if _is_id(tenant) and _is_id(user):
            await migrate(settings.dsn)
            sys.stdout.write(await _first_key(settings, tenant, user) + "\n")
        case _:
            raise StartError(f"usage: {USAGE}; an id has letters, digits, - and _ only")


async def _first_key(settings: Settings, tenant: str, user: str) -> str:
    ledger = await Ledger.open(settings.dsn, size=2, application_name="agentjobs-first-key")
    try:
        if await ledger.identity.any_key_exists():
            raise StartError("there are keys already: make more with `python starter.py keys create`")
        await ledger.identity.create_tenant(tenant)
        key, _ = await ledger.identity.create_key(tenant, user, frozenset(Role))
        return key
    finally:
        await ledger.close()


def _is_id(word: str) -> bool:
    return re.fullmatch(IDENTIFIER_PATTERN, word) is not None


if __name__ == "__main__":
    sys.exit(started("ledger", lambda settings: _run(settings, sys.argv[1:])))
