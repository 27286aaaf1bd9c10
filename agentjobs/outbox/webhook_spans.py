"""One try to deliver a webhook, as a span: in the trace of the job that it tells of, under the run it tells of."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.trace import Span, SpanContext, SpanKind

from agentjobs.domain.states import JobState
from agentjobs.domain.webhooks import Answer
from agentjobs.ledger.webhook_deliveries import ClaimedDelivery
from agentjobs.outbox.words import request_of
from agentjobs.tracing import names, spans
from agentjobs.tracing.runs import run_of


@contextmanager
def webhook_told(claimed: ClaimedDelivery) -> Iterator[Span]:
    """Around the try."""
    span = spans.begun(
        f"{names.Span.WEBHOOK} {claimed.type}",
        SpanKind.CLIENT,
        {
            **({} if claimed.job_id is None else {names.JOB: claimed.job_id}),
            names.TENANT: claimed.tenant,
            names.WEBHOOK: claimed.webhook_id,
            names.DELIVERY: claimed.id,
            names.EVENT: claimed.type.value,
            names.ATTEMPT: claimed.attempts,
        },
        parent=_cause(claimed),
        trace_id=claimed.trace_id,
    )
    with spans.current(span):
        yield span


def heard(span: Span, answer: Answer | None) -> None:
    """What the receiver said; None when nothing came."""
    if answer is not None:
        span.set_attribute(names.HTTP_STATUS, answer.status)
    if answer is None or not answer.is_success:
        spans.failed(span, "unreachable" if answer is None else str(answer.status))


def _cause(claimed: ClaimedDelivery) -> SpanContext | None:
    if claimed.trace_id is None or claimed.job_id is None:
        return None
    if claimed.started_at is None:  # it has ended before it ran
        return request_of(claimed.trace_id, claimed.trace_parent, sampled=claimed.trace_sampled)
    died = claimed.data.get("state") == JobState.DEAD  # and was counted before it was told
    generation = claimed.data["generation"] - (1 if died else 0)
    return run_of(claimed.trace_id, claimed.job_id, generation, sampled=claimed.trace_sampled is not False)
