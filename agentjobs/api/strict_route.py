"""The route of everything that needs a key. In this order: the caller, its role, the query, the body, the answer.

A body is read and parsed only for a caller who may send one, so that strangers cost one look-up at most.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any, get_args

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from agentjobs.api.authentication import Having
from agentjobs.api.problems import unacceptable
from agentjobs.api.strict_json import StrictRequest

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# Python, and so pydantic, would also read "1_0", " 5", "+5", "5.0" and digits of other scripts.

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

ANSWER_SECONDS = 5.0
"""A free connection and a few statements take milliseconds. Past this the caller hears 503 and asks again,
instead of waiting in a line that grows."""


class StrictRoute(APIRoute):
    """A route that takes nothing it does not understand."""

    def get_route_handler(self) -> Handler:
        """FastAPI's handler, behind the checks."""
        handle, checked = super().get_route_handler(), self._checks()

        async def strictly(request: Request) -> Response:
            strict = await checked(request)
            async with asyncio.timeout(ANSWER_SECONDS):
                return await handle(strict)

        return strictly

    def _checks(self) -> Callable[[Request], Coroutine[Any, Any, StrictRequest]]:
        guards = [part.call for part in self.dependant.dependencies if isinstance(part.call, Having)]
        # By name: whether it is a whole number.
        parameters = {
            field.alias: _is_integer(field.field_info.annotation) for field in self.dependant.query_params
        }
        has_body = self.body_field is not None

        async def checked(request: Request) -> StrictRequest:
            strict = StrictRequest(request.scope, request.receive)
            async with asyncio.timeout(ANSWER_SECONDS):
                for guard in guards:
                    await guard.admit(strict)
            _check_query(strict, parameters)
            if has_body:
                await strict.json()
            return strict

        return checked


class DirectRoute(StrictRoute):
    """A strict route whose endpoint takes the body, the caller and the request, and answers with a Response.

    FastAPI documents it as any other. Only its own way to the endpoint, which solves dependencies and validates
    the answer once more, is left out: it is a quarter of what a submission costs in Python.
    """

    def get_route_handler(self) -> Handler:
        """The endpoint, behind the checks."""
        checked, endpoint, form = self._checks(), self.endpoint, self._form()

        async def directly(request: Request) -> Response:
            strict = await checked(request)
            body = _validated(form, await strict.json())
            async with asyncio.timeout(ANSWER_SECONDS):
                answer: Response = await endpoint(body, strict.state.caller, strict)
                return answer

        return directly

    def _form(self) -> type[BaseModel]:
        form = None if self.body_field is None else self.body_field.field_info.annotation
        if not (isinstance(form, type) and issubclass(form, BaseModel)):
            raise TypeError("the body of a direct route is one model")
        return form


def _validated(form: type[BaseModel], value: object) -> BaseModel:
    try:
        return form.model_validate(value)
    except ValidationError as error:
        errors = [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
        raise RequestValidationError(errors) from None


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
