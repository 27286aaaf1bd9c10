"""Problem details (RFC 9457): one form for everything that is refused. No problem repeats what was sent."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:agentjobs:problem:"
RETRY_SECONDS = 2


class FieldProblem(BaseModel):
    """One field: where (a JSON pointer, RFC 6901, or the name of a parameter) and what to do."""

    pointer: str
    detail: str


class ProblemBody(BaseModel):
    """The body of every error."""

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
    """The same for an unknown id, a malformed one, and one of another tenant."""
    return Problem(404, "not_found", "There is nothing of this id that you may see.")


def unacceptable(pointer: str, detail: str) -> Problem:
    """One field that cannot be taken."""
    return Problem(
        422,
        "invalid_input",
        "Correct the fields under `errors`.",
        errors=[FieldProblem(pointer=pointer, detail=detail)],
    )


def unavailable(detail: str = "The database does not answer. Nothing is lost: repeat the request.") -> Problem:
    """What we depend on is away for the moment."""
    return Problem(503, "unavailable", detail, headers={"Retry-After": str(RETRY_SECONDS)})


def bug() -> Problem:
    """Nobody foresaw this."""
    return Problem(500, "bug", "This is a fault of ours. Nothing was accepted.")


def install(app: FastAPI) -> None:
    """Give every error of the application this form."""

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return response(request, _as_problem(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return response(request, _of_validation(error))


def response(request: Request, problem: Problem) -> Response:
    """The problem as an answer."""
    body = ProblemBody(
        type=TYPE_PREFIX + problem.code,
        title=HTTPStatus(problem.status_code).phrase,
        status=problem.status_code,
        detail=str(problem.detail),
        instance=request.url.path,
        errors=problem.errors or None,
    )
    return JSONResponse(
        body.model_dump(exclude_none=True),
        status_code=problem.status_code,
        headers=problem.headers,
        media_type=MEDIA_TYPE,
    )


def _as_problem(error: HTTPException) -> Problem:
    if isinstance(error, Problem):
        return error
    told = {
        404: ("unknown_route", "There is no such route; /openapi.json lists them."),
        405: ("method_not_allowed", "This route does not take this method; `Allow` names those it takes."),
    }
    code, detail = told.get(error.status_code, ("refused", "The request cannot be taken."))
    return Problem(error.status_code, code, detail, headers=error.headers)


def _of_validation(error: RequestValidationError) -> Problem:
    problems = [_field(item) for item in error.errors()]
    return Problem(422, "invalid_input", "Correct the fields under `errors`.", errors=problems)


def _field(item: Mapping[str, Any]) -> FieldProblem:
    where, *path = item["loc"]
    # What was sent is never repeated: pydantic's message of these types holds no value.
    pointer = "/" + "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return FieldProblem(
        pointer=pointer if where == "body" else f"{where}:{'.'.join(map(str, path))}",
        detail=_WHAT_TO_DO.get(item["type"], item["msg"]),
    )


_WHAT_TO_DO = {
    "extra_forbidden": "This field does not exist: leave it out.",
    "missing": "This field is required.",
    "string_type": "Give a text.",
    "int_type": "Give a whole number.",
    "model_attributes_type": "Give an object.",
    "dict_type": "Give an object.",
}
