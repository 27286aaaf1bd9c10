"""The OpenAPI document: FastAPI's, with our problems where it declares a form of its own."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts

from agentjobs.api import problems
from agentjobs.api.authentication import Having
from agentjobs.ledger.identity import Role


def document(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        schemas = made["components"]["schemas"]
        for foreign in ("HTTPValidationError", "ValidationError"):
            schemas.pop(foreign, None)
        schemas.update(_schemas_of_problems())
        for context in iter_route_contexts(app.routes):
            route = context.original_route
            if isinstance(route, APIRoute) and route.include_in_schema:
                _tell_roles(route, made["paths"][route.path_format])
        app.openapi_schema = made
    return app.openapi_schema


def _tell_roles(route: APIRoute, operations: dict[str, Any]) -> None:
    """Any one of these roles will do (OpenAPI 3.1, Security Requirement Object)."""
    roles = [role for part in route.dependant.dependencies for role in _roles_of(part.call)]
    if not roles:
        return  # open, or behind something else than an API key
    for method in route.methods or ():
        for scheme in list(operations[method.lower()].get("security", [])):
            name = next(iter(scheme))
            operations[method.lower()]["security"] = [{name: [role.value]} for role in roles]


def _roles_of(guard: object) -> tuple[Role, ...]:
    return guard.roles if isinstance(guard, Having) else ()


def _schemas_of_problems() -> dict[str, Any]:
    schema = problems.ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), problems.ProblemBody.__name__: schema}
