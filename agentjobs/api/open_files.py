"""Each stream is an open file of the process: how many fit below its limit, with room left for all else."""

import resource

import structlog

from agentjobs.settings import StartError

log = structlog.get_logger()

KEPT_FREE = 256
"""For requests, the pool and the log: streams must not take the last file from somebody who submits a job."""


def streams_that_fit(wanted: int) -> int:
    """Raise the soft limit as far as is needed and allowed. Returns how many streams may be open.

    At most `wanted`. Raises StartError where not even requests would fit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _up_to(wanted + KEPT_FREE, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    else:
        allowed = _up_to(wanted + KEPT_FREE, soft)
    fitting = allowed - KEPT_FREE
    if fitting < 1:
        raise StartError(f"{allowed} open files are too few (`ulimit -n`): allow {wanted + KEPT_FREE}")
    if fitting < wanted:
        log.warning("open_files_limit_low", open_files=allowed, streams=fitting, wanted=wanted + KEPT_FREE)
    return fitting


def _up_to(needed: int, limit: int) -> int:
    return needed if limit == resource.RLIM_INFINITY else min(needed, limit)
