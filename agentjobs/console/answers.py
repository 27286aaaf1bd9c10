"""What is refused, as a page."""

from typing import Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agentjobs.api.problems import Problem
from agentjobs.console.rendering import page

_SHOWN: Final = frozenset({"Retry-After"})
"""Of the API's headers: a challenge to clients with keys says nothing to a browser."""


async def refused(request: Request, error: Exception) -> Response:
    """The page of an error that FastAPI met, or that a route raised."""
    if isinstance(error, RequestValidationError):
        return problem_page(request, _invalid(error))
    status = error.status_code if isinstance(error, HTTPException) else 400
    if status == 404:  # the API's sentence speaks of its paths
        return problem_page(request, Problem(404, "not_found", "There is nothing here that you may see."))
    if isinstance(error, Problem):
        return problem_page(request, error)
    return problem_page(request, Problem(status, "refused", "This page does not take such a request."))


def problem_page(request: Request, problem: Problem) -> Response:
    """The problem as a page. It repeats nothing that was sent."""
    answer = page(
        request,
        "problem.html",
        status=problem.status_code,
        title=problem.code.replace("_", " ").capitalize(),
        detail=problem.detail,
        errors=problem.errors,
        request_id=None if problem.status_code == 404 else getattr(request.state, "request_id", None),
    )
    answer.status_code = problem.status_code
    for name in _SHOWN.intersection(problem.headers or {}):
        answer.headers[name] = (problem.headers or {})[name]
    return answer


def _invalid(error: RequestValidationError) -> Problem:
    # Pydantic's messages of our bodies hold no value that was sent (api/problems.py).
    told = [f"{_field(item['loc'])}: {item['msg']}." for item in error.errors()]
    return Problem(422, "invalid_input", " ".join(told))


def _field(path: tuple[object, ...]) -> str:
    return " ".join(str(part) for part in path if part not in {"body", "query"}).replace("_", " ") or "form"
