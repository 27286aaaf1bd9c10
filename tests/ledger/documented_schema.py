"""agentjobs/ledger/schema.sql: the schema that the migrations lead to, as one file to read.

After a migration was added: `python -m tests.ledger.documented_schema` writes it anew.
"""

import asyncio
import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from agentjobs.ledger.migrate import migrate
from agentjobs.stack.environment import for_servers
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.postgres_place import package
from tests.ports import free_port

HEADER = """\
-- The schema of the ledger, as the migrations lead to it: to be read, not to be run on a database in use.
-- Why it is so, migrations/0001_ledger.sql says. Written by `python -m tests.ledger.documented_schema`;
-- tests/ledger/test_schema.py fails when it differs from what the migrations make.

"""


def documented() -> str:
    """The file as it stands."""
    return _file().read_text("utf-8")


def dumped(dsn: str) -> str:
    """The database's schema in the words of pg_dump, without what depends on the version of either."""
    program = package() / "pginstall" / "bin" / "pg_dump"
    arguments = [str(program), "--schema-only", "--no-owner", "--no-privileges", dsn]
    output = subprocess.run(arguments, check=True, capture_output=True, env=for_servers(os.environ))
    return HEADER + _cleaned(output.stdout.decode("utf-8"))


def _cleaned(dump: str) -> str:
    # Comments, settings of the session, and psql's own commands (\\restrict has a random word).
    kept = [line for line in dump.splitlines() if not re.match(r"--|SET |SELECT pg_catalog\.set_config|\\", line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n"


def _file() -> Path:
    return Path(str(resources.files("agentjobs.ledger") / "schema.sql"))


async def _write() -> None:
    with TemporaryDirectory() as home:
        server = EmbeddedPostgres(Path(home), free_port(), durable=False)
        try:
            await server.start("documented")
            await migrate(server.dsn("documented"))
            _file().write_text(dumped(server.dsn("documented")), encoding="utf-8")
        finally:
            await server.stop()
            server.remove()


if __name__ == "__main__":
    sys.exit(asyncio.run(_write()))
