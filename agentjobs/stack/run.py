"""Runs a stack until a signal ends it: what `python starter.py dev` does."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import SIGINT, SIGTERM

import structlog

from agentjobs.stack.errors import StackError
from agentjobs.stack.info import StackInfo
from agentjobs.stack.options import StackOptions
from agentjobs.stack.programs import agentjobs_programs
from agentjobs.stack.stack import Prepare, Programs, Stack


async def run_stack(
    options: StackOptions,
    prepare: Prepare,
    on_ready: Callable[[StackInfo], None] | None = None,
    programs: Programs = agentjobs_programs,
) -> int:
    """Run until SIGINT or SIGTERM: 0. The stack cannot run: 1, with one log event `stack_failed` that says why."""
    stack = Stack(options, prepare, programs)
    serving = asyncio.create_task(_serve(stack, on_ready))
    with _stopped_by_signals(serving, stack):
        try:
            await serving
        except asyncio.CancelledError:
            return 0
        except StackError as failure:
            structlog.get_logger().error("stack_failed", reason=str(failure))
            return 1
    return 0


async def _serve(stack: Stack, on_ready: Callable[[StackInfo], None] | None) -> None:
    async with stack.running():
        structlog.get_logger().info("stack_ready", home=str(stack.home.path))
        if on_ready is not None:
            on_ready(stack.info)
        await asyncio.get_running_loop().create_future()


@contextmanager
def _stopped_by_signals(serving: asyncio.Task[None], stack: Stack) -> Iterator[None]:
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:  # somebody pressed Ctrl-C again: they do not want to wait
            stack.kill_now()
        else:
            asked = True
            structlog.get_logger().info("stack_stopping")
            serving.cancel()

    loop = asyncio.get_running_loop()
    for number in (SIGINT, SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (SIGINT, SIGTERM):
            loop.remove_signal_handler(number)
