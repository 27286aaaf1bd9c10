"""Two releases at once under load: `python -m tests.chaos.storm.upgrade --before COMMIT [--seed S] [--seconds N]`.

It begins with everything of the release before. In the middle the migration is applied, then two workers and one
API are of the present release, beside the others; at three quarters everything is, the relays last.
"""

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from agentjobs.ledger.migrate import migrate
from agentjobs.stack.info import DevKeys
from agentjobs.stack.stack import Prepare
from tests.chaos.storm.campaign import Storm, Verdict, weather
from tests.chaos.storm.parts import APIS, OFFLINE, RELAYS, WORKERS, Mix
from tests.chaos.storm.programs import home_for, run, tell
from tests.chaos.storm.site import Site, running_site
from tests.chaos.storm.telling import verdict_told
from tests.chaos.storm.tenants import ADMIN, PEOPLE, TENANTS, USER, Keys
from tests.e2e.conftest import CHECKOUT

PER_SECOND = 2.0
FIRST = (*WORKERS[1:], APIS[1])
"""Those of the present release while both run. No relay: workers of the release before cannot read its words."""

_MAKE_KEYS = """
import asyncio, json, os, sys
from agentjobs.ledger.database import connect
from agentjobs.ledger.identity import Identity, Role
from agentjobs.ledger.migrate import migrate

async def main():
    dsn, tenants, people, admin, user = json.loads(sys.stdin.read())
    await migrate(dsn)
    database = await connect(dsn, size=2, application_name="chaos")
    identity, keys = Identity(database), []
    for tenant in ["dev", *tenants]:
        await identity.create_tenant(tenant)
        for name, roles in people.items():
            key, _ = await identity.create_key(tenant, name, frozenset(map(Role, roles)))
            keys.append([tenant, name, key])
        await identity.add_grant(tenant, user, "tickets:create", granted_by=admin)
    await database.close()
    print(json.dumps(keys))

asyncio.run(main())
"""


def extracted(commit: str, place: Path) -> Path:
    """The source as it was at this commit."""
    archive = subprocess.run(["git", "archive", commit], cwd=CHECKOUT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive.stdout, check=True)
    return place


def preparing_before(source: Path, keys: Keys) -> Prepare:
    """Schema, tenants and keys as the release before makes them."""

    async def prepare(dsn: str, kept: DevKeys | None) -> DevKeys:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _MAKE_KEYS),
            env={"PYTHONPATH": str(source), "PATH": os.environ["PATH"]},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        people = {name: sorted(roles) for name, roles in PEOPLE.items()}
        out, _ = await process.communicate(json.dumps([dsn, TENANTS, people, ADMIN, USER]).encode())
        assert process.returncode == 0
        made = out.splitlines()[-1]  # before it stands what the migration logs
        keys.of |= {(tenant, user): key for tenant, user, key in json.loads(made)}
        return DevKeys(api_key=keys.of.pop(("dev", USER)), admin_key=keys.of.pop(("dev", ADMIN)))

    return prepare


async def change_over(site: Site, seconds: float) -> None:
    """Half of the processes in the middle, the rest at three quarters."""
    await asyncio.sleep(seconds / 2)
    await migrate(site.stack.info.database)
    await _now_present(site, FIRST)
    await asyncio.sleep(seconds / 4)
    await _now_present(site, [part for part in (*WORKERS, *APIS, *RELAYS) if part not in FIRST])


async def _now_present(site: Site, parts: Iterable[str]) -> None:
    for part in parts:
        keeper = site.stack._supervisor.keeper(part)
        await site.stack.stop_child(part)
        keeper.spec = replace(keeper.spec, environment={**keeper.spec.environment, "PYTHONPATH": str(CHECKOUT)})
        await site.stack.start_child(part)


async def play(before: str, storm: Storm, home: Path) -> Verdict:
    """On a site of its own, in this home."""
    source = home / "before"
    source.mkdir()
    keys = Keys({})
    mix = Mix(tracker="postgres", model=OFFLINE, source=extracted(before, source))
    (home / "site").mkdir()
    async with running_site(home / "site", mix, preparing_before(source, keys)) as site:
        return await weather(site, keys, storm, lambda site, _: change_over(site, storm.seconds))


def main() -> int:
    """0 when everything held."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--before", required=True)
    options.add_argument("--seed")
    options.add_argument("--seconds", type=float, default=120.0)
    return run(_told(options.parse_args()))


async def _told(given: argparse.Namespace) -> int:
    seed = given.seed or secrets.token_hex(4)
    storm = Storm(seed, given.seconds, round(given.seconds * PER_SECOND), ())
    with home_for("upgrade") as home:
        verdict = await play(given.before, storm, home)
    tell(f"{verdict_told(verdict)}\nlogs: {home}")
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    os._exit(main())  # the Temporal client may crash the interpreter at its end (sdk-python 300)
