import pytest

from agentjobs.providers.subject import subject_of


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("# Login fails\n\nSince Monday.", "Login fails"),
        ("\n\n  - **Printer** is on fire\n", "Printer is on fire"),
        ("Trouble with C#", "Trouble with C#"),
        ("-5 degrees is shown as 5", "-5 degrees is shown as 5"),
        ("Email\n\nNothing arrives any more.", "Email: Nothing arrives any more."),
        ("someone@example.org\n\nHow do I leave?", "How do I leave?"),
        ("###", "(untitled)"),
        ("a\tb\x07c", "a b c"),
    ],
)
def test_the_subject_is_what_the_person_put_first(text: str, subject: str) -> None:
    assert subject_of(text) == subject


def test_a_long_subject_ends_with_a_whole_sentence_if_one_fits() -> None:
    subject = subject_of("The export of my address book is empty. " + "And so on and on " * 20)

    assert subject == "The export of my address book is empty."


def test_a_long_subject_is_cut_between_words() -> None:
    subject = subject_of("word " * 100)

    assert subject.endswith("word…")
    assert len(subject) <= 120


def test_a_long_subject_never_splits_a_flag() -> None:
    subject = subject_of("x" + "🇩🇪" * 100)

    assert subject == "x" + "🇩🇪" * 59 + "…"
