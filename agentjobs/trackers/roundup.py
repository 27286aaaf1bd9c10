"""Tickets in a Roundup tracker (2.6), by its REST interface.

Roundup keeps one issue for each value of the class's key property, and ours is the step key. So a creation may be
sent again: the second is refused with 409, and the issue that exists is adopted. docs/trackers.md has the lines of
its schema. The body is a property of the issue and no message: a message would be a second creation without a key,
and a crash between the two would leave an orphan at every attempt.

Its post-once tokens (`@poe`) do not protect: a token is spent before the creation, and a second use is refused
without telling what the first one did.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Final
from urllib.parse import urlsplit

import httpx
from pydantic import Field, SecretStr, ValidationError

from agentjobs.domain.classification import Facts, classify
from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import Category, PermanentError, RetryableError
from agentjobs.domain.job import Job
from agentjobs.ledger.database import Connection
from agentjobs.trackers.http import Answer, Destination, Told, checked_secret, checked_url
from agentjobs.trackers.tracker import FoundTicket, NewTicket, TicketReceipt
from agentjobs.trackers.words import distinctive_words, one_line, sendable

_ADVICE: Final = {
    400: "the settings need its own web address, and its schema the lines of docs/trackers.md",
    401: "check the user and the password of the settings",
    403: "the user of the settings needs the role User, with REST access",
    404: "check the address of the settings, and that the REST interface is switched on",
}
_SEARCHED_WORDS: Final = 4  # each costs two requests: Roundup has no "this word or that one, here or there"


class _Item(Told):
    id: Annotated[str, Field(pattern=r"^[0-9]{1,18}$")]
    title: str | None = None
    tenant: str | None = None
    external_key: str | None = None


class _Collection(Told):
    collection: list[_Item]


class _Attributes(Told):
    tenant: str | None = None


class _Element(Told):
    attributes: _Attributes
    etag: Annotated[str, Field(alias="@etag", max_length=200, pattern=r'^"[A-Za-z0-9-]+"$')]


class _Created(Told):
    data: _Item


class _Found(Told):
    data: _Collection


class _Problem(Told):
    msg: str


class _Refusal(Told):
    error: _Problem


class _One(Told):
    data: _Element


class RoundupTracker:
    """Issues of one Roundup tracker; `base_url` is its web address, such as https://tracker.example.org/support/."""

    def __init__(
        self,
        base_url: str,
        user: str,
        password: SecretStr,
        *,
        closed_status: str = "resolved",
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._web = checked_url(base_url)
        self._closed_status = closed_status
        self._http = Destination(
            "Roundup",
            f"{self._web}/rest/data",
            # Its server has a process for each connection, forty at most: idle ones of a few workers would shut
            # everybody out.
            headers={**_of_its_own_pages(self._web), "Connection": "close"},
            auth=httpx.BasicAuth(user, checked_secret(password)),
            client=client,
        )

    @property
    def effect_class(self) -> EffectClass:
        """The key property lets one issue of a step key in."""
        return EffectClass.IDEMPOTENT

    @property
    def landing_horizon_seconds(self) -> float:
        """A late request is refused as a repetition."""
        return 0.0

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
        """Create the issue, or adopt the one that the key has."""
        answer = await self._http.change("POST", "issue", document=_properties(ticket, key, job))
        if answer.status == 409:
            return await self._existing(key, job)
        return self._receipt(_accepted(answer).read_as(_Created).data)

    async def find(self, key: str, *, job: Job) -> TicketReceipt | None:
        """By the key property, exactly (`:=`; a plain `=` would match a part)."""
        answer = await self._http.ask("issue", params={"external_key:": key, "@fields": "external_key,tenant"})
        # Compared again: a server that ignored the filter would otherwise give us the first issue it has.
        items = [item for item in _accepted(answer).read_as(_Found).data.collection if item.external_key == key]
        if not items:
            return None
        if items[0].tenant != job.principal.tenant:
            raise PermanentError(Category.KEY_CONFLICT, "Roundup has an issue of another tenant with this key")
        return self._receipt(items[0])

    async def close(
        self,
        receipt: TicketReceipt,
        *,
        job: Job,
        connection: Connection | None,  # noqa: ARG002 - nothing of it is in our database
    ) -> None:
        """Set the status that means closed; an issue that was deleted meanwhile needs no closing."""
        number = _number(receipt)
        asked = await self._http.ask("issue", number, params={"@fields": "tenant"})
        if asked.status == 410:
            return
        issue = _accepted(asked).read_as(_One).data
        if issue.attributes.tenant != job.principal.tenant:
            raise PermanentError(Category.NOT_FOUND, "the tenant has no such issue in Roundup")
        answer = await self._http.change(
            "PATCH",
            "issue",
            number,
            document={"status": self._closed_status},
            headers={"If-Match": issue.etag},
        )
        if answer.status == 412:
            raise answer.try_later(Category.UNAVAILABLE, "somebody changed the issue at the same time")
        _accepted(answer)

    async def search(self, query: str, *, job: Job, limit: int) -> list[FoundTicket]:
        """The tenant's issues with a word of it in title or body: those with most words first, then the newest."""
        items: dict[str, _Item] = {}
        hits: Counter[str] = Counter()
        for word in distinctive_words(query, at_most=_SEARCHED_WORDS):
            for place in ("title", "body"):
                found = await self._having(word, place, job.principal.tenant, limit)
                items |= {item.id: item for item in found}
                hits.update(item.id for item in found)
        best = sorted(items, key=lambda number: (hits[number], int(number)), reverse=True)[:limit]
        return [FoundTicket(id=number, subject=items[number].title or "") for number in best]

    async def _having(self, word: str, place: str, tenant: str, limit: int) -> list[_Item]:
        answer = await self._http.ask(
            "issue",
            params={
                place: word,
                "tenant:": tenant,
                "@fields": "title,tenant",
                "@sort": "-id",
                "@page_size": limit,
                "@page_index": 1,
            },
        )
        return [i for i in _accepted(answer).read_as(_Found).data.collection if i.tenant == tenant]

    async def _existing(self, key: str, job: Job) -> TicketReceipt:
        found = await self.find(key, job=job)
        if found is None:  # in doubt, although it was a refusal: some attempt has created what we cannot see
            raise RetryableError(
                Category.UNAVAILABLE, "Roundup refused the key as known, but shows no issue of it"
            )
        return found

    def _receipt(self, item: _Item) -> TicketReceipt:
        return TicketReceipt(id=item.id, url=f"{self._web}/issue{item.id}")


def _properties(ticket: NewTicket, key: str, job: Job) -> dict[str, str]:
    return {
        "external_key": key,
        "tenant": job.principal.tenant,
        "title": one_line(ticket.subject),
        "body": sendable(ticket.body),
        "category": one_line(ticket.category),
        "urgency": ticket.urgency,
        "language": one_line(ticket.language),
    }


def _of_its_own_pages(web: str) -> dict[str, str]:
    """What Roundup wants to see against forged requests: as if one of its own pages had asked."""
    parts = urlsplit(web)
    origin = f"{parts.scheme}://{parts.netloc}"
    return {"X-Requested-With": "rest", "Origin": origin, "Referer": f"{web}/"}


def _accepted(answer: Answer) -> Answer:
    if answer.succeeded:
        return answer
    if answer.status == 400 and not _is_considered(answer):
        raise RetryableError(classify(Facts(http_status=500)), "Roundup met an error of its own: see its log")
    raise answer.refused(_ADVICE.get(answer.status, ""))


def _is_considered(answer: Answer) -> bool:
    """Whether a 400 was meant. Roundup answers 400 to each exception of its own, too (a locked database, a table
    that two first requests make at once): from its REST part with these words, from its server as a page of HTML.
    """
    try:
        told = _Refusal.model_validate(answer.document).error.msg
    except ValidationError:
        return False
    return "An error occurred. Please check the server log" not in told


def _number(receipt: TicketReceipt) -> str:
    if not (receipt.id.isascii() and receipt.id.isdigit()):
        raise PermanentError(Category.INVALID_INPUT, "this is no id of an issue in Roundup")
    return receipt.id
