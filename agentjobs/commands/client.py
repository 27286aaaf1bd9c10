"""The HTTP API as typed methods. What goes wrong is raised as a CommandError."""

import re
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

import httpx
from pydantic import ValidationError

from agentjobs.commands.answers import (
    Answer,
    Attempt,
    AuditEntry,
    DeadLetter,
    Grant,
    Job,
    Key,
    Month,
    Page,
    Waiting,
)
from agentjobs.commands.errors import AnswerLost, ApiUnreachable, WrongUsage
from agentjobs.commands.event_lines import Told, Unreadable, told_by
from agentjobs.commands.outside import Outside
from agentjobs.commands.patience import NO_PATIENCE, Patience, patiently
from agentjobs.commands.place import Place
from agentjobs.commands.problems import error_of, not_our_api
from agentjobs.commands.redrive_answers import BulkRedrive, RedriveTried
from agentjobs.commands.report_answers import Report
from agentjobs.commands.request import JobRequest
from agentjobs.commands.words import one_line

PAGE_LIMIT: Final = 200
"""The most that the API gives in one page."""

SAFE_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]+")

TIMEOUT: Final = httpx.Timeout(30, connect=5)
"""Acceptance takes milliseconds; an API that needs 30 s is asked again with the same key."""

STREAM_TIMEOUT: Final = httpx.Timeout(45, connect=5)
"""The API says something every 15 s."""

Wanted = TypeVar("Wanted", bound=Answer)
Query = Mapping[str, str | int | None]


class Client:
    """One API and one key. Safe to share between threads."""

    def __init__(self, place: Place, outside: Outside, tell: Callable[[str], None]) -> None:
        self._url = place.url
        self._outside = outside
        self._tell = tell
        self._http = httpx.Client(
            base_url=place.url,
            headers={"Authorization": f"Bearer {place.key}", "Accept": "application/json"},
            timeout=TIMEOUT,
            transport=outside.transport,
            trust_env=not place.is_local,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def submit(self, request: JobRequest, key: str, patience: Patience) -> Job:
        """Accept a job. Repeating it under the same key never makes a second one."""

        def ask() -> Job:
            headers = {"Idempotency-Key": key}
            return self._read(Job, self._ask("POST", "/v1/jobs", json=request.body(), headers=headers))

        return patiently(ask, patience, self._outside, self._tell)

    def job(self, job_id: str, patience: Patience = NO_PATIENCE) -> Job:
        """Where a job stands."""
        path = f"/v1/jobs/{_in_path(job_id)}"
        return patiently(lambda: self._read(Job, self._ask("GET", path)), patience, self._outside, self._tell)

    def events(self, job_id: str, after: str | None) -> Iterator[Told]:
        """The job's event stream, from after this id, until the server ends it.

        Raises ApiUnreachable when it breaks, and ApiRefused where there is none.
        """
        headers = {"Accept": "text/event-stream"} | ({} if after is None else {"Last-Event-ID": after})
        path = f"/v1/jobs/{_in_path(job_id)}/events"
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
        return self._list(Attempt, f"/v1/jobs/{_in_path(job_id)}/attempts", {})

    def waiting(self, limit: int) -> Waiting:
        """Jobs that wait for their next attempt, at most `limit` (1 to PAGE_LIMIT) of them, and all counted."""
        return self._read(Waiting, self._ask("GET", "/v1/waiting", params={"limit": limit}))

    def cancel(self, job_id: str) -> Job:
        """Ask a job to stop."""
        return self._read(Job, self._ask("POST", f"/v1/jobs/{_in_path(job_id)}/cancel"))

    def dead_letters(self, limit: int | None, query: Query) -> tuple[list[DeadLetter], str | None]:
        """The newest dead letters, at most `limit`, and the cursor of what follows."""
        return self._pages(DeadLetter, "/v1/dead-letters", limit, query)

    def dead_letter(self, letter_id: str) -> DeadLetter:
        """One dead letter with its input; the API notes who has read it."""
        return self._read(DeadLetter, self._ask("GET", f"/v1/dead-letters/{_in_path(letter_id)}"))

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
        path = f"/v1/dead-letters/{_in_path(letter_id)}/redrive"
        body = {"note": note, "policy": policy} | ({"again": True} if again else {}) | dict(changes or {})
        return self._read(DeadLetter, self._ask("POST", path, json=body))

    def audit(self, limit: int | None, query: Query) -> tuple[list[AuditEntry], str | None]:
        """Who did what, the latest first, at most `limit`, and the cursor of what follows."""
        return self._pages(AuditEntry, "/v1/audit", limit, query)

    def discard(self, letter_id: str, note: str) -> DeadLetter:
        """Give the job up; what it did is undone where that is possible."""
        path = f"/v1/dead-letters/{_in_path(letter_id)}/discard"
        return self._read(DeadLetter, self._ask("POST", path, json={"note": note}))

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
        return self._read(BulkRedrive, self._ask("GET", f"/v1/redrives/{_in_path(redrive_id)}"))

    def tell_redrive(self, redrive_id: str, word: str, body: Mapping[str, object] | None = None) -> BulkRedrive:
        """Pause, resume, cancel or approve it."""
        path = f"/v1/redrives/{_in_path(redrive_id)}/{word}"
        return self._read(BulkRedrive, self._ask("POST", path, json=body))

    def budget(self) -> Month:
        """What the tenant may spend this month, and has."""
        return self._read(Month, self._ask("GET", "/v1/budget"))

    def set_budget(self, *, tokens: int | None, usd: str | None) -> Month:
        """What the tenant may spend in a month; None is no limit."""
        return self._read(Month, self._ask("PUT", "/v1/budget", json={"tokens": tokens, "usd": usd}))

    def create_key(self, body: Mapping[str, object]) -> Key:
        """Make a key; the answer is the only place that shows it."""
        return self._read(Key, self._ask("POST", "/v1/keys", json=body))

    def keys(self) -> list[Key]:
        """The keys of the tenant."""
        return self._list(Key, "/v1/keys", {})

    def revoke_key(self, key_id: str) -> None:
        """Make a key useless."""
        self._ask("DELETE", f"/v1/keys/{_in_path(key_id)}")

    def add_grant(self, user: str, action: str) -> Grant:
        """Let a user's jobs do something."""
        return self._read(Grant, self._ask("POST", "/v1/grants", json={"user": user, "action": action}))

    def grants(self, user: str | None) -> list[Grant]:
        """What users' jobs may do."""
        return self._list(Grant, "/v1/grants", {"user": user})

    def revoke_grant(self, user: str, action: str) -> None:
        """Let a user's jobs no longer do something."""
        self._ask("DELETE", "/v1/grants", params={"user": user, "action": action})

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Query | None = None,
        json: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        given = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            response = self._http.request(method, path, params=given, json=json, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise self._not_there(error) from None
        except httpx.TransportError as error:
            raise self._broke_off(error) from None
        except (httpx.DecodingError, httpx.TooManyRedirects, httpx.InvalidURL) as error:
            raise ApiUnreachable(f"what {self._url} answers cannot be read ({type(error).__name__})") from None
        if not response.is_success:
            raise error_of(response, self._url, self._outside.now())
        return response

    def _read(self, wanted: type[Wanted], response: httpx.Response) -> Wanted:
        try:
            return wanted.model_validate_json(response.content)
        except ValidationError:
            raise not_our_api(response, self._url) from None

    def _pages(
        self, wanted: type[Wanted], path: str, limit: int | None, query: Query
    ) -> tuple[list[Wanted], str | None]:
        items: list[Wanted] = []
        cursor: str | None = None
        while limit is None or len(items) < limit:
            size = PAGE_LIMIT if limit is None else min(PAGE_LIMIT, limit - len(items))
            found, cursor = self._page(wanted, path, {**query, "limit": size, "cursor": cursor})
            items += found
            if cursor is None:
                break
        return items, cursor

    def _page(self, wanted: type[Wanted], path: str, query: Query) -> tuple[list[Wanted], str | None]:
        response = self._ask("GET", path, params=query)
        page = self._read(Page, response)
        try:
            return [wanted.model_validate(item) for item in page.items], page.next_cursor
        except ValidationError:
            raise not_our_api(response, self._url) from None

    def _list(self, wanted: type[Wanted], path: str, query: Query) -> list[Wanted]:
        return self._page(wanted, path, query)[0]

    def _not_there(self, error: httpx.TransportError) -> ApiUnreachable:
        return ApiUnreachable(
            f"the API at {self._url} does not answer ({error or type(error).__name__}): start it with "
            "`python starter.py dev`, or set AGENTJOBS_API to where it runs"
        )

    def _broke_off(self, error: httpx.TransportError) -> AnswerLost:
        return AnswerLost(
            f"the API at {self._url} broke off before its answer ({type(error).__name__}): what was asked may "
            "have been done, so look before you repeat it"
        )


def _in_path(identifier: str) -> str:
    """Whether the id exists is for the API to say; that it stays one segment of the path is for us."""
    if not SAFE_SEGMENT.fullmatch(identifier):
        raise WrongUsage(f"no id looks like {one_line(identifier)!r}: letters, digits, - and _ only")
    return identifier
