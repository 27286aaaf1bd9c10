"""Templates to pages. Everything is escaped; what a template does not know is an error and not an empty place."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agentjobs.console import words
from agentjobs.console.files import addresses
from agentjobs.console.notices import notice_of


class Pages:
    """The templates, ready to be filled."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.now = clock
        self._environment = Environment(
            loader=PackageLoader("agentjobs.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(words.FILTERS)
        self._environment.globals["files"] = addresses()

    def rendered(self, template: str, **given: Any) -> str:
        """The template's text."""
        return self._environment.get_template(template).render(now=self.now(), **given)


def page(request: Request, template: str, **given: Any) -> Response:
    """A page for who asks. One that is as it was is not sent again: pages refresh themselves every few seconds."""
    pages: Pages = request.app.state.pages
    body = pages.rendered(
        template,
        session=getattr(request.state, "session", None),
        place=request.url.path,
        notice=notice_of(request.query_params.get("notice")),
        **given,
    ).encode("utf-8", "replace")
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return HTMLResponse(body, headers={"ETag": tag})


def now_of(request: Request) -> datetime:
    """The present moment, as all pages of this process see it."""
    pages: Pages = request.app.state.pages
    return pages.now()
