"""After a crash: what is still ours is ended, what only has our pid is not touched."""

from pathlib import Path

from agentjobs.stack.children import Child
from agentjobs.stack.keeper import start
from agentjobs.stack.orphans import note_children, stop_orphans
from tests.stack.dummies import script


async def noted(tmp_path: Path) -> tuple[Child, Path]:
    child = await start(script("worker-1"), tmp_path)
    file = tmp_path / "children.json"
    note_children(file, [child])
    return child, file


async def test_a_child_of_the_stack_before_is_ended(tmp_path: Path) -> None:
    child, file = await noted(tmp_path)

    await stop_orphans(file)

    # Here it is our own child: of the two that wait, whoever reaps it first has its code, the other has 255.
    assert await child.wait() in {-9, 255}
    assert not child.alive
    assert not file.exists()


async def test_a_stranger_with_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    child, file = await noted(tmp_path)
    file.write_text(file.read_text().replace("time.sleep", "time.slept"))

    await stop_orphans(file)

    assert child.alive
    await child.stop()


async def test_a_process_started_at_another_time_is_a_stranger(tmp_path: Path) -> None:
    child, file = await noted(tmp_path)
    file.write_text(file.read_text().replace(str(child.created_at), str(child.created_at - 60)))

    await stop_orphans(file)

    assert child.alive
    await child.stop()
