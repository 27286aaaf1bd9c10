"""How the commands ask the HTTP API, and read its answers. What goes wrong is raised as a CommandError."""

import re
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

import httpx
from pydantic import ValidationError

from agentjobs.commands.answers import Answer, Page
from agentjobs.commands.errors import AnswerLost, ApiUnreachable, WrongUsage
from agentjobs.commands.outside import Outside
from agentjobs.commands.place import Place
from agentjobs.commands.problems import error_of, not_our_api
from agentjobs.commands.words import one_line

PAGE_LIMIT: Final = 200
"""The most that the API gives in one page."""

SAFE_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]+")

TIMEOUT: Final = httpx.Timeout(30, connect=5)
"""Acceptance takes milliseconds; an API that needs 30 s is asked again with the same key."""

Wanted = TypeVar("Wanted", bound=Answer)
Query = Mapping[str, str | int | None]


class Asking:
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


def in_path(identifier: str) -> str:
    """Whether the id exists is for the API to say; that it stays one segment of the path is for us."""
    if not SAFE_SEGMENT.fullmatch(identifier):
        raise WrongUsage(f"no id looks like {one_line(identifier)!r}: letters, digits, - and _ only")
    return identifier
