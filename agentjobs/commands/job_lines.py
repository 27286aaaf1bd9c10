"""A job in words: as facts, as a row, as one line for a change."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from agentjobs.commands.answers import Attempt, Budget, DoneEffect, Failure, Job, Usage
from agentjobs.commands.render import Screen
from agentjobs.commands.words import ahead_words, compact, counted, length_of, shortened, time_of
from agentjobs.domain.states import JobState

RECEIPT_LIMIT: Final = 200
JOB_COLUMNS: Final = ("ID", "STATE", "CREATED", "STEP", "ATTEMPT", "AGENT", "FAILURE")
# On a terminal without room those before the last are left out, from the right.
ATTEMPT_COLUMNS: Final = (
    "STEP",
    "ATTEMPT",
    "OUTCOME",
    "WAIT",
    "TOKENS",
    "USD",
    "WORKER",
    "TOOK",
    "MODEL",
    "HELD BACK",
    "STARTED",
    "FAILURE",
)


def job_row(job: Job, screen: Screen) -> list[object]:
    """One line of `list`."""
    return [
        job.id,
        job.state,
        screen.moment(job.created_at),
        job.step,
        job.attempt or None,
        job.agent,
        failure_words(job.failure),
    ]


def attempt_row(attempt: Attempt, screen: Screen) -> list[object]:
    """One line of `attempts`."""
    return [
        attempt.step,
        attempt.attempt,
        attempt.outcome,
        None if attempt.wait_seconds is None else f"{attempt.wait_seconds:.1f}s",
        (attempt.tokens_in + attempt.tokens_out) or None,
        attempt.usd or None,
        attempt.worker,
        _took(attempt),
        attempt.model,
        amount_words(attempt.tokens_reserved, attempt.usd_reserved),
        screen.moment(attempt.started_at),
        ": ".join(filter(None, (attempt.category, attempt.message))),
    ]


def attempts_total(attempts: Sequence[Attempt]) -> str:
    """The last line of `attempts`: what all of them have cost, and hold back."""
    spent = amount_words(
        sum(attempt.tokens_in + attempt.tokens_out for attempt in attempts),
        sum((attempt.usd for attempt in attempts), Decimal(0)),
    )
    held_back = amount_words(
        sum(attempt.tokens_reserved for attempt in attempts),
        sum((attempt.usd_reserved for attempt in attempts), Decimal(0)),
    )
    return f"{counted(len(attempts), 'attempt')}: spent {spent or 'nothing'}; held back {held_back or 'nothing'}"


def amount_words(tokens: int, usd: Decimal) -> str | None:
    """Tokens and US dollars; None for neither."""
    told = (counted(tokens, "token") if tokens else None, f"{usd:f} USD" if usd else None)
    return ", ".join(filter(None, told)) or None


def job_facts(job: Job, now: datetime) -> list[tuple[str, object]]:
    """All that `status` shows."""
    return [
        ("id", job.id),
        ("state", job.state),
        ("agent", job.agent),
        ("step", job.step),
        ("attempt", job.attempt or None),
        ("next attempt", _ahead(job.next_attempt_at, now)),
        ("failure", failure_words(job.failure)),
        ("died", counted(job.generation, "time") if job.generation else None),
        ("cancel asked", _time(job.cancel_requested_at)),
        ("used", _usage_words(job.usage)),
        ("held back", job.usage and amount_words(job.usage.tokens_reserved, job.usage.usd_reserved)),
        ("budget", _budget_words(job.budget)),
        ("deadline", _time(job.deadline_at)),
        ("created", _time(job.created_at)),
        ("started", _time(job.started_at)),
        ("updated", _time(job.updated_at)),
        ("ended", _time(job.finalized_at)),
        ("trace", job.trace_id),
        *_result_facts(job),
        ("Temporal UI", job.links.get("temporal_ui")),
        *_next_facts(job),
    ]


def outcome_facts(job: Job) -> list[tuple[str, object]]:
    """What a job came to: the end of `watch` and of `submit --wait`."""
    return [("failure", failure_words(job.failure)), *_result_facts(job), *_next_facts(job)]


def change_line(job: Job, now: datetime) -> str:
    """One line for one change."""
    parts = [
        time_of(job.updated_at or now),
        job.state,
        job.step,
        f"attempt {job.attempt}" if job.attempt and not job.has_ended else None,
        failure_words(job.failure),
        f"next attempt {ahead}" if (ahead := _ahead(job.next_attempt_at, now)) else None,
        "cancel asked" if job.cancel_requested_at and not job.has_ended else None,
        how_to_decide(job) if job.state == JobState.WAITING_APPROVAL else None,
        used_words(job.usage),
    ]
    return "  ".join(part for part in parts if part)


def live_line(job: Job, now: datetime, approval_until: datetime | None = None) -> str:
    """What a terminal shows below the changes, every second anew: the wait, and what is used by now."""
    parts = [f"{job.state}{_for_how_long(job, now, approval_until)}", job.step, used_words(job.usage)]
    return "  ".join(part for part in parts if part)


def used_words(usage: Usage | None) -> str | None:
    """Tokens in both directions and their cost; None before any is used."""
    if usage is None:
        return None
    return amount_words(usage.tokens_in + usage.tokens_out, Decimal(usage.usd or 0))


def how_to_decide(job: Job) -> str:
    """What a reviewer does about a call that waits."""
    return f"a reviewer decides: `python starter.py approvals show {job.id}`"


def failure_words(failure: Failure | None) -> str | None:
    """Why, in one line."""
    if failure is None:
        return None
    why = failure.reason or failure.category
    cause = f" ({failure.category})" if why != failure.category else ""
    return f"{why}{cause}: {failure.message}" if failure.message else f"{why}{cause}"


def effect_words(effect: DoneEffect) -> str:
    """One effect in one line: what is true of it now, why, and its receipt."""
    receipt = "" if effect.receipt is None else shortened(compact(effect.receipt), RECEIPT_LIMIT)
    because = effect.because and f"({effect.because})"
    return "  ".join(filter(None, (effect.step, effect.outcome or effect.state, because, receipt)))


def _result_facts(job: Job) -> list[tuple[str, object]]:
    if job.result is None:
        return []
    effects = "\n".join(map(effect_words, job.result.effects))
    return [("answer", job.result.answer), ("effects", effects)]


def _for_how_long(job: Job, now: datetime, approval_until: datetime | None) -> str:
    if job.next_attempt_at is not None:
        left = (job.next_attempt_at - now).total_seconds()
        return f": next attempt in {length_of(left)}" if left > 0 else ": next attempt is due"
    if job.state == JobState.WAITING_APPROVAL and approval_until is not None:
        return f": {length_of((approval_until - now).total_seconds())} left to decide"
    since = job.started_at or job.created_at
    return f" for {length_of((now - since).total_seconds())}" if since else ""


def _next_facts(job: Job) -> list[tuple[str, object]]:
    if job.state == JobState.WAITING_APPROVAL:
        return [("what now", how_to_decide(job))]
    if job.state != JobState.DEAD:
        return []
    return [("what now", f"`python starter.py dead show {job.id}`, then `dead redrive` or `dead discard`")]


def _usage_words(usage: Usage | None) -> str | None:
    if usage is None or not (usage.tokens_in or usage.tokens_out):
        return None
    return f"{usage.tokens_in} tokens in, {usage.tokens_out} out, {usage.usd or 0} USD"


def _budget_words(budget: Budget | None) -> str | None:
    if budget is None:
        return None
    tokens = None if budget.tokens is None else counted(budget.tokens, "token")
    steps = None if budget.steps is None else counted(budget.steps, "step")
    return ", ".join(filter(None, (tokens, budget.usd and f"{budget.usd} USD", steps)))


def _took(attempt: Attempt) -> str | None:
    if attempt.started_at is None or attempt.finished_at is None:
        return None
    return f"{(attempt.finished_at - attempt.started_at).total_seconds():.1f}s"


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else time_of(moment)


def _ahead(moment: datetime | None, now: datetime) -> str | None:
    return None if moment is None else ahead_words(moment, now)
