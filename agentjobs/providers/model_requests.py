"""The three requests to a real model, as pydantic-ai takes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from agentjobs.providers.model import Brief
from agentjobs.providers.prompts import (
    ANSWER_TASK,
    NOTHING_MORE,
    PLAN_TASK,
    STEP_TASK,
    data,
    instructions,
    step_task_in_words,
)
from agentjobs.providers.reply_schemas import plan_schema, step_schema

_PLAN: Final = "plan"
_OPENAI_HOST: Final = "api.openai.com"

# Small models keep to the form best without chance. For servers of one's own only: some large models refuse it.
_STEADY: Final = ModelSettings(temperature=0.0)
_NOTHING_MORE: Final = ToolDefinition(
    name=NOTHING_MORE,
    description="Say that no further tool is needed.",
    parameters_json_schema={"type": "object", "properties": {}, "additionalProperties": False},
)


@dataclass(frozen=True)
class Asking:
    """One request, ready to be sent."""

    messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings

    @property
    def sent_bytes(self) -> int:
        """Bytes of UTF-8 of what the model reads: the bound for an estimate of its tokens."""
        texts = [_texts(message) for message in self.messages]
        tools = [*self.parameters.function_tools, *self.parameters.output_tools]
        schemas = [json.dumps(tool.parameters_json_schema) + (tool.description or "") for tool in tools]
        if self.parameters.output_object is not None:
            schemas.append(json.dumps(self.parameters.output_object.json_schema))
        return len("".join([*texts, *schemas]).encode("utf-8", "replace"))


def for_plan(brief: Brief, model: Model, seconds: float) -> Asking:
    """Ask for a plan in its schema.

    Through `response_format` where the model has it: OpenAI enforces the schema, and so does llama.cpp's server,
    by a grammar, which is what makes small models usable. Elsewhere as the arguments of the one tool to be called.
    """
    schema = plan_schema(brief)
    settings = _settings(brief, seconds)
    if not _has_schema(model):
        tool = ToolDefinition(
            name=_PLAN, description="Give the plan.", parameters_json_schema=schema, kind="output"
        )
        parameters = ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
        return Asking(_messages(brief, PLAN_TASK), parameters, settings)
    if ignores_tools(model):
        settings = settings | _STEADY
    return Asking(_messages(brief, PLAN_TASK), _in_schema(_PLAN, schema), settings)


def for_step(brief: Brief, model: Model, seconds: float) -> Asking:
    """Ask for exactly one call of a tool; to need none is a tool too, so that every reply has the same form."""
    settings = _settings(brief, seconds)
    if ignores_tools(model):
        messages = _messages(brief, step_task_in_words(brief))
        return Asking(messages, _in_schema("decision", step_schema(brief)), settings | _STEADY)
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
        for tool in brief.tools
    ]
    parameters = ModelRequestParameters(function_tools=[*tools, _NOTHING_MORE], allow_text_output=False)
    calling = ModelSettings(tool_choice="required", parallel_tool_calls=False)
    return Asking(_messages(brief, STEP_TASK), parameters, settings | calling)


def for_answer(brief: Brief, seconds: float) -> Asking:
    """Ask for the answer, as text."""
    return Asking(_messages(brief, ANSWER_TASK), ModelRequestParameters(), _settings(brief, seconds))


def _messages(brief: Brief, task: str) -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart(content=data(brief))], instructions=instructions(brief, task))]


def _texts(message: ModelMessage) -> str:
    if not isinstance(message, ModelRequest):
        return ""
    parts = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    return (message.instructions or "") + "".join(part for part in parts if isinstance(part, str))


def _in_schema(name: str, schema: dict[str, Any]) -> ModelRequestParameters:
    output = OutputObjectDefinition(json_schema=schema, name=name)
    return ModelRequestParameters(output_mode="native", output_object=output)


def _settings(brief: Brief, seconds: float) -> ModelSettings:
    # The clients of OpenAI and Anthropic repeat a failed request twice unless told not to; Temporal retries, and
    # sees and counts every attempt.
    return ModelSettings(max_tokens=brief.max_output_tokens, timeout=seconds, max_retries=0)


def ignores_tools(model: Model) -> bool:
    """Whether the server may drop tool definitions without a word.

    llama.cpp's does with a model whose chat template has no place for them, and `tool_choice` changes nothing; a
    schema for the reply it always enforces. So a server of somebody's own that is spoken to as OpenAI is asked for
    a decision in a schema. Known by its address: it tells nothing of itself.
    """
    is_chat = any(kind.__name__ == "OpenAIChatModel" for kind in type(model).__mro__)
    own_address = urlsplit(model.base_url or "").hostname != _OPENAI_HOST
    return is_chat and model.system == "openai" and own_address and _has_schema(model)


def _has_schema(model: Model) -> bool:
    return bool(model.profile.get("supports_json_schema_output", False))
