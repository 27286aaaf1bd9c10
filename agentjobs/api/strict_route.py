"""The route of everything that needs a key. In this order: the caller, its role, the query, the body, the answer.

A body is read and parsed only for a caller who may send one, so that strangers cost one look-up at most.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any, get_args

from fastapi import Request, Response
from fastapi.routing import APIRoute

from agentjobs.api.authentication import Having
from agentjobs.api.problems import unacceptable
from agentjobs.api.strict_json import StrictRequest

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# Python, and so pydantic, would also read "1_0", " 5", "+5", "5.0" and digits of other scripts.

ANSWER_SECONDS = 5.0
"""A free connection and a few statements take milliseconds. Past this the caller hears 503 and asks again,
instead of waiting in a line that grows."""


class StrictRoute(APIRoute):
    """A route that takes nothing it does not understand."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, behind the checks."""
        handle = super().get_route_handler()
        guards = [part.call for part in self.dependant.dependencies if isinstance(part.call, Having)]
        # By name: whether it is a whole number.
        parameters = {
            field.alias: _is_integer(field.field_info.annotation) for field in self.dependant.query_params
        }
        has_body = self.body_field is not None

        async def strictly(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            async with asyncio.timeout(ANSWER_SECONDS):
                for guard in guards:
                    await guard.admit(strict)
            _check_query(strict, parameters)
            if has_body:
                await strict.json()
            async with asyncio.timeout(ANSWER_SECONDS):
                return await handle(strict)

        return strictly


def _is_integer(annotation: object) -> bool:
    return annotation is int or int in get_args(annotation)


def _check_query(request: Request, known: dict[str, bool]) -> None:
    # A misspelt filter that is passed over would answer for everything.
    given = [name for name, _ in request.query_params.multi_items()]
    if not known.keys() >= set(given):
        which = f"known are: {', '.join(sorted(known))}" if known else "there are none here"
        raise unacceptable("query:", f"Leave out parameters that are not known; {which}.")
    for name, value in request.query_params.items():
        if given.count(name) > 1:
            raise unacceptable(f"query:{name}", "Give this parameter once.")
        if known[name] and not _INTEGER.fullmatch(value):
            raise unacceptable(f"query:{name}", "Give a whole number in digits, such as 20.")
