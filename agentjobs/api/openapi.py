"""The OpenAPI document: FastAPI's, with our problems where it declares a form of its own."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from agentjobs.api import problems


def document(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        schemas = made["components"]["schemas"]
        for foreign in ("HTTPValidationError", "ValidationError"):
            schemas.pop(foreign, None)
        schemas.update(_schemas_of_problems())
        app.openapi_schema = made
    return app.openapi_schema


def _schemas_of_problems() -> dict[str, Any]:
    schema = problems.ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), problems.ProblemBody.__name__: schema}
