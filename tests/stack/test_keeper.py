"""One child kept alive: started, started again, given up with its own last words."""

from pathlib import Path

import pytest

from agentjobs.stack.errors import ChildFailedError
from agentjobs.stack.keeper import Backoff, Keeper, start
from tests.stack.dummies import STUBBORN, gone, script


async def test_a_child_that_dies_is_started_again(tmp_path: Path) -> None:
    changes: list[int] = []
    keeper = Keeper(script("child"), tmp_path, lambda: changes.append(1))
    await keeper.begin()
    first = keeper.child
    assert first is not None

    await keeper.kill_and_notice()
    await keeper.ready.wait()

    assert keeper.child is not None
    assert keeper.child.pid != first.pid
    assert len(changes) == 2
    await keeper.end()


async def test_an_ended_child_stays_down_until_it_is_begun_again(tmp_path: Path) -> None:
    keeper = Keeper(script("child"), tmp_path, lambda: None)
    await keeper.begin()

    await keeper.end()
    assert keeper.child is None
    assert not keeper.ready.is_set()

    await keeper.begin()
    assert keeper.ready.is_set()
    await keeper.end()


async def test_a_child_that_exits_at_once_is_given_up_with_its_last_line(tmp_path: Path) -> None:
    spec = script(
        "relay", "print('first', flush=True); raise SystemExit('AGENTJOBS_DATABASE_URL: Field required')"
    )

    with pytest.raises(
        ChildFailedError, match=r"relay exited 3 times at its start: AGENTJOBS_DATABASE_URL: Field"
    ):
        await start(spec, tmp_path)

    assert (tmp_path / "relay.log").read_text().count("Field required") == 3


async def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    spec = script("relay")
    missing = type(spec)(name="relay", argv=("/no/such/program",), environment={}, ready=spec.ready)

    with pytest.raises(ChildFailedError, match="cannot run /no/such/program"):
        await start(missing, tmp_path)


async def test_a_child_that_never_gets_ready_is_stopped(tmp_path: Path) -> None:
    seen: list[int] = []
    spec = script("api", "print('waiting', flush=True); import time; time.sleep(60)", start_seconds=0.3)

    with pytest.raises(ChildFailedError, match=r"api was not ready after 0\.3 s: waiting"):
        await start(spec, tmp_path, lambda child: seen.append(child.pid))

    assert [gone(pid) for pid in seen] == [True]


async def test_a_child_that_ignores_the_signal_is_killed_after_its_grace(tmp_path: Path) -> None:
    child = await start(script("stubborn", STUBBORN, grace_seconds=0.1), tmp_path)

    await child.stop()

    assert await child.wait() == -9


def test_pauses_double_up_to_ten_seconds_and_start_anew_after_a_minute_of_life() -> None:
    backoff = Backoff()

    pauses = [backoff.after(lived_seconds=1) for _ in range(9)]

    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert backoff.after(lived_seconds=60) == 0.1
