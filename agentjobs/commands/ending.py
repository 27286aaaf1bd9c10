"""How every command ends: with one line on stderr and an exit code that says what happened."""

import os
import sys
from contextlib import suppress
from typing import Any, Final

import typer
from typer.core import TyperGroup

from agentjobs.commands.errors import CommandError
from agentjobs.commands.words import one_line

BROKEN_PIPE: Final = 141
"""128 + SIGPIPE: what a shell reports of a program that the signal ends."""


class Commands(TyperGroup):
    """A group of commands that may raise CommandError."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what it raises becomes its exit code."""
        _write_what_the_terminal_cannot_show()
        try:
            return super().invoke(ctx)
        except CommandError as error:
            tell_error("; ".join((str(error), *getattr(error, "__notes__", ()))))
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(BROKEN_PIPE) from None
        except OSError as error:
            _drop_output()
            tell_error(f"cannot write the output: {error.strerror or error}")
            raise typer.Exit(1) from None


def tell_error(message: str) -> None:
    """One line on stderr, if that still can be written."""
    with suppress(OSError):
        typer.echo(f"error: {one_line(message)}", err=True)


def _write_what_the_terminal_cannot_show() -> None:
    """A terminal that is not UTF-8 gets a question mark, not a traceback after the work is done."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _drop_output() -> None:
    """Python flushes stdout once more when it exits; into a broken pipe that would change the exit code."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
