"""From a model's reply to a plan, a decision or an answer; and what to raise when it is none of them.

A MalformedReply names fields and rules only: the next attempt tells it to the model, and it is shown to the owner.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from pydantic import ValidationError
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from agentjobs.domain.budget import Usage
from agentjobs.domain.failures import Category, MalformedReply, PermanentError, RetryableError
from agentjobs.domain.values import checked
from agentjobs.providers.model import Answer, NothingMore, Plan, ToolCall
from agentjobs.providers.prompts import NOTHING_MORE

ANSWER_LIMIT_CHARACTERS: Final = 20_000
"""As `Answer` has it; known here so that an endless answer is left in the middle."""


def require_whole(response: ModelResponse, name: str, paid: Usage) -> None:
    """Raises unless the model ended its reply by itself.

    PermanentError(content_refused) when it declined, MalformedReply when it ran into its output limit,
    RetryableError(unavailable) when it failed on the way.
    """
    match response.finish_reason:
        case "content_filter":
            raise PermanentError(
                Category.CONTENT_REFUSED, f"{name} declined the request: change it, or the model", paid=paid
            )
        case "length":
            raise MalformedReply("the reply was cut off by the output limit: be shorter", paid=paid)
        case "error":
            raise RetryableError(Category.UNAVAILABLE, f"{name} failed while it wrote its reply", paid=paid)
    if response.state != "complete":
        raise RetryableError(Category.UNAVAILABLE, f"{name} left its reply unfinished", paid=paid)


def text_of(response: ModelResponse) -> str:
    """All text of a reply; what the model thought to itself is not part of it."""
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def written_in(response: ModelResponse) -> str:
    """All that the model wrote, calls of tools included: what an estimate of its tokens goes by."""
    return text_of(response) + "".join(_arguments(call) for call in _calls(response))


def plan_of(response: ModelResponse, paid: Usage) -> Plan:
    """The plan that a reply holds, as text or as the arguments of the tool. Raises MalformedReply."""
    calls = _calls(response)
    written = _arguments(calls[0]) if calls else text_of(response)
    if not written.strip():
        raise MalformedReply("the reply is empty: a JSON object is expected", paid=paid)
    try:
        plan = Plan.model_validate(_object(written, paid))
    except ValidationError as error:
        _refuse(error, paid)
    _require_storable(plan.model_dump(mode="json"), paid)
    return plan


def decision_of(response: ModelResponse, paid: Usage) -> ToolCall | NothingMore:
    """The tool that a reply calls, or in text the decision of the schema asked for. Raises MalformedReply.

    Of several calls the first counts: servers that do not know `parallel_tool_calls` send them, and the model is
    asked for the others again, when the first one's result is there.
    """
    calls = _calls(response)
    if calls:
        return _called(calls[0].tool_name, _object(_arguments(calls[0]), paid), paid)
    if not text_of(response).strip():
        raise MalformedReply(f"no tool was called: call one, or {NOTHING_MORE}", paid=paid)
    decision = _object(text_of(response), paid).get("decision")
    if not isinstance(decision, dict):
        raise MalformedReply("decision: an object with tool and arguments is expected", paid=paid)
    return _called(decision.get("tool"), decision.get("arguments"), paid)


def answer_of(text: str, paid: Usage) -> Answer:
    """The answer. Raises MalformedReply for one that is blank, too long, or cannot be kept as text."""
    if not text.strip():
        raise MalformedReply("the reply is empty: a text is expected", paid=paid)
    if len(text) > ANSWER_LIMIT_CHARACTERS:
        raise MalformedReply(f"text: longer than {ANSWER_LIMIT_CHARACTERS} characters", paid=paid)
    _require_storable(text, paid)
    return Answer(text=text)


def is_storable_text(piece: str) -> bool:
    """Whether a piece of text may be passed on: no NUL, and no half of a surrogate pair."""
    return "\x00" not in piece and not any("\ud800" <= character <= "\udfff" for character in piece)


def _called(tool: object, arguments: object, paid: Usage) -> ToolCall | NothingMore:
    if tool == NOTHING_MORE:
        return NothingMore()
    try:
        call = ToolCall.model_validate({"tool": tool, "arguments": arguments})
    except ValidationError as error:
        _refuse(error, paid)
    _require_storable(call.model_dump(), paid)  # not as JSON, in which pydantic makes null of an infinite number
    return call


def _calls(response: ModelResponse) -> list[ToolCallPart]:
    return [part for part in response.parts if isinstance(part, ToolCallPart)]


def _arguments(call: ToolCallPart) -> str:
    # As written: `args_as_json_str` wraps what is no JSON into an object, which then looks like arguments.
    return call.args if isinstance(call.args, str) else json.dumps(call.args or {})


def _object(written: str, paid: Usage) -> dict[str, Any]:
    try:
        value = json.loads(written or "{}", parse_constant=_not_json)
    except (ValueError, RecursionError):
        raise MalformedReply("the reply is no valid JSON", paid=paid) from None
    if not isinstance(value, dict):
        raise MalformedReply("the reply is JSON, but no object", paid=paid)
    return value


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity, which Python reads and JSON has not (RFC 8259, section 6)


def _require_storable(value: object, paid: Usage) -> None:
    try:
        checked(value)
    except PermanentError as error:  # its message has rules and sizes only
        raise MalformedReply(str(error), paid=paid) from None


def _refuse(error: ValidationError, paid: Usage) -> NoReturn:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    raise MalformedReply("; ".join(_told(problem) for problem in problems[:10]), paid=paid) from None


def _told(problem: Any) -> str:
    # The name of a field that was never declared is the model's own word, and may quote the request.
    undeclared = problem["type"] == "extra_forbidden"
    path = ".".join(str(part) for part in (problem["loc"][:-1] if undeclared else problem["loc"]))
    return f"{path or 'reply'}: {'an undeclared field' if undeclared else problem['type']}"
