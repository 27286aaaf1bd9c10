"""From the ledger's records to the wire."""

from urllib.parse import quote

from agentjobs.api.schemas import (
    AmountShown,
    BudgetShown,
    DeadLetterShown,
    FailureShown,
    GrantShown,
    JobShown,
    KeyShown,
    LimitsShown,
    MonthShown,
    UsageShown,
)
from agentjobs.domain import bulk, keys
from agentjobs.domain.states import JobState
from agentjobs.ledger.budgets import MonthRecord
from agentjobs.ledger.records import DeadLetterRecord, GrantRecord, JobRecord, KeyRecord

WAITING_QUERY = f'JobState = "{JobState.RETRY_WAIT}"'
"""The view of the Temporal UI that shows what waits."""

DEFAULT_NAMESPACE = "default"
"""Temporal's own default."""

_TELLS_ITS_FAILURE = frozenset({JobState.RETRY_WAIT, JobState.DEAD})


class Links:
    """Where things of a job are."""

    def __init__(self, temporal_ui_url: str | None, namespace: str = DEFAULT_NAMESPACE) -> None:
        self._ui = temporal_ui_url
        self._namespace = namespace or DEFAULT_NAMESPACE

    def job(self, job_id: str) -> dict[str, str | None]:
        """Of a job."""
        here = f"/v1/jobs/{job_id}"
        return {
            "self": here,
            "attempts": f"{here}/attempts",
            "events": f"{here}/events",
            "cancel": f"{here}/cancel",
            "temporal_ui": self._workflow(job_id),
        }

    def dead_letter(self, job_id: str) -> dict[str, str | None]:
        """Of its dead letter."""
        here = f"/v1/dead-letters/{job_id}"
        return {
            "self": here,
            "job": f"/v1/jobs/{job_id}",
            "redrive": f"{here}/redrive",
            "discard": f"{here}/discard",
            "temporal_ui": self._workflow(job_id),
        }

    def redrive(self, redrive_id: str) -> dict[str, str | None]:
        """Of a bulk redrive."""
        here = f"/v1/redrives/{redrive_id}"
        words = {word: f"{here}/{word}" for word in ("approve", "pause", "resume", "cancel")}
        return {"self": here, **words, "temporal_ui": self._in_ui(f"/{bulk.workflow_id(redrive_id)}")}

    def waiting(self) -> dict[str, str | None]:
        """Of all jobs that wait."""
        return {"self": "/v1/waiting", "temporal_ui": self._in_ui(f"?query={quote(WAITING_QUERY, safe='')}")}

    def _workflow(self, job_id: str) -> str | None:
        return self._in_ui(f"/{keys.workflow_id(job_id)}")

    def _in_ui(self, rest: str) -> str | None:
        if self._ui is None:
            return None
        return f"{self._ui.rstrip('/')}/namespaces/{quote(self._namespace, safe='')}/workflows{rest}"


def job_shown(job: JobRecord, links: Links) -> JobShown:
    """A job's status."""
    failure = job.failure if job.state in _TELLS_ITS_FAILURE else None
    return JobShown(
        **job.model_dump(include=set(JobShown.model_fields) - {"failure"}),
        failure=None if failure is None else FailureShown(**failure.model_dump()),
        usage=UsageShown(
            **job.usage.model_dump(), tokens_reserved=job.tokens_reserved, usd_reserved=job.usd_reserved
        ),
        budget=BudgetShown(tokens=job.budget_tokens, usd=job.budget_usd, steps=job.budget_steps),
        links=links.job(job.id),
    )


def dead_letter_shown(letter: DeadLetterRecord, links: Links) -> DeadLetterShown:
    """A dead letter without its input."""
    return DeadLetterShown(
        **letter.model_dump(include=set(DeadLetterShown.model_fields)), links=links.dead_letter(letter.id)
    )


def key_shown(key: KeyRecord) -> KeyShown:
    """A key without its secret."""
    return KeyShown.model_validate(key.model_dump())


def grant_shown(grant: GrantRecord) -> GrantShown:
    """A grant."""
    return GrantShown(**grant.model_dump())


def month_shown(month: MonthRecord) -> MonthShown:
    """A tenant's month."""
    return MonthShown(
        month=f"{month.month:%Y-%m}",
        limits=LimitsShown(tokens=month.monthly_tokens, usd=month.monthly_usd),
        spent=AmountShown(tokens=month.tokens, usd=month.usd),
        held_back=AmountShown(tokens=month.tokens_reserved, usd=month.usd_reserved),
    )
