"""A dead letter in words."""

from datetime import datetime
from typing import Final

from agentjobs.commands.answers import AttemptCount, DeadLetter, Death, InputChange, Spent
from agentjobs.commands.job_lines import amount_words, effect_words
from agentjobs.commands.render import Screen
from agentjobs.commands.words import compact, counted, length_of, time_of

DEAD_COLUMNS: Final = ("ID", "STATE", "REASON", "DIED", "STEP", "AGENT", "MESSAGE")
SPENT_COLUMNS: Final = ("SPENT ON", "MODEL", "ATTEMPTS", "TOKENS IN", "OUT", "USD", "HELD BACK")


def dead_row(letter: DeadLetter, screen: Screen) -> list[object]:
    """One line of `dead list`."""
    return [
        letter.id,
        letter.state,
        letter.reason,
        screen.moment(letter.died_at),
        letter.step,
        letter.agent,
        letter.message,
    ]


def dead_facts(letter: DeadLetter) -> list[tuple[str, object]]:
    """All that `dead show` shows: what somebody needs to decide."""
    times = {name: None if moment is None else time_of(moment) for name, moment in _moments(letter)}
    return [
        ("id", letter.id),
        ("state", letter.state),
        ("reason", letter.reason),
        ("category", letter.category),
        ("message", letter.message),
        ("step", letter.step),
        ("deaths", "\n".join(map(_death_words, letter.deaths)) or letter.generation),
        ("attempts", _item_by_item(letter.attempts)),
        ("tried", "\n".join(map(_tried_words, letter.tried))),
        ("effects done", _item_by_item(letter.effects_done)),
        ("effects in doubt", _item_by_item(letter.effects_in_doubt)),
        ("effects at the end", "\n".join(map(effect_words, letter.effects))),
        ("agent", " ".join(filter(None, (letter.agent, letter.policy_version)))),
        ("worker", letter.worker),
        ("build", letter.worker_build),
        ("origin", letter.origin),
        ("submitted by", letter.submitted_by),
        ("review id", letter.review_id),
        *times.items(),
        ("resolved by", letter.resolved_by),
        ("note", letter.note),
        ("Temporal UI", letter.links.get("temporal_ui")),
        ("input", letter.input.text if letter.input else None),
        *((f"input before {change.generation}", _change_words(change)) for change in letter.input_changes),
    ]


def spent_row(spent: Spent) -> list[object]:
    """One line of what `dead show` says was spent on what."""
    return [
        spent.step,
        spent.model,
        spent.attempts,
        spent.tokens_in,
        spent.tokens_out,
        spent.usd or None,
        amount_words(spent.tokens_reserved, spent.usd_reserved),
    ]


def _moments(letter: DeadLetter) -> tuple[tuple[str, datetime | None], ...]:
    return ("died", letter.died_at), ("alerted", letter.alerted_at), ("resolved", letter.resolved_at)


def _item_by_item(value: object) -> str | None:
    """A list with one item a line."""
    if value is None or value == []:
        return None
    items = value if isinstance(value, list) else [value]
    return "\n".join(compact(item) for item in items)


def _death_words(death: Death) -> str:
    decided = " by ".join(filter(None, (death.resolution, death.resolved_by)))
    died = None if death.died_at is None else time_of(death.died_at)
    parts = (str(death.generation), died, death.reason, death.step, decided, death.outcome)
    return "  ".join(filter(None, parts))


def _tried_words(tried: AttemptCount) -> str:
    ended = " ".join(filter(None, (tried.outcome, tried.category)))
    waited = f", waited {length_of(tried.wait_seconds)}" if tried.wait_seconds else ""
    return f"{counted(tried.attempts, 'attempt')} {ended}{waited}"


def _change_words(change: InputChange) -> str:
    by = " ".join(filter(None, ("changed by", change.changed_by, change.note and f"({change.note})")))
    return f"{change.old_input.text}\n{by}"
