"""One model call: which model is asked, whether it may be asked now, and what its answer says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from activities.executor import Reply
from activities.failures import as_known
from activities.listening import AttemptListener
from activities.measures import call_paid
from agentjobs.agents.spec import AgentSpec
from agentjobs.domain import admission
from agentjobs.domain.admission import Limits, choose
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.failures import Category, JobError, RetryableError
from agentjobs.ledger.effects import Begun, Intent
from agentjobs.ledger.ledger import Ledger
from agentjobs.providers.model import Brief, Listener, ModelProvider
from agentjobs.providers.models import Models
from agentjobs.tracing import calls, spans

Question = Callable[[ModelProvider, Brief, Listener], Awaitable[Reply]]


_USELESS = frozenset({Category.BAD_OUTPUT, Category.CONTENT_REFUSED})
"""Of these the answer was there, and is not fetched again (fail_attempt)."""


class Told(TypedDict):
    """What a failed call says of its model."""

    retry_after_seconds: float | None
    tokens: int | None


@dataclass(frozen=True)
class Access:
    """Through which all model calls of a worker go. `limits` hold for each model, over all workers."""

    models: Models
    ledger: Ledger
    limits: Limits

    def is_short(self, spec: AgentSpec) -> bool:
        """Whether whoever answers this agent does so at once: rules do, and models do not."""
        return all(self.models.get(name).short for name in self.models.of(spec.models))

    def reservation(self, spec: AgentSpec) -> Reservation:
        """What is held back for one call of this agent."""
        tokens = spec.call_reservation.tokens
        usd = max(spec.call_reservation.usd, self.models.most_usd(self.models.of(spec.models), tokens))
        return Reservation(tokens=tokens, usd=usd)


class Asking:
    """One call of one agent."""

    def __init__(self, access: Access, spec: AgentSpec, intent: Intent, question: Question) -> None:
        self._access = access
        self._candidates = access.models.of(spec.models)
        self._agent = spec.name
        self._intent = intent
        self._question = question
        self._model = self._candidates[0]
        self._parked: dict[str, datetime] = {}
        self._listener: AttemptListener | None = None

    async def call(self, begun: Begun, brief: Brief) -> Reply:
        """Ask the model whose turn it is. Raises JobError."""
        if begun.attempt_id is None:
            raise RuntimeError("a model is asked without an attempt")
        self._model = await self._chosen(begun)
        provider = self._access.models.get(self._model)
        listener = AttemptListener(self._access.ledger.effects, self._intent, begun.attempt_id, self._model)
        self._listener = listener
        brief = brief.model_copy(update=self._known_of(begun))
        try:
            if not provider.metered:
                reply = await self._questioned(provider, brief, listener)
            else:
                reply = await self._metered(provider, begun.attempt_id, brief, listener)
        except JobError as error:
            self._measure(error.paid, begun)
            raise
        self._measure(reply.usage, begun)
        await listener.flush()
        return reply

    def _measure(self, usage: Usage | None, begun: Begun) -> None:
        if usage is not None:
            call_paid(usage, agent=self._agent, model=self._model, budgeted=begun.budgeted)

    def elsewhere(self, begun: Begun, error: JobError) -> bool:
        """Whether the attempt after this failure asks another model that is in no trouble."""
        if error.category not in _USELESS and self._is_written_in_background(begun):
            return False  # the next attempt fetches that answer
        return admission.elsewhere(self._model, error, self._candidates, _failed(begun), self._parked)

    def _is_written_in_background(self, begun: Begun) -> bool:
        heard = self._listener is not None and self._listener.heard_of_response
        return heard or (begun.response is not None and begun.response.model == self._model)

    async def _chosen(self, begun: Begun) -> str:
        if begun.response is not None and begun.response.model in self._candidates:
            return begun.response.model  # it writes, or has written, the answer already
        if len(self._candidates) == 1:
            return self._candidates[0]
        self._parked = await self._access.ledger.admission.parked(self._candidates)
        return choose(self._candidates, _failed(begun), self._parked)

    def _known_of(self, begun: Begun) -> dict[str, str | None]:
        response = begun.response
        last = begun.failures[-1] if begun.failures else None
        malformed = last is not None and last.category is Category.BAD_OUTPUT
        return {
            "correction": last.message if last is not None and malformed else None,
            "response_id": response.id if response is not None and response.model == self._model else None,
        }

    async def _metered(self, provider: ModelProvider, attempt_id: int, brief: Brief, listener: Listener) -> Reply:
        # What is only fetched was admitted before.
        tokens = 0 if brief.response_id else self._intent.reserve.tokens
        await self._access.ledger.admission.admit(
            self._model, attempt_id, tokens=tokens, limits=self._access.limits
        )
        try:
            reply = await self._questioned(provider, brief, listener)
        except JobError as error:
            await self._report(attempt_id, error.category, **_told_by(error))
            raise
        await self._report(attempt_id, None, retry_after_seconds=None, tokens=reply.usage.tokens)
        return reply

    async def _questioned(self, provider: ModelProvider, brief: Brief, listener: Listener) -> Reply:
        with spans.current(calls.model_call(self._model, self._agent)) as span:
            try:
                reply = await self._question(provider, brief, listener)
            except JobError as error:
                if error.paid is not None:
                    calls.paid(span, error.paid)
                raise
            calls.paid(span, reply.usage, reply.model)
            return reply

    async def _report(
        self, attempt_id: int, category: Category | None, *, retry_after_seconds: float | None, tokens: int | None
    ) -> None:
        try:
            await self._access.ledger.admission.report(
                self._model, attempt_id, category, retry_after_seconds=retry_after_seconds, tokens=tokens
            )
        except Exception as error:
            # The reply, or the failure, is what counts. A call that is not reported leaves the meters less exact.
            as_known(error)


def _told_by(error: JobError) -> Told:
    asked = error.retry_after_seconds if isinstance(error, RetryableError) else None
    tokens = 0 if error.nothing_happened else None
    return Told(retry_after_seconds=asked, tokens=tokens if error.paid is None else error.paid.tokens)


def _failed(begun: Begun) -> tuple[tuple[str, Category], ...]:
    return tuple((failure.model, failure.category) for failure in begun.failures if failure.model is not None)
