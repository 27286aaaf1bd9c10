"""Problem details (RFC 9457): one form for everything that is refused. No problem repeats what was sent."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from pydantic.config import JsonDict
from starlette.exceptions import HTTPException
from starlette.routing import Match

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:agentjobs:problem:"
RETRY_SECONDS = 2
METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

_EXAMPLE: JsonDict = {
    "type": TYPE_PREFIX + "invalid_input",
    "title": "Invalid input",
    "status": 422,
    "detail": "Correct the fields under `errors`.",
    "instance": "urn:uuid:5f0c3f0e-4a4e-4f0e-9a38-5d0a5f3f2f11",
    "errors": [{"pointer": "/input/text", "detail": "The text is blank: say what is wanted."}],
}


class FieldProblem(BaseModel):
    """One field: where (a JSON pointer, RFC 6901, or `query:` and the name of a parameter) and what to do."""

    pointer: str
    detail: str


class ProblemBody(BaseModel):
    """The body of every error. `instance` holds the request's id, the same as the header X-Request-Id."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FieldProblem] | None = None


class Problem(HTTPException):
    """A refusal with a stable code. `detail` tells the caller what to do."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[FieldProblem] = (),
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.code = code
        self.errors = list(errors)


def not_found() -> Problem:
    """The same for an unknown route or id, a malformed id, and one of another tenant."""
    detail = "There is nothing here that you may see: check the path and the id; /openapi.json lists the paths."
    return Problem(404, "not_found", detail)


def erased() -> Problem:
    """There was something, and whoever could see it is told that it is gone for good."""
    return Problem(410, "erased", "This was erased on request: nothing of it is left to be shown.")


def unacceptable(pointer: str, detail: str) -> Problem:
    """One field that cannot be taken."""
    return _invalid([FieldProblem(pointer=pointer, detail=detail)])


def unavailable(request: Request) -> Problem:
    """What we depend on is away for the moment; a commit whose answer was lost may hold all the same."""
    detail = "The database does not answer. "
    if request.method == "GET":
        detail += "Ask again."
    elif request.headers.getlist("idempotency-key"):
        detail += "Send the same request with the same Idempotency-Key again: it is accepted once at most."
    else:
        detail += "What was asked may have been done all the same: look before you repeat it."
    return Problem(503, "unavailable", detail, headers={"Retry-After": str(RETRY_SECONDS)})


def bug() -> Problem:
    """Nobody foresaw this."""
    detail = "This is a fault of ours; the log says more under the id of `instance`. Look before you repeat it."
    return Problem(500, "bug", detail)


def install(app: FastAPI) -> None:
    """Give every error of the application this form."""

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return response(request, _as_problem(request, error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return response(request, _invalid([_field(item) for item in error.errors()]))


def response(request: Request, problem: Problem) -> Response:
    """The problem as the answer to this request."""
    return answer(problem, request.state.request_id)


def answer(problem: Problem, request_id: str) -> Response:
    """The problem as an answer."""
    body = ProblemBody(
        type=TYPE_PREFIX + problem.code,
        title=problem.code.replace("_", " ").capitalize(),
        status=problem.status_code,
        detail=problem.detail,
        instance=f"urn:uuid:{request_id}",
        errors=problem.errors or None,
    )
    return JSONResponse(
        body.model_dump(exclude_none=True),
        status_code=problem.status_code,
        headers=problem.headers,
        media_type=MEDIA_TYPE,
    )


def _as_problem(request: Request, error: HTTPException) -> Problem:
    if isinstance(error, Problem):
        return error
    if error.status_code == 404:
        return not_found()
    if error.status_code == 405:
        detail = "This path does not take this method; `Allow` names those it takes."
        return Problem(405, "method_not_allowed", detail, headers={"Allow": _allowed(request)})
    return Problem(error.status_code, "refused", "The request cannot be taken.", headers=error.headers)


def _allowed(request: Request) -> str:
    # The framework names those of the first route of this path only.
    routes = request.app.router.routes
    path = request.scope["path"]
    # Whoever answers GET answers HEAD (edge.Bodiless).
    asked = {method: "GET" if method == "HEAD" else method for method in METHODS}
    scopes = {method: {"type": "http", "path": path, "method": like} for method, like in asked.items()}
    return ", ".join(
        method
        for method, scope in scopes.items()
        if any(route.matches(dict(scope))[0] is Match.FULL for route in routes)
    )


def _invalid(errors: list[FieldProblem]) -> Problem:
    return Problem(422, "invalid_input", "Correct the fields under `errors`.", errors=errors)


def _field(item: Mapping[str, Any]) -> FieldProblem:
    where, *path = item["loc"]
    # What was sent is never repeated: pydantic's message of these types holds no value, and names that are not
    # ours do not get into a path (schemas.Given).
    pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return FieldProblem(
        pointer=pointer if where == "body" else f"{where}:{'.'.join(map(str, path))}",
        detail=_WHAT_TO_DO.get(item["type"]) or _SUBJECT.sub("This must", item["msg"]),
    )


_SUBJECT = re.compile(r"^(Input|String|List|Decimal input) should")
_WHAT_TO_DO = {
    "missing": "This is required.",
    "string_type": "Give a text.",
    "int_type": "Give a whole number.",
    "list_type": "Give a list.",
    "model_type": "Give an object.",
    "model_attributes_type": "Give an object.",
    "dict_type": "Give an object.",
}
