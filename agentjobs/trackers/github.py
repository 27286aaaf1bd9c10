"""Tickets as issues of a GitHub repository, by the REST API.

GitHub knows no idempotency key: a creation that is sent twice makes two issues. So the step key stands in the
body, and an attempt that finds an earlier one in doubt looks for it before it sends (`find`). Only the ledger
keeps two attempts from sending at the same time.

Two looks together see every issue that is there. The list of issues shows a new one at once (as a rule; the
horizon covers the exceptions), but is only read back for an hour; the search index has everything, but seconds to
minutes late.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import quote

import httpx
from pydantic import AwareDatetime, Field, RootModel, SecretStr

from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import Category, PermanentError, RetryableError
from agentjobs.domain.job import Job
from agentjobs.ledger.database import Connection
from agentjobs.trackers.http import Answer, Destination, Told, checked_secret
from agentjobs.trackers.tracker import FoundTicket, NewTicket, TicketReceipt
from agentjobs.trackers.words import distinctive_words, one_line, sendable

PUBLIC_API: Final = "https://api.github.com"
API_VERSION: Final = "2022-11-28"
LABEL: Final = "agentjobs"
"""For people. Nothing goes by it: GitHub drops labels silently when the token may not set them."""

LANDING_HORIZON_SECONDS: Final = 120.0
"""GitHub gives a request up after 10 seconds; the rest is for proxies on the way and for a list that lags."""

_LISTED: Final = timedelta(hours=1)
"""Far longer than the search index needs, and short enough to be listed: an account creates 500 issues an hour."""
_PAGE_SIZE: Final = 50
_PAGES: Final = 20

_UNTOLD_WAIT_SECONDS: Final = 60.0
"""GitHub: without Retry-After or an exhausted limit's reset, wait for at least one minute."""

_SEARCHED_WORDS: Final = 4  # a search takes five operators and 256 characters
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_ADVICE: Final = {
    301: "the repository has moved: correct the settings",
    307: "the repository has moved: correct the settings",
    401: "the token of the settings is not valid (any more)",
    403: "the token of the settings needs the permission Issues: read and write",
    404: "check the repository of the settings, and that the token may see it",
    410: "the repository has its issues switched off",
    422: "GitHub does not take these values",
}


class _Issue(Told):
    number: Annotated[int, Field(ge=1)]
    title: str = ""
    body: str | None = None
    html_url: str = ""
    created_at: AwareDatetime

    def begins_with(self, head: str) -> bool:
        """Whether it is ours and of this key. Only at the very beginning: what follows is a stranger's text."""
        return (self.body or "").replace("\r\n", "\n").startswith(head)

    def receipt(self) -> TicketReceipt:
        """What the ledger keeps of it."""
        shown = self.html_url if self.html_url.startswith(("https://", "http://")) else None
        return TicketReceipt(id=str(self.number), url=shown)


class _Page(RootModel[list[_Issue]]):
    pass


class _SearchResult(Told):
    incomplete_results: bool
    items: list[_Issue]


class GithubTracker:
    """Issues of one repository, `owner/name`; `base_url` is another one for GitHub Enterprise Server."""

    def __init__(
        self,
        repository: str,
        token: SecretStr,
        *,
        base_url: str = PUBLIC_API,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        if not _REPOSITORY.fullmatch(repository):
            raise ValueError("the repository for tickets is no OWNER/NAME")
        self._repository = repository
        self._issues = ("repos", *repository.split("/"), "issues")
        self._http = Destination(
            "GitHub",
            base_url,
            headers={
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": API_VERSION,
                "Authorization": f"Bearer {checked_secret(token)}",
            },
            client=client,
        )

    @property
    def effect_class(self) -> EffectClass:
        """There is no key to send again with, but an issue can be looked up."""
        return EffectClass.RECONCILABLE

    @property
    def landing_horizon_seconds(self) -> float:
        """Two minutes."""
        return LANDING_HORIZON_SECONDS

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def create(
        self,
        ticket: NewTicket,
        *,
        key: str,
        job: Job,
        connection: Connection | None,  # noqa: ARG002 - nothing of it is in our database
    ) -> TicketReceipt:
        """Create the issue. Sent twice, it makes two: look with `find` first when in doubt."""
        answer = await self._http.change("POST", *self._issues, document=_properties(ticket, key, job))
        return _accepted(answer).read_as(_Issue).receipt()

    async def find(self, key: str, *, job: Job) -> TicketReceipt | None:
        """Among the issues of the last hour, then in the search index. Of two, the older is adopted."""
        head = _head(key, job.principal.tenant)
        found = await self._listed(head) or await self._indexed(head, key)
        return min(found, key=lambda issue: issue.number).receipt() if found else None

    async def close(
        self,
        receipt: TicketReceipt,
        *,
        job: Job,  # noqa: ARG002 - the number says it all
        connection: Connection | None,  # noqa: ARG002 - nothing of it is in our database
    ) -> None:
        """Close the issue as not planned; one that was deleted meanwhile needs no closing."""
        if not (receipt.id.isascii() and receipt.id.isdigit()):
            raise PermanentError(Category.INVALID_INPUT, "this is no number of an issue")
        wanted = {"state": "closed", "state_reason": "not_planned"}
        answer = await self._http.change("PATCH", *self._issues, receipt.id, document=wanted)
        if answer.status != 410:
            _accepted(answer)

    async def search(self, query: str, *, job: Job, limit: int) -> list[FoundTicket]:
        """The tenant's issues with any of the words, best match first, as far as they are indexed."""
        words = distinctive_words(query, at_most=_SEARCHED_WORDS)
        if not words:
            return []
        any_word = " OR ".join(f'"{word}"' for word in words)
        tenant = _tenant_mark(job.principal.tenant)
        result = await self._search(f'({any_word}) "{_inside(tenant)}"')
        ours = [issue for issue in result.items if _lines(issue)[1:2] == [tenant]]
        return [FoundTicket(id=str(issue.number), subject=issue.title) for issue in ours[:limit]]

    async def _listed(self, head: str) -> list[_Issue]:
        for page in range(1, _PAGES + 1):
            answer = await self._http.ask(
                *self._issues,
                params={
                    "state": "all",
                    "sort": "created",
                    "direction": "desc",
                    "per_page": _PAGE_SIZE,
                    "page": page,
                },
            )
            issues = _accepted(answer).read_as(_Page).root
            found = [issue for issue in issues if issue.begins_with(head)]
            if found or len(issues) < _PAGE_SIZE or issues[-1].created_at < answer.sent_at - _LISTED:
                return found
        raise RetryableError(
            Category.UNAVAILABLE, "the repository has more new issues than can be looked through for ours"
        )

    async def _indexed(self, head: str, key: str) -> list[_Issue]:
        result = await self._search(f'"{_inside(_key_mark(key))}" in:body')
        found = [issue for issue in result.items if issue.begins_with(head)]
        if not found and result.incomplete_results:
            raise RetryableError(Category.UNAVAILABLE, "GitHub's search ran out of time before it was through")
        return found

    async def _search(self, terms: str) -> _SearchResult:
        answer = await self._http.ask(
            "search",
            "issues",
            params={
                "q": f"{terms} repo:{self._repository} is:issue",
                "per_page": _PAGE_SIZE,
                "advanced_search": "true",
            },
        )
        return _accepted(answer).read_as(_SearchResult)


def _properties(ticket: NewTicket, key: str, job: Job) -> dict[str, object]:
    told = (
        f"Category: {one_line(ticket.category)} · Urgency: {ticket.urgency} · "
        f"Language: {one_line(ticket.language)}"
    )
    return {
        "title": one_line(ticket.subject),
        "body": f"{_head(key, job.principal.tenant)}\n{sendable(ticket.body)}\n\n---\n{told}",
        "labels": [LABEL],
    }


def _head(key: str, tenant: str) -> str:
    """The first two lines of a body: invisible on the page, and nobody's text comes before them."""
    return f"{_key_mark(key)}\n{_tenant_mark(tenant)}\n"


def _key_mark(key: str) -> str:
    # Quoted, so that no key can end the comment or the phrase of a search.
    return f"<!-- agentjobs:{quote(key, safe='/')} -->"


def _tenant_mark(tenant: str) -> str:
    return f"<!-- agentjobs-tenant:{quote(tenant, safe='')} -->"


def _inside(mark: str) -> str:
    return mark.removeprefix("<!-- ").removesuffix(" -->")


def _lines(issue: _Issue) -> list[str]:
    return (issue.body or "").splitlines()


def _accepted(answer: Answer) -> Answer:
    if answer.succeeded:
        return answer
    waiting = _asked_to_wait(answer)
    if waiting is not None:
        raise answer.try_later(Category.RATE_LIMITED, "GitHub's rate limit is used up", waiting)
    raise answer.refused(_ADVICE.get(answer.status, ""))


def _asked_to_wait(answer: Answer) -> float | None:
    """How long a rate limit asks to wait. GitHub answers 403 as well as 429 to primary and secondary limits."""
    if answer.status not in (403, 429):
        return None
    if answer.retry_after_seconds is not None:
        return answer.retry_after_seconds
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and re.fullmatch(r"\d{1,12}", reset):
        return max(0.0, int(reset) - answer.sent_at.timestamp())
    told = answer.document.get("message") if isinstance(answer.document, dict) else None
    limited = answer.status == 429 or (isinstance(told, str) and "rate limit" in told.lower())
    return _UNTOLD_WAIT_SECONDS if limited else None
