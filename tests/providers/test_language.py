import subprocess
import sys

import pytest

from agentjobs.providers.language import LanguageDetector


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("😡😡", "und"),
        ("12345", "und"),
        ("はい", "ja"),
        ("네", "ko"),
        ("да", "ru"),
        ("NECESITO SABER CÓMO BORRAR", "es"),
    ],
)
def test_short_and_shouted_texts_go_by_script_or_stay_undetermined(
    detector: LanguageDetector, text: str, language: str
) -> None:
    assert detector.detect(text) == language


def test_an_address_does_not_speak_for_the_text(detector: LanguageDetector) -> None:
    assert detector.detect("hilfe.und.kontakt@beispiel.example ¿Cómo puedo borrar un correo?") == "es"


def test_two_english_words_among_names_are_english(detector: LanguageDetector) -> None:
    assert detector.detect("Twitter and Echofon spam") == "en"


def test_the_model_is_loaded_on_first_use() -> None:
    detector = LanguageDetector()

    before = detector.loaded
    detector.detect("Good morning to you")

    assert (before, detector.loaded) == (False, True)


def test_importing_the_provider_loads_no_model() -> None:
    asked = "import sys, agentjobs.providers.offline; sys.exit('py3langid' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
