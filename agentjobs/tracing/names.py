"""The names of spans and attributes: what is not here gets through no wall (wall.py).

Those of GenAI are OpenTelemetry's semantic conventions, which are still in development: they are named here only.
"""

from enum import StrEnum
from typing import Final

SCOPE: Final = "agentjobs"


class Span(StrEnum):
    """How the name of a span of ours begins; one word may follow (an agent, an activity, a tool, a model)."""

    OUTBOX = "outbox"
    """A word to Temporal, from the moment at which it was written to that at which Temporal has it."""

    RUN = "run"
    """From a start or a redrive to an end or a death."""

    ATTEMPT = "attempt"
    CHAT = "chat"
    TOOL = "execute_tool"
    UNDO = "undo_tool"
    WEBHOOK = "webhook"


METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"})
"""A server's span is named after the method and the route."""

JOB: Final = "agentjobs.job.id"
TENANT: Final = "agentjobs.tenant"
AGENT: Final = "agentjobs.agent"
GENERATION: Final = "agentjobs.generation"
STEP: Final = "agentjobs.step"
ATTEMPT: Final = "agentjobs.attempt"
STATE: Final = "agentjobs.job.state"
TOPIC: Final = "agentjobs.outbox.topic"
DELIVERY: Final = "agentjobs.webhook.delivery.id"
WEBHOOK: Final = "agentjobs.webhook.id"
EVENT: Final = "agentjobs.webhook.event"
REQUEST: Final = "agentjobs.request.id"
LINK: Final = "agentjobs.link"
WORKFLOW_ID: Final = "temporalWorkflowID"
RUN_ID: Final = "temporalRunID"
"""As the Temporal SDK's own interceptor calls them."""

ERROR_TYPE: Final = "error.type"
HTTP_METHOD: Final = "http.request.method"
HTTP_ROUTE: Final = "http.route"
HTTP_STATUS: Final = "http.response.status_code"

GEN_AI_OPERATION: Final = "gen_ai.operation.name"
GEN_AI_PROVIDER: Final = "gen_ai.provider.name"
GEN_AI_MODEL_ASKED: Final = "gen_ai.request.model"
GEN_AI_MODEL_ANSWERING: Final = "gen_ai.response.model"
GEN_AI_TOKENS_IN: Final = "gen_ai.usage.input_tokens"
GEN_AI_TOKENS_OUT: Final = "gen_ai.usage.output_tokens"
GEN_AI_AGENT: Final = "gen_ai.agent.name"
GEN_AI_TOOL: Final = "gen_ai.tool.name"

ATTRIBUTES: Final = frozenset(
    {
        *(JOB, TENANT, AGENT, GENERATION, STEP, ATTEMPT, STATE, TOPIC, DELIVERY, WEBHOOK, EVENT, REQUEST, LINK),
        *(WORKFLOW_ID, RUN_ID, ERROR_TYPE, HTTP_METHOD, HTTP_ROUTE, HTTP_STATUS),
        *(GEN_AI_OPERATION, GEN_AI_PROVIDER, GEN_AI_MODEL_ASKED, GEN_AI_MODEL_ANSWERING),
        *(GEN_AI_TOKENS_IN, GEN_AI_TOKENS_OUT, GEN_AI_AGENT, GEN_AI_TOOL),
    }
)
"""All that a span may tell."""


_PROVIDERS: Final = {"google": "gcp.gemini", "bedrock": "aws.bedrock", "mistral": "mistral_ai", "grok": "x_ai"}


def provider_of(prefix: str) -> str:
    """What the conventions call the provider of models named `prefix:...`."""
    family = prefix.partition("-")[0]
    return _PROVIDERS.get(family, family)


class Link(StrEnum):
    """Why a span points at another one."""

    DIED = "died_run"
    ORDERED = "ordered_by"
