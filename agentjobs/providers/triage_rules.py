"""What a request is about and how urgent it is, told by the words it uses.

The words stand in triage_words.jsonl, per language and sign, as stems: a stem matches at the start of a word, a
stem that ends in a blank matches a whole word. Matching is plain substring search, so its time is bounded.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from agentjobs.providers.model import Category, Urgency

Stems = Mapping[str, tuple[str, ...]]
"""Sign (a category, `urgent` or `unhurried`) to the stems that give it away."""

_LOOKED_AT: Final = 4_000
"""Characters that are read: what follows in a long request is a log or a repetition."""

# Where two categories score alike, the one whose neglect hurts more wins; a question is the mildest reading.
_PRECEDENCE: Final[tuple[Category, ...]] = ("incident", "complaint", "billing", "account", "bug", "question")

_INCIDENT_NEEDS: Final = 2
"""One word such as "outage" is an aside in many a support request; two of them make a report."""

_QUESTION_LIMIT: Final = 2
"""Most requests ask something; what they ask about weighs more than how often they ask."""

_WITHOUT_SPACES: Final = frozenset({"ja", "zh"})
"""Languages in which a word starts anywhere."""

_NO_WORD: Final = re.compile(r"\W+")
_ACCENTS: Final = dict.fromkeys(range(0x0300, 0x0370))
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")


class Triage(NamedTuple):
    """The verdict of the rules."""

    category: Category
    urgency: Urgency


def triage(title: str, text: str, language: str) -> Triage:
    """Sort a request by its title, which weighs double, and the first few thousand characters of its text."""
    stems = _stems_for(language)
    heading, body = _normalised(title), _normalised(text[:_LOOKED_AT])
    scores = {category: _score(stems.get(category, ()), heading, body) for category in _PRECEDENCE}
    scores["question"] = min(scores["question"] + _asks(title, text), _QUESTION_LIMIT)
    if scores["incident"] < _INCIDENT_NEEDS:
        scores["incident"] = 0
    category = _strongest(scores)
    return Triage(category, _urgency(category, stems, body))


def _score(stems: Iterable[str], heading: str, body: str) -> int:
    return sum((stem in body) + (stem in heading) for stem in stems)


def _asks(title: str, text: str) -> int:
    """A mark at the very end of the title or of the text asks; one inside a pasted log does not."""
    return int(any(part.rstrip().endswith(_QUESTION_MARKS) for part in (title, text)))


def _strongest(scores: Mapping[Category, int]) -> Category:
    best = max(_PRECEDENCE, key=lambda category: scores[category])  # the first of equals: precedence
    return best if scores[best] > 0 else "other"


def _urgency(category: Category, stems: Stems, body: str) -> Urgency:
    if category == "incident" or _score(stems.get("urgent", ()), "", body):
        return "high"
    if category == "question" or _score(stems.get("unhurried", ()), "", body):
        return "low"
    return "normal"


def _normalised(text: str) -> str:
    """Folded words between single blanks, so that a leading blank in a stem means the start of a word."""
    return f" {_NO_WORD.sub(' ', _folded(text)).strip()} "


def _folded(text: str) -> str:
    """Without case and accents: many people write without them, and keyboards differ."""
    bare = unicodedata.normalize("NFKD", text.casefold()).translate(_ACCENTS)
    return unicodedata.normalize("NFC", bare)


def _stems_for(language: str) -> Stems:
    """The stems of the language and of English, in which products and servers speak to everybody."""
    primary = language.split("-")[0]
    everything = _all_stems()
    own, english = everything.get(primary, {}), everything["en"]
    return {sign: own.get(sign, ()) + (english[sign] if primary != "en" else ()) for sign in english}


@cache
def _all_stems() -> Mapping[str, Stems]:
    """The data file, read once per process: it is part of the code and cannot change while it runs."""
    stems: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in resources.files(__package__).joinpath("triage_words.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        stems.setdefault(row["language"], {})[row["sign"]] = _prepared(row["stems"], row["language"])
    return stems


def _prepared(stems: Iterable[str], language: str) -> tuple[str, ...]:
    start = "" if language in _WITHOUT_SPACES else " "
    return tuple(start + _folded(stem) for stem in stems)
