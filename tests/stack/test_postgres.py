"""The embedded PostgreSQL: closed to others, and nothing acknowledged is lost by kill -9."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from agentjobs.stack import postgres_place
from agentjobs.stack.errors import InstallationError
from agentjobs.stack.postgres import EmbeddedPostgres, forget_reused_pid
from agentjobs.stack.postgres_place import find_place
from tests.ports import free_port
from tests.stack.conftest import temporary_home
from tests.stack.dummies import eventually, gone

PACKAGE = postgres_place.package()


class Server(EmbeddedPostgres):
    """A server that knows its home."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, free_port())
        self.home = home


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[Server]:
    with temporary_home() as home:
        postgres = Server(home)
        await postgres.start()
        yield postgres
        await postgres.stop()


def postmaster(home: Path) -> psutil.Process:
    pid_file = find_place(home / "postgres").data / "postmaster.pid"
    return psutil.Process(int(pid_file.read_text().split()[0]))


async def execute(server: EmbeddedPostgres, statement: str) -> object:
    session = await asyncpg.connect(server.dsn())
    try:
        return await session.fetchval(statement)
    finally:
        await session.close()


async def test_kill_dash_nine_loses_no_acknowledged_row(server: Server) -> None:
    await execute(server, "CREATE TABLE rows (n int)")
    await execute(server, "INSERT INTO rows VALUES (42)")

    await server.kill()
    await server.start()

    assert await execute(server, "SELECT n FROM rows") == 42
    assert await execute(server, "SHOW fsync") == "on"


async def test_it_listens_on_loopback_only_and_never_as_root(server: Server) -> None:
    process = postmaster(server.home)

    listening = {at.laddr.ip for at in process.net_connections("all") if at.status == psutil.CONN_LISTEN}

    assert listening == {"127.0.0.1"}
    assert process.uids().effective != 0


async def test_nobody_gets_in_without_the_password(server: Server) -> None:
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(server.dsn(), password="guess")

    assert (server.home / "postgres" / "password").stat().st_mode & 0o777 == 0o600


async def test_a_stopped_server_leaves_no_process(home: Path) -> None:
    postgres = EmbeddedPostgres(home, free_port(), durable=False)
    await postgres.start()
    process = postmaster(home)
    family = [process, *process.children(recursive=True)]
    assert await execute(postgres, "SHOW fsync") == "off"

    await postgres.stop()

    await eventually(lambda: all(gone(member.pid) for member in family))


async def test_a_lost_password_is_told_and_the_data_kept(home: Path) -> None:
    postgres = EmbeddedPostgres(home, free_port(), durable=False)
    await postgres.install()
    (home / "postgres" / "password").unlink()

    with pytest.raises(InstallationError, match="password is missing: restore it"):
        await postgres.install()

    assert find_place(home / "postgres").data.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root must hand the server to another account")
async def test_behind_closed_folders_a_readable_copy_runs_outside_the_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = closed_package(home)
    monkeypatch.setattr(postgres_place, "package", lambda: closed)
    postgres = EmbeddedPostgres(home, free_port(), durable=False)
    await postgres.start()
    place = find_place(home / "postgres")
    assert await execute(postgres, "SELECT 1") == 1
    await postgres.stop()

    assert not place.data.is_relative_to(home)
    assert not place.programs.is_relative_to(home)
    assert place.data.parent.stat().st_uid == 0

    postgres.remove()
    assert not place.data.parent.exists()


def closed_package(home: Path) -> Path:
    """A copy of the installed package in a home that only root may enter."""
    home.chmod(0o700)
    for part in (PACKAGE, PACKAGE.with_name(f"{PACKAGE.name}.libs")):
        if part.exists():
            shutil.copytree(part, home / part.name)
    return home / PACKAGE.name


def test_a_lock_file_whose_pid_now_is_another_program_is_removed(tmp_path: Path) -> None:
    lock = tmp_path / "postmaster.pid"
    lock.write_text(f"{os.getpid()}\n{tmp_path}-elsewhere\n")

    forget_reused_pid(tmp_path)

    assert not lock.exists()


async def test_a_lock_file_of_a_dead_server_is_left_to_postgresql(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    lock = tmp_path / "postmaster.pid"
    lock.write_text(f"{process.pid}\n")

    forget_reused_pid(tmp_path)

    assert lock.exists()
