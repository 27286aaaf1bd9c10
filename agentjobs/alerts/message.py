"""An alert in words for machines: the fields of the log, the body of a webhook. Ids, codes, counts and links."""

import json
from collections.abc import Callable
from typing import Any, Final, assert_never

from structlog.typing import FilteringBoundLogger

from agentjobs.domain.alerts import Alert, AlertKind

LETTERS = "/v1/dead-letters/{}"
APPROVALS = "/v1/jobs/{}/approvals"


_OF_ONE_JOB: Final = frozenset({AlertKind.JOB_DIED, AlertKind.APPROVAL_REQUESTED})


def facts(alert: Alert) -> dict[str, Any]:
    """What every way tells."""
    about = _of_requests(alert) if alert.kind.topic == "approval" else _of_deaths(alert)
    return {
        "tenant": alert.tenant,
        "agent": alert.agent,
        "count": alert.count,
        **about,
        "jobs": list(alert.shown_ids),
        **({"level": alert.level} if alert.level else {}),
    }


def links(alert: Alert, base: str | None) -> list[str]:
    """Where the letters or the requests are read: paths of the API, behind its address if that is known."""
    path = APPROVALS if alert.kind.topic == "approval" else LETTERS
    return [(base or "").rstrip("/") + path.format(job_id) for job_id in alert.shown_ids]


def webhook_body(alert: Alert, base: str | None) -> bytes:
    """Standard Webhooks 1.0.0, "Payload structure": type, timestamp, and data that stays thin."""
    document = {
        "type": alert.kind.value,
        "timestamp": alert.created_at.isoformat(),
        "data": {"alert": alert.id, **facts(alert), "links": links(alert, base)},
    }
    return json.dumps(document, separators=(",", ":")).encode()


def write_to(log: FilteringBoundLogger, alert: Alert) -> None:
    """One event a line. One about a single job names it as every other event of a job does."""
    say, event = _event(log, alert.kind)
    told = facts(alert) | ({"job": alert.shown_ids[0]} if alert.kind in _OF_ONE_JOB else {})
    say(event, alert=alert.id, **told)


def _of_deaths(alert: Alert) -> dict[str, Any]:
    return {
        "reason": alert.reason,
        "in_doubt": alert.in_doubt_count,
        "first_died_at": alert.first_at.isoformat(),
        "last_died_at": alert.last_at.isoformat(),
    }


def _of_requests(alert: Alert) -> dict[str, Any]:
    return {
        "tool": alert.reason,
        "first_requested_at": alert.first_at.isoformat(),
        "last_requested_at": alert.last_at.isoformat(),
    }


def _event(log: FilteringBoundLogger, kind: AlertKind) -> tuple[Callable[..., Any], str]:
    match kind:
        case AlertKind.JOB_DIED:
            return log.error, "job_died"
        case AlertKind.JOBS_DIED:
            return log.error, "jobs_died"
        case AlertKind.ESCALATED:
            return log.critical, "dead_letters_escalated"
        case AlertKind.DISCARDING:
            return log.warning, "dead_letters_discarding"
        case AlertKind.APPROVAL_REQUESTED:
            return log.warning, "approval_requested"
        case AlertKind.APPROVALS_REQUESTED:
            return log.warning, "approvals_requested"
        case _:
            assert_never(kind)
