"""Which language a request is written in: the py3langid model behind a few rules for what it cannot know.

The model always names some language, also for an emoji or a line of digits; the rules here say when not to
believe it.
"""

import threading
from collections import Counter
from typing import Any, Final

UNDETERMINED: Final = "und"
"""BCP 47 for "there is text, but nobody can say in which language"."""

SAMPLE_LIMIT: Final = 1_500
"""Characters that are looked at: more changes no answer on real requests and only costs time."""

_FEWEST_LETTERS: Final = 4
_BELIEVED_FROM: Final = 0.3
"""Below this probability real requests were mislabelled as often as not."""

# Fewer candidates make short texts safer: without the limit two English words become Nigerian Pidgin.
# fmt: off
_CANDIDATES: Final = (
    "ar", "bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr", "hu", "id",
    "it", "ja", "ko", "lt", "lv", "ms", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "th", "tr",
    "uk", "vi", "zh",
)
# fmt: on

# First code point, last code point, the language a script suggests when the model is no help.
_SCRIPTS: Final = (
    (0x0370, 0x03FF, "el"),
    (0x0400, 0x04FF, "ru"),
    (0x0590, 0x05FF, "he"),
    (0x0600, 0x06FF, "ar"),
    (0x0900, 0x097F, "hi"),
    (0x0E00, 0x0E7F, "th"),
    (0x3040, 0x30FF, "ja"),
    (0x4E00, 0x9FFF, "zh"),
    (0xAC00, 0xD7AF, "ko"),
)

_ENGLISH_HINTS: Final = frozenset({"and", "for", "is", "it", "my", "not", "of", "or", "the", "to", "with", "you"})


class LanguageDetector:
    """Names the language of a text. The model is loaded once, on first use, and held as long as this lives."""

    def __init__(self) -> None:
        self._model: Any = None  # py3langid carries no types
        self._loading = threading.Lock()

    @property
    def loaded(self) -> bool:
        """Whether `detect` answers at once; loading takes more than half a second."""
        return self._model is not None

    def load(self) -> None:
        """Load the model unless it is there. Safe to call from several threads."""
        with self._loading:
            if self._model is None:
                self._model = _model()

    def detect(self, text: str) -> str:
        """The BCP 47 tag of the text's language, or `und`."""
        self.load()
        sample = _prose(text)
        if sum(map(str.isalpha, sample)) < _FEWEST_LETTERS:
            return _language_of_script(sample) or UNDETERMINED
        language, probability = self._model.classify(sample)
        return str(language) if probability >= _BELIEVED_FROM else _hinted(sample)


def _model() -> Any:
    # Imported here because numpy and the model cost 90 MB, which a worker with another provider need not pay.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    model.set_languages(_CANDIDATES)
    return model


def _prose(text: str) -> str:
    """The sample without addresses, which speak no language, and without shouting, which the model misreads."""
    prose = " ".join(word for word in text[:SAMPLE_LIMIT].split() if not _is_address(word))
    shouted = sum(map(str.isupper, prose)) > sum(map(str.islower, prose))
    return prose.lower() if shouted else prose


def _is_address(word: str) -> bool:
    # Japanese and Chinese run a sentence into the address, so only a purely Latin word is dropped.
    return word.isascii() and ("@" in word or "://" in word)


def _hinted(sample: str) -> str:
    if by_script := _language_of_script(sample):
        return by_script
    return "en" if _ENGLISH_HINTS.intersection(sample.lower().split()) else UNDETERMINED


def _language_of_script(sample: str) -> str | None:
    """The language of the script that most letters belong to. Kana decides for Japanese, which also has Han."""
    counts = Counter(language for character in sample if (language := _suggested_by(character)))
    if counts["ja"]:
        return "ja"
    return counts.most_common(1)[0][0] if counts.total() else None


def _suggested_by(character: str) -> str | None:
    code = ord(character)
    return next((language for first, last, language in _SCRIPTS if first <= code <= last), None)
