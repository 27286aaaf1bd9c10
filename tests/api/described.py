"""Every answer of the API against its own OpenAPI document: status, media type, headers, and the body's shape."""

import re
from typing import Any

import httpx

Document = dict[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def check_described(document: Document, response: httpx.Response) -> None:
    """Fail unless the document declares this answer. A path or method that it does not know is none of its."""
    if response.request.url.path == "/openapi.json":
        return
    operation = operation_of(document, response.request)
    if operation is None:
        assert response.status_code in {400, 404, 405, 413, 414, 431}, response.text
        return
    where = f"{operation['operationId']} {response.status_code}"
    declared = operation["responses"].get(str(response.status_code))
    assert declared is not None, f"{where} is not declared: {response.text}"
    told = {name for name, header in declared.get("headers", {}).items() if header["required"]}
    assert {name.lower() for name in told} <= response.headers.keys(), f"{where} lacks a declared header"
    if response.status_code == 204:
        assert not response.content
        return
    media_type = response.headers["content-type"]
    assert media_type in declared["content"], f"{where} is {media_type}"
    if not media_type.startswith("text/"):  # of its events, tests/api/event_source.py
        check_shape(document, declared["content"][media_type]["schema"], response.json(), where)


def operation_of(document: Document, request: httpx.Request) -> Document | None:
    """The operation that the request asks for."""
    for path, operations in document["paths"].items():
        if re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", path), request.url.path):
            operation: Document | None = operations.get(request.method.lower())
            if operation is not None:
                return operation
    return None


def check_shape(document: Document, schema: Document, value: object, where: str) -> None:
    """The part of JSON Schema that our document uses; members that are not declared are refused."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema:
        assert any(_fits(document, one, value) for one in schema["anyOf"]), f"{where}: no alternative fits"
        return
    if "type" in schema:
        kinds = _TYPES[schema["type"]]
        assert isinstance(value, kinds), f"{where}: {value!r} is no {schema['type']}"
        assert schema["type"] == "boolean" or not isinstance(value, bool), f"{where}: {value!r}"
    assert value in schema.get("enum", [value]), f"{where}: {value!r} is none of {schema.get('enum')}"
    if isinstance(value, dict):
        _check_members(document, schema, value, where)
    if isinstance(value, list):
        for number, item in enumerate(value):
            check_shape(document, schema.get("items", {}), item, f"{where}/{number}")


def _check_members(document: Document, schema: Document, value: dict[str, object], where: str) -> None:
    declared = schema.get("properties", {})
    missing = set(schema.get("required", [])) - value.keys()
    assert not missing, f"{where}: {missing} missing"
    others = schema.get("additionalProperties", "properties" not in schema)
    for name, member in value.items():
        if name in declared:
            check_shape(document, declared[name], member, f"{where}/{name}")
        elif isinstance(others, dict):
            check_shape(document, others, member, f"{where}/{name}")
        else:
            assert others, f"{where}: {name} is not declared"


def _fits(document: Document, schema: Document, value: object) -> bool:
    try:
        check_shape(document, schema, value, "")
    except AssertionError:
        return False
    return True
