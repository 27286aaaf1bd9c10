"""The offline provider as its callers see it: three calls, any text, the same reply each time."""

import json
import time
import unicodedata
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentjobs.demo import DemoRequest, load_requests
from agentjobs.domain.failures import Category as FailureCategory
from agentjobs.domain.failures import PermanentError
from agentjobs.domain.job import TEXT_LIMIT
from agentjobs.providers.model import (
    Brief,
    Category,
    NothingMore,
    Plan,
    ToolCall,
    ToolDescription,
    ToolResult,
    Urgency,
)
from agentjobs.providers.offline import BODY_LIMIT, CREATE, MODEL, SEARCH, OfflineProvider
from agentjobs.providers.phrases import languages, phrases_for

PROMISED_LANGUAGES = (
    *("en", "de", "es", "pt", "fr", "it", "nl", "ja", "zh", "ru", "pl", "ko", "tr", "cs", "sv", "hu", "da"),
    *("fi", "he"),
)

ODD_TEXTS = {
    "emoji": "😡😡😡 👩‍👩‍👧‍👦🇩🇪🇯🇵",
    "digits": "12345",
    "one letter": "a",
    "rule only": "### --- ***",
    "right to left": "\u202e " + "שלום לכולם المشكلة في الدخول" + " \u202c",
    "zero width": "\u200b\u200d\ufeff",
    "combining": "e" + "\u0301" * 5_000,
    "log": "Traceback (most recent call last):\n" + '  File "x.py", line 1, in <module>\n' * 900,
    "one long word": "x" * TEXT_LIMIT,
    "flags": "🇩🇪" * (TEXT_LIMIT // 2),
    "mixed": "Hallo 你好 привет こんにちは שלום " * 900,
    "nul": "\x00 broken \x07 text",
}

# One event loop and one loaded model serve every example; nothing in the provider changes between them.
fuzzed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def provider() -> OfflineProvider:
    return OfflineProvider()


def brief_of(text: str, *, plan: Plan | None = None, done: tuple[ToolResult, ...] = ()) -> Brief:
    tools = tuple(ToolDescription(name=name, description="", parameters={}) for name in (SEARCH, CREATE))
    return Brief(instructions="Triage.", text=text, tools=tools, plan=plan, done=done, remaining_seconds=60)


def done(step: int, tool: str, result: dict[str, Any]) -> ToolResult:
    return ToolResult(step=step, tool=tool, arguments={}, result=result)


def plan_in(language: str) -> Plan:
    return Plan(language=language, category="bug", urgency="high", subject="Broken", steps=(SEARCH, CREATE))


FOUND_NOTHING = done(1, SEARCH, {"tickets": []})
FOUND_TWO = done(
    1, SEARCH, {"tickets": [{"id": "T-3", "subject": "Mail is lost"}, {"id": "T-4", "subject": "No mail"}]}
)
CREATED = done(2, CREATE, {"id": "T-12", "url": None})


async def planned(provider: OfflineProvider, text: str) -> Plan:
    return (await provider.plan(brief_of(text))).plan


# --- the plan


@pytest.mark.parametrize("request_", load_requests(), ids=lambda request: request.id)
async def test_each_demo_request_gets_its_language(provider: OfflineProvider, request_: DemoRequest) -> None:
    plan = await planned(provider, request_.text)

    assert plan.language == request_.lang.split("-")[0]


async def test_demo_complaint_and_incident_are_recognised(provider: OfflineProvider) -> None:
    found = {
        request.kind: (await planned(provider, request.text)).category
        for request in load_requests()
        if request.kind != "support"
    }

    assert found == {"complaint": "complaint", "incident": "incident"}


async def test_the_steps_name_only_tools_that_are_there(provider: OfflineProvider) -> None:
    brief = brief_of("The export fails").model_copy(update={"tools": ()})

    assert (await provider.plan(brief)).plan.steps == ()
    assert (await planned(provider, "The export fails")).steps == (SEARCH, CREATE)


# --- the steps


async def test_it_searches_first_with_a_few_words_of_the_request(provider: OfflineProvider) -> None:
    reply = await provider.next_step(brief_of("The export of my address book fails"))

    assert reply.decision == ToolCall(tool=SEARCH, arguments={"query": "The export address book fails"})


async def test_it_does_not_search_for_an_address(provider: OfflineProvider) -> None:
    reply = await provider.next_step(brief_of("No mail from someone@example.org arrives"))

    assert isinstance(reply.decision, ToolCall)
    assert reply.decision.arguments == {"query": "mail from arrives"}


async def test_then_it_opens_a_ticket_with_the_request_and_what_the_search_found(
    provider: OfflineProvider,
) -> None:
    reply = await provider.next_step(brief_of("My mail is lost", plan=plan_in("en"), done=(FOUND_TWO,)))

    assert reply.decision == ToolCall(
        tool=CREATE,
        arguments={
            "subject": "Broken",
            "body": "My mail is lost\n\nSimilar tickets: T-3 (Mail is lost), T-4 (No mail).",
            "category": "bug",
            "urgency": "high",
            "language": "en",
        },
    )


async def test_a_plain_question_gets_a_ticket_too(provider: OfflineProvider) -> None:
    reply = await provider.next_step(brief_of("Is there a version for Android?", done=(FOUND_NOTHING,)))

    assert isinstance(reply.decision, ToolCall)
    assert reply.decision.tool == CREATE


async def test_after_the_ticket_nothing_more_is_needed(provider: OfflineProvider) -> None:
    reply = await provider.next_step(brief_of("My mail is lost", done=(FOUND_NOTHING, CREATED)))

    assert reply.decision == NothingMore()


async def test_without_tools_nothing_more_is_needed(provider: OfflineProvider) -> None:
    brief = brief_of("My mail is lost").model_copy(update={"tools": ()})

    assert (await provider.next_step(brief)).decision == NothingMore()


async def test_the_ticket_holds_at_most_four_thousand_characters_of_the_request(
    provider: OfflineProvider,
) -> None:
    reply = await provider.next_step(brief_of("word " * 5_000, done=(FOUND_NOTHING,)))

    assert isinstance(reply.decision, ToolCall)
    assert BODY_LIMIT - 10 < len(reply.decision.arguments["body"]) <= BODY_LIMIT


# --- the answer


@pytest.mark.parametrize("language", PROMISED_LANGUAGES)
async def test_the_answer_names_the_ticket_and_says_in_its_language_that_rules_wrote_it(
    provider: OfflineProvider, language: str
) -> None:
    phrases = phrases_for(language)

    reply = await provider.answer(brief_of("…", plan=plan_in(language), done=(FOUND_TWO, CREATED)))

    for expected in ("T-12", "T-3, T-4", phrases.say("thanks"), phrases.say("offline"), phrases.name_of("bug")):
        assert expected in reply.answer.text
    assert "{" not in reply.answer.text


async def test_the_answer_shows_the_ticket_s_address_and_keeps_other_people_s_subjects_to_itself(
    provider: OfflineProvider,
) -> None:
    created = done(2, CREATE, {"id": "T-12", "url": "https://tracker.test/T-12"})

    reply = await provider.answer(brief_of("Help", plan=plan_in("en"), done=(FOUND_TWO, created)))

    assert "T-12 (https://tracker.test/T-12)" in reply.answer.text
    assert "Mail is lost" not in reply.answer.text


async def test_a_regional_tag_is_answered_in_its_language_and_an_unknown_one_in_english(
    provider: OfflineProvider,
) -> None:
    brazilian = await provider.answer(brief_of("Oi", plan=plan_in("pt-BR")))
    unknown = await provider.answer(brief_of("??", plan=plan_in("und")))

    assert brazilian.answer.text.startswith("Agradecemos")
    assert unknown.answer.text.startswith("Thank you")


@pytest.mark.parametrize(
    "results", [(), (done(1, CREATE, {"refused": "no such queue"}),), (done(1, SEARCH, {"tickets": "none"}),)]
)
async def test_without_a_ticket_the_answer_claims_none(
    provider: OfflineProvider, results: tuple[ToolResult, ...]
) -> None:
    reply = await provider.answer(brief_of("Help", plan=plan_in("en"), done=results))

    assert "icket" not in reply.answer.text


def test_every_language_has_every_phrase() -> None:
    names = ("thanks", "understood", "ticket", "similar", "offline", *get_args(Category), *get_args(Urgency))

    assert set(languages()) >= set(PROMISED_LANGUAGES)
    for language in languages():
        assert all(phrases_for(language).name_of(name).strip() for name in names)


# --- any text


@pytest.mark.parametrize("text", ["", "  \n\t ", "\x00"])
async def test_a_blank_request_is_refused_for_good(provider: OfflineProvider, text: str) -> None:
    for call in (provider.plan, provider.next_step, provider.answer):
        with pytest.raises(PermanentError) as refusal:
            await call(brief_of(text, plan=plan_in("en")))
        assert refusal.value.category is FailureCategory.INVALID_INPUT


async def carried_out(provider: OfflineProvider, text: str) -> list[str]:
    """Every reply of a whole job over the text."""
    plan = await provider.plan(brief_of(text))
    search = await provider.next_step(brief_of(text, plan=plan.plan))
    create = await provider.next_step(brief_of(text, plan=plan.plan, done=(FOUND_TWO,)))
    answer = await provider.answer(brief_of(text, plan=plan.plan, done=(FOUND_TWO, CREATED)))
    return [reply.model_dump_json() for reply in (plan, search, create, answer)]


def assert_usable(replies: list[str]) -> None:
    plan, search, create, answer = (json.loads(reply) for reply in replies)
    assert 0 < len(plan["plan"]["subject"].strip()) <= 120
    assert not any(unicodedata.category(character) == "Cc" for character in plan["plan"]["subject"])
    assert 0 < len(search["decision"]["arguments"]["query"].strip()) <= 500
    assert "\x00" not in create["decision"]["arguments"]["body"]
    assert "T-12" in answer["answer"]["text"]


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
async def test_odd_texts_are_carried_through_to_an_answer(provider: OfflineProvider, text: str) -> None:
    assert_usable(await carried_out(provider, text))


@fuzzed
@given(text=st.text(min_size=1, max_size=400).filter(lambda text: bool(text.replace("\x00", "").strip())))
async def test_any_text_is_carried_through_and_the_same_brief_gives_the_same_reply(
    provider: OfflineProvider, text: str
) -> None:
    first = await carried_out(provider, text)
    second = await carried_out(provider, text)

    assert first == second
    assert_usable(first)


async def test_another_instance_gives_the_same_replies(provider: OfflineProvider) -> None:
    text = load_requests()[0].text

    assert await carried_out(OfflineProvider(), text) == await carried_out(provider, text)


# --- the cost


async def test_usage_counts_four_characters_a_token_and_costs_nothing(provider: OfflineProvider) -> None:
    short, long = brief_of("The export fails"), brief_of("The export fails" + " again" * 1_000)

    replies = [await provider.plan(brief) for brief in (short, long)]

    assert [reply.model for reply in replies] == [MODEL, MODEL]
    assert replies[1].usage.tokens_in - replies[0].usage.tokens_in == 6_000 / 4
    assert all(reply.usage.tokens_out > 0 and reply.usage.usd == 0 for reply in replies)


async def test_usage_does_not_depend_on_the_time_that_remains(provider: OfflineProvider) -> None:
    brief = brief_of("The export fails")

    later = await provider.plan(brief.model_copy(update={"remaining_seconds": 1.25}))

    assert later == await provider.plan(brief)


@pytest.mark.parametrize("text", ["x" * 9_000, "fail " * 1_800, "@" * 9_000, "e\u0301" * 4_500, "🇩🇪" * 4_500])
async def test_nine_thousand_characters_are_planned_in_a_moment(provider: OfflineProvider, text: str) -> None:
    await planned(provider, "load the model")

    started_at = time.process_time()
    await planned(provider, text)

    assert time.process_time() - started_at < 0.2  # about 2 ms; the rest is for a slow, busy machine
