import pytest

from agentjobs.providers.model import Category, Urgency
from agentjobs.providers.triage_rules import triage


@pytest.mark.parametrize(
    ("language", "text", "category", "urgency"),
    [
        ("en", "How do I reset the passcode?", "account", "normal"),
        ("en", "I was charged twice, please refund the second payment", "billing", "normal"),
        ("en", "The application crashes when I save a file", "bug", "normal"),
        ("en", "# Incident report\n\nProduction outage, the whole cluster went down", "incident", "high"),
        ("en", "I want to complain: your agent was rude and refused to help", "complaint", "normal"),
        ("en", "Is there a version for Android?", "question", "low"),
        ("en", "Greetings from the seaside", "other", "normal"),
        ("en", "URGENT: the export fails with an error", "bug", "high"),
        ("de", "Ich habe mein Passwort vergessen", "account", "normal"),
        ("de", "Die Anwendung funktioniert nicht mehr, bitte dringend helfen", "bug", "high"),
        ("fr", "Je voudrais un remboursement de ma facture", "billing", "normal"),
        ("ja", "突然メールが受信できなくなりました。", "bug", "normal"),
        ("zh", "我忘记了密码 登录不了账号", "account", "normal"),
        ("pt", "Não consigo enviar mensagens, aparece um erro", "bug", "normal"),
        ("pt", "nao consigo enviar mensagens, aparece um erro", "bug", "normal"),
        ("es", "Quiero presentar una queja, esto es inaceptable", "complaint", "normal"),
    ],
)
def test_a_request_is_sorted_by_the_words_it_uses(
    language: str, text: str, category: Category, urgency: Urgency
) -> None:
    assert triage(text.splitlines()[0], text, language) == (category, urgency)


def test_one_word_about_an_outage_does_not_make_an_incident() -> None:
    text = "I have lost my account after an outage, my password is refused"

    assert triage(text, text, "en").category == "account"


def test_english_words_count_in_every_language() -> None:
    text = "ошибка: connection timeout error"

    assert triage(text, text, "ru").category == triage(text, text, "xx").category == "bug"


def test_what_lies_beyond_the_first_few_thousand_characters_does_not_count() -> None:
    assert triage("Hello", "Hello " * 1_000 + "refund the payment", "en").category == "other"
