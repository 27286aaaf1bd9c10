"""S27: whatever stands in a query, it is a value or it is refused; and no statement takes longer for it."""

from collections.abc import Iterator
from time import monotonic

import pytest

from tests.api.front import UNKNOWN, Front

INJECTIONS = [
    "' OR '1'='1",
    "x'; DROP TABLE jobs; --",
    "x') UNION SELECT key_hash::text FROM api_keys --",
    "1; SELECT pg_sleep(20)",
    "1 AND (SELECT 1 FROM pg_sleep(20)) IS NULL",
    "$1",
    "%(tenant)s",
    "%",
    "_",
    "\\",
    "\x00",
    "WyIyMDI2LTAxLTAxVDAwOjAwOjAwWiIsICInOyAtLSJd",  # a cursor of a moment and of '; --
]
PATIENCE_SECONDS = 5


def queries(front: Front) -> Iterator[tuple[str, str]]:
    """Every parameter of every list and reading, as the document tells them."""
    for path, operations in front.app.openapi()["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", []):
            if parameter["in"] == "query":
                yield path.replace("{id}", UNKNOWN), parameter["name"]


@pytest.mark.parametrize("given", INJECTIONS, ids=ascii)
async def test_a_parameter_is_a_value_and_nothing_else(front: Front, given: str) -> None:
    await front.scene.accept()
    await front.of("gus").post("/v1/jobs", json={"input": {"text": "of another tenant"}})
    asked = list(queries(front))
    began = monotonic()

    answers = [
        await front.of(name).get(path, params={parameter: given})
        for path, parameter in asked
        for name in ("rita", "adam")
    ]

    assert len(asked) > 15
    assert {answer.status_code for answer in answers} <= {200, 400, 403, 404, 422}
    assert all(answer.json().get("items", []) == [] for answer in answers if answer.status_code == 200)
    assert monotonic() - began < PATIENCE_SECONDS
    assert await front.scene.count("jobs") == 2
