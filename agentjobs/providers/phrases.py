"""The sentences that the offline provider answers with, in each language it knows.

They stand in phrases.jsonl, one phrase a line, so that a speaker of the language can read and correct them.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

FALLBACK_LANGUAGE: Final = "en"

# Written without blanks between sentences.
_WITHOUT_SPACES: Final = frozenset({"ja", "zh"})


class Phrases:
    """One language's sentences. Category and urgency names are phrases too, under their own names."""

    def __init__(self, language: str, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._between = "" if language in _WITHOUT_SPACES else " "

    def say(self, name: str, **values: str) -> str:
        """One sentence with its values filled in."""
        return self._texts[name].format(**values)

    def name_of(self, term: str) -> str:
        """A category or an urgency in this language's words."""
        return self._texts[term]

    def joined(self, *sentences: str) -> str:
        """Sentences as one paragraph."""
        return self._between.join(sentences)


def phrases_for(language: str) -> Phrases:
    """The phrases of a BCP 47 tag by its primary language, or English."""
    everything = _all_phrases()
    return everything.get(language.split("-")[0].lower(), everything[FALLBACK_LANGUAGE])


def languages() -> tuple[str, ...]:
    """The languages there are phrases in."""
    return tuple(_all_phrases())


@cache
def _all_phrases() -> Mapping[str, Phrases]:
    """The data file, read once per process: it is part of the code and cannot change while it runs."""
    texts: dict[str, dict[str, str]] = {}
    for line in resources.files(__package__).joinpath("phrases.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        texts.setdefault(row["language"], {})[row["name"]] = row["text"]
    return {language: Phrases(language, of_language) for language, of_language in texts.items()}
