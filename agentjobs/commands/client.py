"""The HTTP API as typed methods. What goes wrong is raised as a CommandError."""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote

import httpx

from agentjobs.commands.answers import (
    Attempt,
    AuditEntry,
    DeadLetter,
    Grant,
    Job,
    Key,
    Month,
    Quota,
    Waiting,
)
from agentjobs.commands.approval_answers import Approval
from agentjobs.commands.asking import Query, in_path
from agentjobs.commands.erase_calls import EraseCalls
from agentjobs.commands.errors import ApiUnreachable
from agentjobs.commands.event_lines import Told, Unreadable, told_by
from agentjobs.commands.patience import NO_PATIENCE, Patience, patiently
from agentjobs.commands.problems import error_of
from agentjobs.commands.queue_answers import Queues
from agentjobs.commands.redrive_answers import BulkRedrive, RedriveTried
from agentjobs.commands.report_answers import Report
from agentjobs.commands.request import JobRequest
from agentjobs.commands.webhook_calls import WebhookCalls

STREAM_TIMEOUT: Final = httpx.Timeout(45, connect=5)
"""The API says something every 15 s."""


class Client(WebhookCalls, EraseCalls):
    """Every route that a command needs."""

    def submit(self, request: JobRequest, key: str, patience: Patience) -> Job:
        """Accept a job. Repeating it under the same key never makes a second one."""

        def ask() -> Job:
            headers = {"Idempotency-Key": key}
            return self._read(Job, self._ask("POST", "/v1/jobs", json=request.body(), headers=headers))

        return patiently(ask, patience, self._outside, self._tell)

    def job(self, job_id: str, patience: Patience = NO_PATIENCE) -> Job:
        """Where a job stands."""
        path = f"/v1/jobs/{in_path(job_id)}"
        return patiently(lambda: self._read(Job, self._ask("GET", path)), patience, self._outside, self._tell)

    def events(self, job_id: str, after: str | None) -> Iterator[Told]:
        """The job's event stream, from after this id, until the server ends it.

        Raises ApiUnreachable when it breaks, and ApiRefused where there is none.
        """
        headers = {"Accept": "text/event-stream"} | ({} if after is None else {"Last-Event-ID": after})
        path = f"/v1/jobs/{in_path(job_id)}/events"
        try:
            with self._http.stream("GET", path, headers=headers, timeout=STREAM_TIMEOUT) as response:
                if not response.is_success:
                    response.read()
                    raise error_of(response, self._url, self._outside.now())
                yield from told_by(response.iter_bytes())
        except (httpx.TransportError, httpx.StreamError, httpx.DecodingError, Unreadable) as error:
            raise ApiUnreachable(f"the event stream of {self._url} broke off ({type(error).__name__})") from None

    def jobs(self, limit: int | None, query: Query) -> tuple[list[Job], str | None]:
        """The newest jobs, at most `limit`, and the cursor of what follows."""
        return self._pages(Job, "/v1/jobs", limit, query)

    def attempts(self, job_id: str) -> list[Attempt]:
        """Every attempt of a job."""
        return self._list(Attempt, f"/v1/jobs/{in_path(job_id)}/attempts", {})

    def waiting(self, limit: int) -> Waiting:
        """Jobs that wait for their next attempt, at most `limit` (1 to PAGE_LIMIT) of them, and all counted."""
        return self._read(Waiting, self._ask("GET", "/v1/waiting", params={"limit": limit}))

    def queues(self) -> Queues:
        """What is pending, and where."""
        return self._read(Queues, self._ask("GET", "/v1/queues"))

    def cancel(self, job_id: str) -> Job:
        """Ask a job to stop."""
        return self._read(Job, self._ask("POST", f"/v1/jobs/{in_path(job_id)}/cancel"))

    def dead_letters(self, limit: int | None, query: Query) -> tuple[list[DeadLetter], str | None]:
        """The newest dead letters, at most `limit`, and the cursor of what follows."""
        return self._pages(DeadLetter, "/v1/dead-letters", limit, query)

    def dead_letter(self, letter_id: str) -> DeadLetter:
        """One dead letter with its input; the API notes who has read it."""
        return self._read(DeadLetter, self._ask("GET", f"/v1/dead-letters/{in_path(letter_id)}"))

    def report(self, window_hours: int) -> Report:
        """All dead letters, counted; what came and went, within the window."""
        query = {"window_hours": window_hours}
        return self._read(Report, self._ask("GET", "/v1/dead-letters/report", params=query))

    def redrive(
        self,
        letter_id: str,
        note: str,
        policy: str,
        *,
        again: bool = False,
        changes: Mapping[str, object] | None = None,
    ) -> DeadLetter:
        """Let the job go on from where it died; `changes`: another input, a larger budget."""
        path = f"/v1/dead-letters/{in_path(letter_id)}/redrive"
        body = {"note": note, "policy": policy} | ({"again": True} if again else {}) | dict(changes or {})
        return self._read(DeadLetter, self._ask("POST", path, json=body))

    def audit(self, limit: int | None, query: Query) -> tuple[list[AuditEntry], str | None]:
        """Who did what, the latest first, at most `limit`, and the cursor of what follows."""
        return self._pages(AuditEntry, "/v1/audit", limit, query)

    def discard(self, letter_id: str, note: str) -> DeadLetter:
        """Give the job up; what it did is undone where that is possible."""
        path = f"/v1/dead-letters/{in_path(letter_id)}/discard"
        return self._read(DeadLetter, self._ask("POST", path, json={"note": note}))

    def approvals(self, limit: int | None) -> tuple[list[Approval], str | None]:
        """The calls that wait for a reviewer, at most `limit`, and the cursor of what follows."""
        return self._pages(Approval, "/v1/approvals", limit, {})

    def approvals_of_job(self, job_id: str) -> list[Approval]:
        """What was and is asked for a job, oldest first."""
        return self._list(Approval, f"/v1/jobs/{in_path(job_id)}/approvals", {})

    def decide(self, job_id: str, step: str, body: Mapping[str, object]) -> Approval:
        """Approve or reject the call of this step that waits."""
        path = f"/v1/jobs/{in_path(job_id)}/approvals/{quote(step, safe='')}"
        return self._read(Approval, self._ask("POST", path, json=body))

    def try_redrive(self, body: Mapping[str, object]) -> RedriveTried:
        """What a bulk redrive would do."""
        return self._read(RedriveTried, self._ask("POST", "/v1/redrives", json={**body, "dry_run": True}))

    def start_redrive(self, body: Mapping[str, object], key: str) -> BulkRedrive:
        """Redrive many dead letters. Repeating it under the same key never makes a second one."""
        headers = {"Idempotency-Key": key}
        return self._read(BulkRedrive, self._ask("POST", "/v1/redrives", json=body, headers=headers))

    def bulk_redrives(self, limit: int | None, query: Query) -> tuple[list[BulkRedrive], str | None]:
        """The newest bulk redrives, at most `limit`, and the cursor of what follows."""
        return self._pages(BulkRedrive, "/v1/redrives", limit, query)

    def bulk_redrive(self, redrive_id: str) -> BulkRedrive:
        """Where a bulk redrive stands."""
        return self._read(BulkRedrive, self._ask("GET", f"/v1/redrives/{in_path(redrive_id)}"))

    def tell_redrive(self, redrive_id: str, word: str, body: Mapping[str, object] | None = None) -> BulkRedrive:
        """Pause, resume, cancel or approve it."""
        path = f"/v1/redrives/{in_path(redrive_id)}/{word}"
        return self._read(BulkRedrive, self._ask("POST", path, json=body))

    def budget(self) -> Month:
        """What the tenant may spend this month, and has."""
        return self._read(Month, self._ask("GET", "/v1/budget"))

    def set_budget(self, *, tokens: int | None, usd: str | None) -> Month:
        """What the tenant may spend in a month; None is no limit."""
        return self._read(Month, self._ask("PUT", "/v1/budget", json={"tokens": tokens, "usd": usd}))

    def quota(self, tenant: str | None) -> Quota:
        """What a tenant (by default the key's own) and the key's user may have at once, and have."""
        return self._read(Quota, self._ask("GET", "/v1/quota", params={"tenant": tenant}))

    def set_quota(self, tenant: str | None, limits: Mapping[str, object]) -> Quota:
        """All four limits of a tenant: None is the installation's, 0 is no limit."""
        return self._read(Quota, self._ask("PUT", "/v1/quota", params={"tenant": tenant}, json=limits))

    def create_key(self, body: Mapping[str, object]) -> Key:
        """Make a key; the answer is the only place that shows it."""
        return self._read(Key, self._ask("POST", "/v1/keys", json=body))

    def keys(self) -> list[Key]:
        """The keys of the tenant."""
        return self._list(Key, "/v1/keys", {})

    def revoke_key(self, key_id: str) -> None:
        """Make a key useless."""
        self._ask("DELETE", f"/v1/keys/{in_path(key_id)}")

    def add_grant(self, user: str, action: str) -> Grant:
        """Let a user's jobs do something."""
        return self._read(Grant, self._ask("POST", "/v1/grants", json={"user": user, "action": action}))

    def grants(self, user: str | None) -> list[Grant]:
        """What users' jobs may do."""
        return self._list(Grant, "/v1/grants", {"user": user})

    def revoke_grant(self, user: str, action: str) -> None:
        """Let a user's jobs no longer do something."""
        self._ask("DELETE", "/v1/grants", params={"user": user, "action": action})
