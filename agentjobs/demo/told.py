"""How the demonstration shows jobs."""

from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from agentjobs.commands.answers import Job
from agentjobs.commands.render import styled
from agentjobs.commands.words import one_line

# What must be readable on 80 columns; the answer gets the rest. (Left to itself, the table gives the longest one
# everything, and drops the others.)
_WIDTHS = {"job": 8, "lang": 5, "state": 9, "plan": 17, "ticket": 6}
_BETWEEN = 3


def progress_line(jobs: Sequence[Job]) -> str:
    """How many jobs are in which state."""
    counts = Counter(job.state for job in jobs)
    return "  " + ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


def results_table(jobs: Sequence[Job], languages: Sequence[str], width: int) -> Table:
    """One row a job: what was understood, which ticket, what was answered."""
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for name in (*_WIDTHS, "answer"):
        table.add_column(name, no_wrap=True)
    room = max(width - sum(_WIDTHS.values()) - _BETWEEN * len(_WIDTHS), 20)
    for job, language in zip(jobs, languages, strict=True):
        table.add_row(job.id[:8], language, styled(job.state), _plan(job), _ticket(job), _answer(job, room))
    return table


def _plan(job: Job) -> str:
    plan: JsonValue = job.result.plan if job.result else None
    return f"{plan['category']}, {plan['urgency']}" if isinstance(plan, dict) else ""


def _ticket(job: Job) -> str:
    receipts = [effect.receipt for effect in job.result.effects] if job.result else []
    return ", ".join(str(receipt["id"]) for receipt in receipts if isinstance(receipt, dict))


def _answer(job: Job, room: int) -> Text:
    text = Text(one_line((job.result.answer if job.result else None) or ""))
    text.truncate(room, overflow="ellipsis")
    return text
