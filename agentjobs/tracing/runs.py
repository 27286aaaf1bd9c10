"""A job's run, from a start or a redrive to an end or a death: its span, and what of it travels with Temporal's
messages.

A workflow makes no span, since it may be replayed, and a run may last for weeks. It only passes on where the run
stands. The run's span is told by whoever writes the run's end into the ledger; its id follows from the job's, so
that attempts are its children long before.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from opentelemetry.trace import Link, Span, SpanContext, SpanKind
from pydantic import AfterValidator, BaseModel, ConfigDict

from agentjobs.domain import keys
from agentjobs.tracing import contexts, names, spans


def _valid(traceparent: str) -> str:
    if contexts.read(traceparent) is None:
        raise ValueError("a traceparent that names no span")
    return traceparent


class Run(BaseModel):
    """Ids only, since it is in Temporal's histories. What a later release adds to it is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    told_by: Annotated[str, AfterValidator(_valid)]
    """The traceparent of the word that began it: a span of the outbox."""

    ordered_by: str | None = None
    """The traceparent of the request that ordered a redrive or a discard: another trace."""

    job_id: str
    tenant: str
    agent: str
    generation: int
    """How often the job had died before."""

    began_at: datetime | None = None
    """By the workflow's clock; None as long as it has not begun."""

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits."""
        return f"{self._word.trace_id:032x}"

    @property
    def place(self) -> SpanContext:
        """Of the run's own span: the parent of its attempts."""
        return run_of(self.trace_id, self.job_id, self.generation, sampled=self._word.trace_flags.sampled)

    @property
    def attributes(self) -> dict[str, str | int]:
        """What each span of it tells."""
        return {
            names.JOB: self.job_id,
            names.TENANT: self.tenant,
            names.AGENT: self.agent,
            names.GENERATION: self.generation,
        }

    def ended(self, state: str, reason: str | None = None) -> None:
        """Tell of the run: it has led to this state, or to a death of this reason."""
        span = spans.begun(
            f"{names.Span.RUN} {self.agent}",
            SpanKind.INTERNAL,
            {**self.attributes, names.STATE: state},
            parent=self._word,
            links=self._links(),
            at=self.began_at,
            span_id=f"{self.place.span_id:016x}",
        )
        if reason is not None:
            spans.failed(span, reason)
        span.end()

    @property
    def _word(self) -> SpanContext:
        word = contexts.read(self.told_by)
        if word is None:
            raise ValueError("a run was told of by no span")
        return word

    def _links(self) -> list[Link]:
        links = []
        if self.generation > 0:
            sampled = self._word.trace_flags.sampled
            died = run_of(self.trace_id, self.job_id, self.generation - 1, sampled=sampled)
            links.append(spans.link(died, names.Link.DIED))
        order = None if self.ordered_by is None else contexts.read(self.ordered_by)
        if order is not None:
            links.append(spans.link(order, names.Link.ORDERED))
        return links


current: Final[ContextVar[Run | None]] = ContextVar("agentjobs_run", default=None)
"""The run for which the activity works that is carried out here, or whose word is told here."""


def run_ended(state: str, reason: str | None = None) -> None:
    """The current run has led to this state, or to a death of this reason; nothing without one."""
    run = current.get()
    if run is not None:
        run.ended(state, reason)


def run_of(trace_id: str, job_id: str, generation: int, *, sampled: bool) -> SpanContext:
    """The span of the run that began after so many deaths."""
    return contexts.place(trace_id, contexts.derived(trace_id, "run", job_id, generation), sampled=sampled)


def start_of(trace_id: str, job_id: str, *, sampled: bool) -> SpanContext:
    """The span of the word by which the job was started."""
    return contexts.place(trace_id, contexts.derived(trace_id, "start", job_id), sampled=sampled)


@dataclass(frozen=True)
class Attempt:
    """One attempt of an activity of a run, as its worker and as the server know it."""

    run: Run
    activity: str
    step: str
    """The activity's id."""

    number: int
    workflow_run_id: str
    started_at: datetime
    """By the server's clock."""

    def begun(self, at: datetime | None = None) -> Span:
        """Its span: the same one, whoever tells of it."""
        trace_id = self.run.trace_id
        own = (self.workflow_run_id, self.step, self.started_at.isoformat())
        return spans.begun(
            f"{names.Span.ATTEMPT} {self.activity}",
            SpanKind.CONSUMER,
            {
                **self.run.attributes,
                names.STEP: self.step,
                names.ATTEMPT: self.number,
                names.WORKFLOW_ID: keys.workflow_id(self.run.job_id),
                names.RUN_ID: self.workflow_run_id,
            },
            parent=self.run.place,
            at=at,
            span_id=contexts.derived(trace_id, "attempt", *own),
        )
