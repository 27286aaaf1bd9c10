"""Spans of what an attempt calls: a model, a tool. Named by OpenTelemetry's conventions for GenAI."""

from opentelemetry.trace import Span, SpanKind

from agentjobs.domain.budget import Usage
from agentjobs.tracing import names, spans
from agentjobs.tracing.runs import current


def model_call(model: str, agent: str) -> Span:
    """A call of a model that begins now. model: as in AGENTJOBS_MODEL, PROVIDER:NAME or one word."""
    provider, _, name = model.partition(":")
    return spans.begun(
        f"{names.Span.CHAT} {name or provider}",
        SpanKind.CLIENT,
        {
            **_of_run(),
            names.GEN_AI_OPERATION: names.Span.CHAT.value,
            names.GEN_AI_PROVIDER: names.provider_of(provider),
            names.GEN_AI_MODEL_ASKED: name or provider,
            names.GEN_AI_AGENT: agent,
        },
    )


def paid(span: Span, usage: Usage, model: str | None = None) -> None:
    """The call has cost this; `model` is the one that has answered."""
    span.set_attributes({names.GEN_AI_TOKENS_IN: usage.tokens_in, names.GEN_AI_TOKENS_OUT: usage.tokens_out})
    if model is not None:
        span.set_attribute(names.GEN_AI_MODEL_ANSWERING, model)


def tool_call(tool: str, operation: names.Span = names.Span.TOOL) -> Span:
    """A call of a tool, or of what undoes it, that begins now."""
    about = {**_of_run(), names.GEN_AI_OPERATION: operation.value, names.GEN_AI_TOOL: tool}
    return spans.begun(f"{operation} {tool}", SpanKind.INTERNAL, about)


def _of_run() -> dict[str, str | int]:
    run = current.get()
    return {} if run is None else run.attributes
