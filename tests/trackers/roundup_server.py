"""A real Roundup server of its own: schema as docs/trackers.md has it, a user, and a view into its database."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import httpx

from agentjobs.stack.ports import LOOPBACK
from tests.ports import free_port

USER: Final = "agentjobs"
PASSWORD: Final = "canary-4f1c-password"
_DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "trackers.md"
_PROGRAMS: Final = Path(sys.executable).parent
_PATIENCE_SECONDS: Final = 30
_BY_HAND: Final = """
import sys
from roundup import instance
database = instance.open(sys.argv[1]).open("admin")
number = database.issue.create(title=sys.argv[2])
database.commit()
print(database.issue.get(number, "external_key"))
database.close()
"""
_FEW_ROUNDS: Final = "password_pbkdf2_default_rounds = 1000"


class RoundupServer:
    """Installed in a folder; started, killed and started again as a test wants."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tracker = folder / "tracker"
        self._process: asyncio.subprocess.Process | None = None
        self.port = free_port()

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[RoundupServer]:
        """A fresh tracker; nothing of it is left afterwards."""
        server = cls(_open_folder())
        try:
            await server._install()
            await server.start()
            yield server
        finally:
            await server.kill()
            shutil.rmtree(server._folder)

    @property
    def url(self) -> str:
        """The tracker's web address."""
        return f"http://{LOOPBACK}:{self.port}/tracker"

    @property
    def headers(self) -> dict[str, str]:
        """What its REST interface wants to see."""
        return {
            "X-Requested-With": "rest",
            "Origin": self.url.removesuffix("/tracker"),
            "Referer": f"{self.url}/",
        }

    async def start(self) -> None:
        """Start, and wait until it answers."""
        as_nobody = ("-u", "nobody", "-g", "nogroup") if os.geteuid() == 0 else ()
        arguments = ("-n", LOOPBACK, "-p", str(self.port), *as_nobody, f"tracker={self._tracker}")
        with (self._folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                str(_PROGRAMS / "roundup-server"),
                *arguments,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},  # else the children's tracebacks are lost
                start_new_session=True,
            )
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not await self._answers():
                assert self._process.returncode is None, (self._folder / "log").read_text()
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """kill -9 of the server and of the children that serve requests."""
        if self._process is not None and self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    async def admin(self, *arguments: str) -> str:
        """What `roundup-admin` says to this."""
        process = await asyncio.create_subprocess_exec(
            str(_PROGRAMS / "roundup-admin"),
            *("-i", str(self._tracker), *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()
        self._hand_over()
        return output.decode().strip()

    async def open_by_hand(self, title: str) -> str:
        """Create an issue as the web interface and the mail gateway do, in Roundup itself; the key that it got."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _BY_HAND, str(self._tracker), title, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        self._hand_over()
        return output.decode().strip()

    def issues(self, key: str) -> list[dict[str, Any]]:
        """The issues with this key in the tracker's database, deleted ones too: the judge of duplicates."""
        with closing(sqlite3.connect(f"file:{self._tracker / 'db' / 'db'}?mode=ro", uri=True)) as session:
            session.row_factory = sqlite3.Row
            rows = session.execute(
                "SELECT i.*, s._name AS status FROM _issue i LEFT JOIN _status s ON s.id = i._status"
                " WHERE i._external_key = ?",
                (key,),
            ).fetchall()
        return [{name.removeprefix("_"): row[name] for name in row.keys()} for row in rows]  # noqa: SIM118

    async def _install(self) -> None:
        settings = (
            f"tracker_web={self.url}/,mail_domain=example.org,mail_host=localhost,admin_email=ops@example.org"
        )
        await self.admin("install", "classic", "sqlite", settings)
        self._extend(self._tracker / "schema.py")
        self._hurry(self._tracker / "config.ini")
        (self._tracker / "detectors" / "external_key.py").write_text(_documented("detectors/external_key.py"))
        await self.admin("initialise", secrets.token_hex(8))
        user = (f"username={USER}", f"password={PASSWORD}", "roles=User", f"address={USER}@example.org")
        await self.admin("create", "user", *user)

    def _extend(self, schema: Path) -> None:
        last = 'status=Link("status"))\n'
        text = schema.read_text()
        assert last in text
        properties = _documented("schema.py: properties of `issue`").rstrip().rstrip(",")
        extended = f'status=Link("status"),\n{properties})\n{_documented("schema.py: after `issue`")}'
        schema.write_text(text.replace(last, extended))

    def _hurry(self, settings: Path) -> None:
        # Every request brings the password, and Roundup's own number of rounds makes its check the most of it.
        rounds = re.sub(r"(?m)^#?password_pbkdf2_default_rounds *=.*$", _FEW_ROUNDS, settings.read_text())
        assert _FEW_ROUNDS in rounds
        settings.write_text(rounds)

    def _hand_over(self) -> None:
        if os.geteuid() == 0:
            for path in (self._folder, *self._folder.rglob("*")):
                shutil.chown(path, "nobody", "nogroup")

    async def _answers(self) -> bool:
        # Signed in, and before any others: of two first requests at once one fails, for both make Roundup's tables
        # of sessions.
        async with httpx.AsyncClient(auth=(USER, PASSWORD), trust_env=False) as client:
            try:
                return (await client.get(f"{self.url}/rest/data/issue", headers=self.headers)).status_code == 200
            except httpx.HTTPError:
                return False


def _open_folder() -> Path:
    # Not tmp_path: pytest closes that to other accounts, and as root Roundup runs as one.
    folder = Path(tempfile.mkdtemp(prefix="agentjobs-roundup-"))
    folder.chmod(0o755)
    return folder


def _documented(name: str) -> str:
    """The block of docs/trackers.md that begins with this comment: what is documented is what is tested."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", _DOCUMENT.read_text(), re.DOTALL)
    found = [block for block in blocks if block.startswith(f"# {name}\n")]
    assert len(found) == 1, f"docs/trackers.md has not one block for {name}"
    return found[0]
