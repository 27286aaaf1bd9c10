"""How the relay declares a job dead whose own workflow no longer can."""

import structlog

from agentjobs.domain.failures import Category, failure
from agentjobs.domain.states import JobState
from agentjobs.ledger.jobs import Standing
from agentjobs.ledger.ledger import Ledger
from agentjobs.outbox.lost_spans import run_lost
from agentjobs.tracing.spans import is_on

log = structlog.get_logger()


async def bury(ledger: Ledger, job: Standing, category: Category, message: str) -> bool:
    """Dead, with its letter and the word to the desk; once, however many find it. False when it was over already.

    `job` is the job as it was read before Temporal was asked: what has moved since is left alone.
    """
    state = await ledger.outcomes.bury(
        job.job_id,
        generation=job.generation,
        failure=failure(category, message, job.step),
        worker="reconciler",
    )
    if state is not JobState.DEAD:
        return False
    trace = await ledger.jobs.trace(job.job_id) if is_on() else None
    if trace is not None:
        run_lost(trace, job.generation, category)
    log.warning("job_found_dead", job=job.job_id, reason=category.value)
    return True
