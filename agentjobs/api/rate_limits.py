"""The headers of quotas: RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers), and the 429."""

from collections.abc import Sequence
from typing import Final

from agentjobs.api.declared import optional_headers
from agentjobs.api.problems import Problem
from agentjobs.domain.quotas import WINDOW_SECONDS, Quota, QuotaExceeded, QuotaUse

NAMES: Final = {Quota.IN_FLIGHT: "user", Quota.PER_MINUTE: "minute", Quota.QUEUE_LENGTH: "tenant"}

DECLARED: Final = optional_headers(
    {
        "RateLimit-Policy": 'The quotas with a limit, as `"name";q=LIMIT`, one of a window with `;w=SECONDS`. '
        "`user`: your jobs that are neither over nor dead; `minute`: your submissions; `tenant`: the tenant's "
        "jobs that wait for their start.",
        "RateLimit": 'What remains of each, as `"name";r=REMAINING`; in a 429 with `;t=SECONDS` until another try '
        "is worth while, the same moment as Retry-After.",
    }
)

_WHAT_TO_DO: Final = {
    Quota.IN_FLIGHT: "You have {in_use} jobs that are not over, of at most {limit}: wait until one ends.",
    Quota.PER_MINUTE: "You have submitted {in_use} jobs within a minute, of at most {limit}: wait a little.",
    Quota.QUEUE_LENGTH: "Your tenant has {in_use} jobs that wait for their start, of at most {limit}: wait until "
    "some have started.",
}


def headers(uses: Sequence[QuotaUse]) -> dict[str, str]:
    """What of these quotas remains; nothing where there is no limit."""
    limited = [(use, use.limit) for use in uses if use.limit is not None]
    if not limited:
        return {}
    return {
        "RateLimit-Policy": ", ".join(_policy(use.quota, limit) for use, limit in limited),
        "RateLimit": ", ".join(f'"{NAMES[use.quota]}";r={max(0, limit - use.in_use)}' for use, limit in limited),
    }


def too_many(refused: QuotaExceeded) -> Problem:
    """The refusal, with the moment at which another try is worth while."""
    use, seconds = refused.use, refused.wait_seconds
    detail = _WHAT_TO_DO[use.quota].format(in_use=use.in_use, limit=use.limit)
    again = " Then send the same request again, after as many seconds as Retry-After says."
    told = headers([use])
    told |= {"RateLimit": f"{told['RateLimit']};t={seconds}", "Retry-After": str(seconds)}
    return Problem(429, "quota_exceeded", detail + again, headers=told)


def _policy(quota: Quota, limit: int) -> str:
    window = f";w={WINDOW_SECONDS}" if quota is Quota.PER_MINUTE else ""
    return f'"{NAMES[quota]}";q={limit}{window}'
