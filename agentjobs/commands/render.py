"""What a command shows: results on stdout, everything said beside them on stderr.

On a terminal tables are fitted and coloured (NO_COLOR is respected); in a pipe they are plain columns, whole and
aligned. With --json stdout has JSON and nothing else.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from pydantic import JsonValue
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentjobs.commands.answers import Answer
from agentjobs.commands.words import length_of, lines, one_line, time_of
from agentjobs.domain.states import JobState

NOTHING: Final = "-"
GAP: Final = 2
WHOLE_COLUMNS: Final = 2
"""The first columns, an id to copy and a state, are never cut."""

NARROW: Final = 10
"""Below this a cut text says nothing."""

STYLES: Final[Mapping[str, str]] = {
    JobState.PENDING: "cyan",
    JobState.RUNNING: "blue",
    JobState.RETRY_WAIT: "yellow",
    JobState.WAITING_APPROVAL: "magenta",
    JobState.SUCCEEDED: "green",
    JobState.DEAD: "bold red",
    JobState.CANCELLED: "dim",
    JobState.DISCARDED: "dim",
}


class _Terminal(Console):
    """rich exits with 1 when the reader is gone; `Commands` decides that."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, highlight=False, emoji=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Screen:
    """Where a command writes."""

    def __init__(self, now: Callable[[], datetime], *, as_json: bool) -> None:
        self.out = _Terminal()
        self.beside = _Terminal(stderr=True)
        self._voice: Console = self.beside
        self.as_json = as_json
        self._now = now

    def document(self, document: JsonValue) -> None:
        """One JSON document on one line; ASCII, so that nothing in it reaches a terminal raw."""
        self.out.print(Text(json.dumps(document)), soft_wrap=True)

    def documents(self, answers: Sequence[Answer], next_cursor: str | None = None) -> None:
        """A list as one JSON document, in the form that the API gives lists."""
        self.document({"items": [answer.document() for answer in answers], "next_cursor": next_cursor})

    def line(self, text: str) -> None:
        """One line of the result."""
        self.out.print(Text(one_line(text)), soft_wrap=True)

    def tell(self, text: str) -> None:
        """One line beside the result."""
        self._voice.print(Text(one_line(text)), soft_wrap=True)

    def tell_more(self, cursor: str | None) -> None:
        """Say that a list goes on."""
        if cursor is not None:
            self.tell("there are more: --all or a larger --limit shows them")

    @contextmanager
    def speaking_over(self, console: Console) -> Iterator[None]:
        """While the console shows a moving line, what is said beside must go through it, or it is overwritten."""
        if self.beside.is_terminal:
            self._voice = console
        try:
            yield
        finally:
            self._voice = self.beside

    @property
    def bar_character(self) -> str:
        """What bars are drawn with."""
        return "\u2588" if self.out.encoding.startswith("utf") else "#"

    def moment(self, moment: datetime | None) -> str:
        """A time; on a terminal, where columns are short, as an age."""
        if moment is None:
            return NOTHING
        if not self.out.is_terminal:
            return time_of(moment)
        return length_of((self._now() - moment).total_seconds())

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
        """Rows under a header; cut to fit only on a terminal. No rows: `empty`, said beside."""
        cells = [[cell_text(value) for value in row] for row in rows]
        if not cells:
            self.tell(empty)
        elif self.out.is_terminal:
            self.out.print(_fitted(columns, cells, self.out.width))
        else:
            for row in _aligned([list(columns), *cells]):
                self.line(row)

    def facts(self, facts: Sequence[tuple[str, object]], *, beside: bool = False) -> None:
        """Names and values, one under the other; a fact without value is left out."""
        shown = [(name, str(value)) for name, value in facts if value not in (None, "")]
        width = max((len(name) for name, _ in shown), default=0)
        console = self.beside if beside else self.out
        for name, value in shown:
            first, *others = lines(value)
            console.print(Text.assemble((name.ljust(width), "dim"), "  ", styled(first)), soft_wrap=True)
            for other in others:
                console.print(Text(" " * (width + 2) + other), soft_wrap=True)


def cell_text(value: object) -> str:
    """What stands in a cell: one harmless line, a dash for nothing."""
    return (one_line(str(value)) if value is not None else "") or NOTHING


def styled(text: str) -> Text:
    """The text; a state in its colour."""
    return Text(text, style=STYLES.get(text, ""))


def _fitted(columns: Sequence[str], cells: Sequence[Sequence[str]], room: int) -> Table:
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False)
    chosen = _chosen(columns, cells, room)
    for number in chosen:
        table.add_column(columns[number], no_wrap=number < WHOLE_COLUMNS)
    for row in cells:
        table.add_row(*(_cut(row[number]) for number in chosen))
    return table


def _chosen(columns: Sequence[str], cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """The columns to show. Empty ones go; without room, those before the last, which says why; then it."""
    widths = _widths([columns, *cells])
    needed = [width if number < WHOLE_COLUMNS else min(width, NARROW) for number, width in enumerate(widths)]
    chosen = [number for number in range(len(columns)) if any(row[number] != NOTHING for row in cells)]
    while len(chosen) > WHOLE_COLUMNS and sum(needed[number] + GAP for number in chosen) - GAP > room:
        del chosen[-2 if len(chosen) > WHOLE_COLUMNS + 1 else -1]
    return chosen


def _cut(cell: str) -> Text:
    text = styled(cell)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = _widths(rows)
    return [(" " * GAP).join(map(_padded, row, widths)).rstrip() for row in rows]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))
