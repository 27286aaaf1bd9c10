"""Starting, stopping, and starting again; and what is said when something is not there."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.ports import is_free
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.e2e.conftest import CHECKOUT, Running, options_for, run, started
from tests.ports import free_port
from tests.world import eventually

pytestmark = pytest.mark.e2e


async def _finished(ledger: Ledger, job_ids: list[str]) -> bool:
    jobs = [await ledger.jobs.read("dev", job_id) for job_id in job_ids]
    return all(job is not None and job.state is JobState.SUCCEEDED for job in jobs)


async def test_a_second_start_on_the_same_home_resumes_all_jobs(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("resumed")
    options = options_for(home, workers=1)

    async with started(options) as stack:
        ledger = await Ledger.open(stack.info.database, size=2, application_name="tests")
        running = Running(stack, ledger, home)
        await stack.stop_child("worker-1")
        begun = [await running.submit(f"Request {n}") for n in range(3)]
        keys_before = (stack.info.api_key, stack.info.admin_key)
        await ledger.close()
    async with started(options) as stack:
        ledger = await Ledger.open(stack.info.database, size=2, application_name="tests")
        await eventually(lambda: _finished(ledger, begun), "the jobs of before to succeed")
        keys_after = (stack.info.api_key, stack.info.admin_key)
        await ledger.close()

    assert keys_after == keys_before
    EmbeddedPostgres(home, 1).remove()


async def test_a_worker_killed_right_after_the_commit_makes_no_second_ticket(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("killed")
    options = options_for(home, AGENTJOBS_FAILPOINTS="tool.after_commit=kill@1")

    async with started(options) as stack:
        ledger = await Ledger.open(stack.info.database, size=2, application_name="tests")
        first_worker = stack.info.pids["worker-1"]
        job_id = await Running(stack, ledger, home).submit("My printer is on fire")
        await eventually(lambda: _finished(ledger, [job_id]), "the job to succeed")
        tickets = await ledger.tickets.of_operation(f"agent-job-{job_id}/step-2.create_ticket")
        second_worker = stack.info.pids["worker-1"]
        await ledger.close()

    assert second_worker != first_worker  # the failpoint has fired
    assert len(tickets) == 1
    EmbeddedPostgres(home, 1).remove()


async def test_the_dev_stack_is_told_by_stack_json_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("dev")
    options = options_for(home)
    dev = await asyncio.create_subprocess_exec(*_dev(home, options.ports), cwd=CHECKOUT)

    info = await eventually(lambda: _stack_json(home), "stack.json")
    pids = info["pids"]
    dev.send_signal(signal.SIGINT)
    code = await asyncio.wait_for(dev.wait(), 60)

    assert code == 0
    assert set(pids) == {"api", "relay", "worker-1", "temporal", "postgres"}
    assert [name for name, pid in pids.items() if psutil.pid_exists(pid)] == []
    assert all(is_free(port) for port in options.ports.values())
    assert not (home / "stack.json").exists()
    EmbeddedPostgres(home, 1).remove()


def _dev(home: Path, ports: dict[str, int]) -> list[str]:
    numbers = [word for option, port in ports.items() for word in (option, str(port))]
    return [sys.executable, "starter.py", "dev", "--home", str(home), *numbers]


async def _stack_json(home: Path) -> dict[str, dict[str, int]] | None:
    path = home / "stack.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


async def test_the_demo_holds_what_it_claims(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("demo") / "home"

    ended = await run("starter.py", "demo", "--home", str(home))

    assert ended.code == 0, ended.out + ended.err
    assert "with one ticket" in ended.out
    assert "Each step succeeded once" in ended.out
    assert not home.exists()


@pytest.mark.parametrize("program", ["worker.py", "-magentjobs.outbox", "-magentjobs.api"])
async def test_a_program_without_its_settings_names_the_variable(program: str) -> None:
    ended = await run(program)

    assert ended.code == 2
    assert "AGENTJOBS_DATABASE_URL" in ended.err
    assert len(ended.err.strip().splitlines()) == 1


@pytest.mark.parametrize("program", ["worker.py", "-magentjobs.outbox", "-magentjobs.api"])
async def test_a_program_without_its_database_says_so(program: str) -> None:
    nowhere = f"postgresql://nobody:hunter2@127.0.0.1:{free_port()}/none"

    ended = await run(program, environment={"AGENTJOBS_DATABASE_URL": nowhere})

    assert ended.code == 1
    assert "database" in ended.err.splitlines()[-1]
    assert "hunter2" not in ended.err


async def test_a_worker_without_temporal_says_so(database_url: str) -> None:
    address = f"127.0.0.1:{free_port()}"

    ended = await run(
        "worker.py", environment={"AGENTJOBS_DATABASE_URL": database_url, "TEMPORAL_ADDRESS": address}
    )

    assert ended.code == 1
    assert ended.err.splitlines()[-1] == (
        f"agentjobs worker: no Temporal server answers at {address}; check TEMPORAL_ADDRESS"
    )


async def test_an_occupied_port_and_a_home_in_use_are_told(shared: Running) -> None:
    ports = options_for(shared.home).ports
    occupied = ports | {"--api-port": int(shared.stack.info.api.rsplit(":", 1)[1])}
    another_home = shared.home.parent / "another"

    in_use = await run(*_dev(shared.home, ports)[1:])
    taken = await run(*_dev(another_home, occupied)[1:])

    assert in_use.code == 1
    assert str(os.getpid()) in in_use.err
    assert taken.code == 1
    assert "--api-port" in taken.err


async def test_a_wrong_key_is_told(shared: Running) -> None:
    environment = {"AGENTJOBS_API": shared.stack.info.api, "AGENTJOBS_API_KEY": "ajk_wrong"}

    ended = await run("starter.py", "list", environment=environment)

    assert ended.code == 1
    assert "key" in ended.err


async def test_failpoints_are_refused_in_production(database_url: str) -> None:
    ended = await run(
        "worker.py",
        environment={"AGENTJOBS_DATABASE_URL": database_url, "AGENTJOBS_FAILPOINTS": "effect.after_begin=kill"},
    )

    assert ended.code == 2
    assert "AGENTJOBS_FAILPOINTS" in ended.err
