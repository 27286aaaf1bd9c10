"""A model provider that needs no network and no model: rules sort the request, phrases answer it.

It is the default, so that everything else can be seen working on a machine that has no key and no
connection. It never pretends: its answers say that rules wrote them. The same brief gives the same reply.
"""

import asyncio
import math
from decimal import Decimal
from typing import Final, NamedTuple

from pydantic import BaseModel

from agentjobs.domain.budget import Usage
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.providers.language import LanguageDetector
from agentjobs.providers.model import (
    Answer,
    AnswerReply,
    Brief,
    Listener,
    NothingMore,
    Plan,
    PlanReply,
    StepReply,
    ToolCall,
)
from agentjobs.providers.phrases import Phrases, phrases_for
from agentjobs.providers.subject import search_words, shortened, subject_of
from agentjobs.providers.triage_rules import triage

MODEL: Final = "offline-rules-1"
SEARCH: Final = "search_tickets"
CREATE: Final = "create_ticket"

BODY_LIMIT: Final = 4_000
"""Characters of the request that go into its ticket; the job keeps the whole text."""

SIMILAR_LIMIT: Final = 5
"""More similar tickets than this help nobody to find the right one."""

_CHARACTERS_PER_TOKEN: Final = 4  # the usual rule of thumb; there is no tokenizer here to ask


class Ticket(NamedTuple):
    """A ticket as a tool's result names it."""

    id: str
    subject: str
    url: str


class OfflineProvider:
    """Plans, chooses tools and answers by rules alone."""

    def __init__(self) -> None:
        self._languages = LanguageDetector()

    @property
    def metered(self) -> bool:
        """Rules have no limit."""
        return False

    @property
    def short(self) -> bool:
        """Rules answer at once."""
        return True

    def most_usd(self, tokens: int) -> Decimal:  # noqa: ARG002
        """Rules cost nothing."""
        return Decimal(0)

    async def plan(self, brief: Brief, listener: Listener | None = None) -> PlanReply:  # noqa: ARG002
        """Sort the request by the words it uses."""
        _require_text(brief)
        plan = await self._planned(brief)
        return PlanReply(plan=plan, model=MODEL, usage=_usage(brief, plan))

    async def next_step(self, brief: Brief, listener: Listener | None = None) -> StepReply:  # noqa: ARG002
        """Search for similar tickets, then open one, each if the tool is there; then nothing more."""
        decision = _next_call(brief, await self._plan_of(brief)) or NothingMore()
        return StepReply(decision=decision, model=MODEL, usage=_usage(brief, decision))

    async def answer(self, brief: Brief, listener: Listener | None = None) -> AnswerReply:  # noqa: ARG002
        """Tell the person, in their language, what was understood and which ticket is open."""
        answer = Answer(text=_answer_text(await self._plan_of(brief), brief))
        return AnswerReply(answer=answer, model=MODEL, usage=_usage(brief, answer))

    async def aclose(self) -> None:
        """Nothing to give back: there was never a connection."""

    async def _plan_of(self, brief: Brief) -> Plan:
        _require_text(brief)
        return brief.plan or await self._planned(brief)

    async def _planned(self, brief: Brief) -> Plan:
        if not self._languages.loaded:
            # Half a second of CPU: in a thread, so that heartbeats of other activities go on meanwhile.
            await asyncio.to_thread(self._languages.load)
        language = self._languages.detect(brief.text)
        subject = subject_of(brief.text)
        category, urgency = triage(subject, brief.text, language)
        steps = tuple(name for name in (SEARCH, CREATE) if _offers(brief, name))
        return Plan(language=language, category=category, urgency=urgency, subject=subject, steps=steps)


def _require_text(brief: Brief) -> None:
    if not _written(brief):
        raise PermanentError(Category.INVALID_INPUT, "the request has no text: send it again with one")


def _written(brief: Brief) -> str:
    """The request without the blanks around it, and without NUL, which no database would take."""
    return brief.text.replace("\x00", "").strip()


def _next_call(brief: Brief, plan: Plan) -> ToolCall | None:
    if _is_due(brief, SEARCH):
        return ToolCall(tool=SEARCH, arguments={"query": search_words(plan.subject)})
    if _is_due(brief, CREATE):
        return ToolCall(tool=CREATE, arguments=_ticket_arguments(brief, plan))
    return None


def _is_due(brief: Brief, tool: str) -> bool:
    return _offers(brief, tool) and all(done.tool != tool for done in brief.done)


def _offers(brief: Brief, tool: str) -> bool:
    return any(offered.name == tool for offered in brief.tools)


def _ticket_arguments(brief: Brief, plan: Plan) -> dict[str, str]:
    return {
        "subject": plan.subject,
        "body": _ticket_body(brief, phrases_for(plan.language)),
        "category": plan.category,
        "urgency": plan.urgency,
        "language": plan.language,
    }


def _ticket_body(brief: Brief, phrases: Phrases) -> str:
    body = shortened(_written(brief), BODY_LIMIT)
    similar = _similar_tickets(brief)
    if not similar:
        return body
    named = ", ".join(f"{ticket.id} ({ticket.subject})" if ticket.subject else ticket.id for ticket in similar)
    return f"{body}\n\n{phrases.say('similar', ids=named)}"


def _answer_text(plan: Plan, brief: Brief) -> str:
    phrases = phrases_for(plan.language)
    category, urgency = phrases.name_of(plan.category), phrases.name_of(plan.urgency)
    understood = phrases.say("understood", category=category, urgency=urgency)
    paragraphs = [phrases.joined(phrases.say("thanks"), understood)]
    if outcome := _outcome(brief, phrases):
        paragraphs.append(phrases.joined(*outcome))
    return "\n\n".join([*paragraphs, phrases.say("offline")])


def _outcome(brief: Brief, phrases: Phrases) -> list[str]:
    """What the tools have changed or found. Similar tickets go by id only: their subjects are other people's."""
    sentences = []
    if ticket := _created_ticket(brief):
        sentences.append(phrases.say("ticket", id=f"{ticket.id} ({ticket.url})" if ticket.url else ticket.id))
    if similar := _similar_tickets(brief):
        sentences.append(phrases.say("similar", ids=", ".join(found.id for found in similar)))
    return sentences


def _created_ticket(brief: Brief) -> Ticket | None:
    results = (done.result for done in brief.done if done.tool == CREATE)
    return next((ticket for result in results if (ticket := _ticket(result))), None)


def _similar_tickets(brief: Brief) -> list[Ticket]:
    found = [done.result.get("tickets") for done in brief.done if done.tool == SEARCH]
    rows = [row for tickets in found if isinstance(tickets, list) for row in tickets]
    return [ticket for row in rows if (ticket := _ticket(row))][:SIMILAR_LIMIT]


def _ticket(row: object) -> Ticket | None:
    """A ticket out of a tool's result; None for what names no ticket, such as a refusal."""
    if not isinstance(row, dict) or not row.get("id"):
        return None
    identifier, subject, url = (shortened(str(row.get(key) or ""), 500) for key in ("id", "subject", "url"))
    return Ticket(identifier, subject, url)


def _usage(brief: Brief, reply: BaseModel) -> Usage:
    """What a model would have been sent and have returned. The time that remains is not part of a prompt."""
    sent = brief.model_dump_json(exclude={"remaining_seconds"})
    return Usage(tokens_in=_tokens(sent), tokens_out=_tokens(reply.model_dump_json()))


def _tokens(text: str) -> int:
    return math.ceil(len(text) / _CHARACTERS_PER_TOKEN)
