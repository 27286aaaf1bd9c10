"""The JSON Schemas that are sent to a model for its replies: narrower than what is accepted.

A small model under a grammar writes on until the schema stops it; so lists and texts are bounded tightly here,
while the reply is checked against the real form.
"""

from __future__ import annotations

import json
from typing import Any, Final

from agentjobs.providers.model import Brief, Plan
from agentjobs.providers.prompts import NOTHING_MORE

_LONGEST_TEXT: Final = 1_000
"""Characters of one text in a schema that is enforced: a ticket's body of more tells nobody more."""


def plan_schema(brief: Brief) -> dict[str, Any]:
    """A plan whose steps are names of the tools at hand."""
    schema = Plan.model_json_schema()
    schema.pop("description", None)
    schema["properties"]["steps"] = {
        "type": "array",
        "items": {"type": "string", "enum": [tool.name for tool in brief.tools] or [NOTHING_MORE]},
        "maxItems": max(1, len(brief.tools)),
    }
    return schema


def step_schema(brief: Brief) -> dict[str, Any]:
    """A decision: the name of a tool with its arguments, or that nothing more is needed.

    Below one property, for OpenAI takes no `anyOf` at the root.
    """
    definitions: dict[str, Any] = {}
    choices = [_choice(NOTHING_MORE, {"type": "object", "properties": {}, "additionalProperties": False})]
    for tool in reversed(brief.tools):
        # What one tool calls X, another may call X too: each one's definitions get its name before theirs.
        renamed = json.dumps(tool.parameters).replace('"#/$defs/', f'"#/$defs/{tool.name}.')
        parameters = json.loads(renamed)
        own = parameters.pop("$defs", {})
        definitions |= {f"{tool.name}.{name}": _bounded(definition) for name, definition in own.items()}
        choices.insert(0, _choice(tool.name, _bounded(parameters)))
    schema = _closed({"decision": {"anyOf": choices}})
    return schema | {"$defs": definitions} if definitions else schema


def _choice(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return _closed({"tool": {"type": "string", "const": tool}, "arguments": arguments})


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _bounded(schema: Any) -> Any:
    """The same schema, in which no text may be longer than _LONGEST_TEXT.

    Without patterns: llama.cpp takes no limit of a text whose pattern it cannot turn into grammar. The reply is
    checked against the tool's own form all the same.
    """
    if isinstance(schema, list):
        return [_bounded(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bounded = {name: _bounded(part) for name, part in schema.items()}
    if schema.get("type") == "string" and not {"enum", "const"} & schema.keys():
        bounded["maxLength"] = min(schema.get("maxLength", _LONGEST_TEXT), _LONGEST_TEXT)
        bounded.pop("pattern", None)
    return bounded
