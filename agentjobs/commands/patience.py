"""How long a command keeps asking when the API cannot answer now."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

from agentjobs.commands.errors import ApiRefused, ApiUnreachable, NotOurApi, OverQuota
from agentjobs.commands.outside import Outside
from agentjobs.domain.waits import LONGEST_WAIT_SECONDS, wait_before_retry

Answer = TypeVar("Answer")
CONFLICT: Final = 409


@dataclass(frozen=True)
class Patience:
    """Tries while nobody answers, and seconds spent waiting for the quota."""

    tries: int
    quota_seconds: float = 0


NO_PATIENCE: Final = Patience(tries=1)
"""Reading, and what has no key: the user sees at once what is wrong, and repeats it."""

SUBMITTING: Final = Patience(tries=5, quota_seconds=60)
"""About eight seconds of no answer: an API that is restarted is back by then."""

SUBMITTING_MANY: Final = Patience(tries=5, quota_seconds=600)
"""A file is longer than the quota: waiting for the jobs before is its normal course."""

FOLLOWING: Final = Patience(tries=8, quota_seconds=600)
"""About a minute: somebody watches for minutes or hours, and the job goes on meanwhile."""


def patiently(
    ask: Callable[[], Answer], patience: Patience, outside: Outside, tell: Callable[[str], None]
) -> Answer:
    """The answer, or the last error when patience ends."""
    failed, waited = 0, 0.0
    while True:
        try:
            return ask()
        except NotOurApi:
            raise
        except OverQuota as refused:
            wait = wait_before_retry(1, asked_seconds=refused.asked_seconds, chance=outside.chance())
            waited += wait
            if waited > patience.quota_seconds:
                raise
            tell(f"{refused}; trying again in {wait:.1f} s")
        except (ApiUnreachable, ApiRefused) as error:
            failed += 1
            wait = _wait_after(error, failed, patience, outside)
            tell(f"{error}; trying again in {wait:.1f} s ({failed + 1} of {patience.tries})")
        outside.pause(wait)


def asked_seconds(value: str | None, now: datetime) -> float | None:
    """What a Retry-After header asks for: seconds or an HTTP date; None when it says nothing usable."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value[:12])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())


def _wait_after(error: ApiUnreachable | ApiRefused, failed: int, patience: Patience, outside: Outside) -> float:
    if failed >= patience.tries or not _may_pass(error):
        raise error
    if error.asked_seconds is not None and error.asked_seconds > LONGEST_WAIT_SECONDS:
        raise error
    return wait_before_retry(failed, asked_seconds=error.asked_seconds, chance=outside.chance())


def _may_pass(error: ApiUnreachable | ApiRefused) -> bool:
    # 409: our own earlier try with this key is still being accepted.
    return isinstance(error, ApiUnreachable) or error.status == CONFLICT
