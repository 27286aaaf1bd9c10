"""What every process of ours does at its start and at its end."""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

import asyncpg
import structlog
import uvloop

from agentjobs.logs import configure_logging
from agentjobs.settings import Settings, SettingsError, StartError, load
from agentjobs.tracing.switch import traced

log = structlog.get_logger()

EXIT_FAILED = 1
EXIT_MISCONFIGURED = 2


def started(name: str, main: Callable[[Settings], Coroutine[Any, Any, None]]) -> int:
    """Load the settings, run `main`, and return the exit code; an expected failure is one clear line."""
    try:
        settings = load()
        configure_logging(settings.log_level)
        with traced(os.environ, name), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main(settings))
    except SettingsError as error:
        return _refuse(name, str(error), EXIT_MISCONFIGURED)
    except StartError as error:
        return _refuse(name, str(error), EXIT_FAILED)
    except (OSError, asyncpg.PostgresError) as error:
        why = f"the database does not take connections ({type(error).__name__}); check AGENTJOBS_DATABASE_URL"
        return _refuse(name, why, EXIT_FAILED)
    except Exception as error:
        # Python's own report would quote the exception's text, and that a request.
        log.critical("crashed", errors=sorted(_kinds_of(error)))
        return EXIT_FAILED
    return 0


async def run_until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it ends, or until SIGTERM or SIGINT cancels it; a cancel then is no failure."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        log.info("stopped")


def _kinds_of(error: BaseException) -> set[str]:
    """The types of what went wrong, each with its place."""
    if isinstance(error, BaseExceptionGroup):
        return set().union(*(_kinds_of(part) for part in error.exceptions))
    *_, last = traceback.extract_tb(error.__traceback__)
    return {f"{type(error).__name__} at {last.filename}:{last.lineno}"}


def _refuse(name: str, why: str, code: int) -> int:
    sys.stderr.write(f"agentjobs {name}: {why}\n")
    return code
