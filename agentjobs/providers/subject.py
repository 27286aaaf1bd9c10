"""The subject line of a request and the words to search for it by, taken from what the person wrote."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final

SUBJECT_LIMIT: Final = 120
UNTITLED: Final = "(untitled)"

_LOOKED_AT: Final = 2_000
"""Characters that a subject may come from: people name their trouble at the start."""

_LEAST_SAID: Final = 30
"""A sentence that ends before this is "Hello, good morning." rather than a subject."""

_SEARCH_WORDS: Final = 5
_LONGEST_SEARCH_WORD: Final = 40

_MARKS: Final = " #*_>=~`|+-\u2013\u2014\u2022"
"""What Markdown draws with: a line of nothing else is a rule or an empty heading."""

# Only what stands apart from the words is a heading, quote or list mark: "C#" and "-5 degrees" keep theirs.
_LEADING_MARKS: Final = re.compile(r"^(?:[#*>|+\u2013\u2014\u2022-]+ )+")

_ENDS_OF_SENTENCE: Final = (". ", "! ", "? ", "\u3002", "\uff01", "\uff1f")

# Explicit direction marks would turn round whatever a console prints after the subject.
_DIRECTION_MARKS: Final = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])

_ZERO_WIDTH_JOINER: Final = "\u200d"

# Kanji or katakana runs carry the meaning of Japanese and Chinese, which put no spaces between words.
_WORDS: Final = re.compile(r"[\u4e00-\u9fff]{2,8}|[\u30a0-\u30ff]{2,40}|[^\W\u3040-\u30ff\u4e00-\u9fff]{3,}")


def subject_of(text: str) -> str:
    """The first line or sentence that says something, one printable line, never blank."""
    lines = _meaningful_lines(text)
    first = next(lines, UNTITLED)
    if _says_little(first) and (second := next(lines, None)):
        first = f"{first}: {second}"
    return shortened(_whole_sentences(first), SUBJECT_LIMIT)


def search_words(subject: str) -> str:
    """The longest few words of a subject in their order: the rarest ones, in every language alike."""
    found = [word for word in _words(subject) if len(word) <= _LONGEST_SEARCH_WORD]
    distinct = list(dict.fromkeys(found))
    longest = sorted(distinct, key=len, reverse=True)[:_SEARCH_WORDS]
    return " ".join(word for word in distinct if word in longest) or shortened(subject, _LONGEST_SEARCH_WORD)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, cut between words where there are any, else between whole graphemes."""
    if len(text) <= limit:
        return text
    space = text.rfind(" ", limit // 2, limit)
    cut = space if space > 0 else _grapheme_boundary(text, limit - 1)
    return text[:cut].rstrip() + "\u2026"


def _meaningful_lines(text: str) -> Iterator[str]:
    lines = map(_without_marks, text[:_LOOKED_AT].translate(_DIRECTION_MARKS).splitlines())
    return (line for line in lines if _is_visible(line.strip(_MARKS)) and not _is_mail_address(line))


def _without_marks(line: str) -> str:
    printable = "".join(" " if unicodedata.category(character) == "Cc" else character for character in line)
    return _LEADING_MARKS.sub("", " ".join(printable.replace("**", "").split()))


def _is_visible(line: str) -> bool:
    # C: control and format characters, Z: spaces, M: marks that need a letter to stand on.
    return any(unicodedata.category(character)[0] not in "CZM" for character in line)


def _is_mail_address(line: str) -> bool:
    return "@" in line and " " not in line and line.isascii()


def _says_little(line: str) -> bool:
    """A single Latin word such as "Email" or "Hello," is a title that tells tickets apart from nothing."""
    return " " not in line and len(line) <= 20 and ord(line[0]) < 0x0250


def _whole_sentences(line: str) -> str:
    """As many whole sentences of a long line as fit, if that leaves more than a greeting."""
    if len(line) <= SUBJECT_LIMIT:
        return line
    end = max(line.rfind(mark, _LEAST_SAID, SUBJECT_LIMIT) for mark in _ENDS_OF_SENTENCE)
    return line[: end + 1] if end > 0 else line


def _words(subject: str) -> list[str]:
    # An address is personal data and matches nothing but itself, so it is not searched for.
    kept = " ".join(part for part in subject.split() if "@" not in part and "://" not in part)
    return list(islice(_WORDS.findall(kept), 40))


def _grapheme_boundary(text: str, position: int) -> int:
    """The last position up to `position` that splits no grapheme; `position` itself if there is none."""
    for candidate in range(position, 0, -1):
        if not _continues(text, candidate):
            return candidate
    return position


def _continues(text: str, position: int) -> bool:
    """Whether the character there belongs to the grapheme before it, by the rules people's texts really need."""
    here, before = text[position], text[position - 1]
    if unicodedata.category(here)[0] == "M" or _ZERO_WIDTH_JOINER in (here, before):
        return True
    return "\U0001f3fb" <= here <= "\U0001f3ff" or (_is_flag_half(here) and _flags_before(text, position) % 2 == 1)


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, position: int) -> int:
    start = position
    while start > 0 and _is_flag_half(text[start - 1]):
        start -= 1
    return position - start
