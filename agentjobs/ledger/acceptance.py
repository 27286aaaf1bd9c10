"""Acceptance whose outcome is known.

When the connection ends before the reply, nobody has heard whether the commit held: that is found out, never
guessed. It is found out under the same id and the same idempotency key, so whatever became of the first try, there
is one job: it is read; if it is not there, it is accepted anew, and where the first try is still under way in the
database, the second waits for it at the key or at the id.
"""

import asyncio
from typing import Final

from agentjobs.domain.quotas import NO_LIMITS, Limits
from agentjobs.ledger.database import is_cut_off, is_unavailable
from agentjobs.ledger.jobs import Acceptance, Jobs, Submission

PAUSES_SECONDS: Final = (0.0, 0.1, 0.4, 1.0)
"""Before each look. A restart of PostgreSQL takes about a second; the caller's patience is short."""


async def accept_for_certain(
    jobs: Jobs, submission: Submission, *, installation: Limits = NO_LIMITS
) -> Acceptance:
    """Accept the job durably, as `Jobs.accept` does and with what that raises.

    Raises the error that cut the connection off when nothing is found out in some two seconds: the job may be
    there.
    """
    try:
        return await jobs.accept(submission, installation=installation)
    except Exception as error:
        if not is_cut_off(error):
            raise
        cut_off = error
    for pause in PAUSES_SECONDS:
        await asyncio.sleep(pause)
        try:
            found = await _found_out(jobs, submission, installation)
        except Exception as error:
            if not is_unavailable(error):
                raise
            continue
        if found is None:
            break
        return found
    raise cut_off


async def _found_out(jobs: Jobs, submission: Submission, installation: Limits) -> Acceptance | None:
    """The job; None when it is refused now, which says nothing of the first try."""
    found = await jobs.accepted(submission)
    if found is not None:
        return found
    try:
        return await jobs.accept(submission, installation=installation)
    except Exception as error:
        if is_unavailable(error):
            raise
        # Its id is taken, or its place in a quota: perhaps by the first try, which has ended meanwhile.
        return await jobs.accepted(submission)
