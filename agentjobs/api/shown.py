"""From the ledger's records to the wire."""

from agentjobs.api.schemas import (
    BudgetShown,
    DeadLetterShown,
    FailureShown,
    GrantShown,
    JobShown,
    KeyShown,
    UsageShown,
)
from agentjobs.domain import keys
from agentjobs.domain.states import JobState
from agentjobs.ledger.records import DeadLetterRecord, GrantRecord, JobRecord, KeyRecord

_TELLS_ITS_FAILURE = frozenset({JobState.RETRY_WAIT, JobState.DEAD})


class Links:
    """Where things of a job are."""

    def __init__(self, temporal_ui_url: str | None) -> None:
        self._ui = temporal_ui_url

    def job(self, job_id: str) -> dict[str, str | None]:
        """Of a job."""
        here = f"/v1/jobs/{job_id}"
        return {
            "self": here,
            "attempts": f"{here}/attempts",
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

    def _workflow(self, job_id: str) -> str | None:
        if self._ui is None:
            return None
        return f"{self._ui.rstrip('/')}/namespaces/default/workflows/{keys.workflow_id(job_id)}"


def job_shown(job: JobRecord, links: Links) -> JobShown:
    """A job's status."""
    failure = job.failure if job.state in _TELLS_ITS_FAILURE else None
    return JobShown(
        **job.model_dump(include=set(JobShown.model_fields) - {"failure"}),
        failure=None if failure is None else FailureShown(**failure.model_dump()),
        usage=UsageShown(**job.usage.model_dump()),
        budget=BudgetShown(tokens=job.budget_tokens, usd=job.budget_usd),
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
