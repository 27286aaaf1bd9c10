"""The OpenAPI document is complete. That it is true, every answer in these tests is checked for (described.py)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI

from agentjobs.api.problems import MEDIA_TYPE
from tests.api.front import Front

Document = dict[str, Any]

OPERATION_IDS = {
    *("submitJob", "listJobs", "readJob", "listAttempts", "cancelJob", "listWaiting", "readBudget", "setBudget"),
    "streamEvents",
    *("listDeadLetters", "reportDeadLetters", "readDeadLetter", "redriveDeadLetter", "discardDeadLetter"),
    *("startRedrive", "listRedrives", "readRedrive"),
    *("approveRedrive", "pauseRedrive", "resumeRedrive", "cancelRedrive"),
    *("createKey", "listKeys", "readKey", "revokeKey", "addGrant", "listGrants", "revokeGrant"),
    *("listAudit", "readQuota", "setQuota", "readQueues"),
    *("createWebhook", "listWebhooks", "readWebhook", "removeWebhook", "enableWebhook", "rotateWebhookSecret"),
    *("testWebhook", "listWebhookDeliveries", "replayWebhookDelivery"),
    *("eraseJob", "eraseUser", "readErasure"),
    *("listApprovals", "listApprovalsOfJob", "decideApproval"),
    *("health", "ready", "metrics"),
}
"""Part of the contract: generated clients name their methods by them."""


@pytest.fixture
async def document(front: Front) -> Document:
    served: Document = (await front.of(None).get("/openapi.json")).json()
    return served


def operations(document: Document) -> Iterator[Document]:
    for path in document["paths"].values():
        yield from path.values()


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_the_document_has_the_form_of_openapi(document: Document) -> None:
    OpenAPI.model_validate(document)

    schemas = document["components"]["schemas"]
    assert document["openapi"].startswith("3.1")
    assert {reference.rsplit("/", 1)[1] for reference in references(document)} <= schemas.keys()
    assert "HTTPValidationError" not in json.dumps(document)


def test_operations_keep_their_ids_and_have_a_tag(document: Document) -> None:
    found = [operation["operationId"] for operation in operations(document)]

    assert sorted(found) == sorted(OPERATION_IDS)
    assert all(operation["tags"] and operation["summary"] for operation in operations(document))


def test_every_route_but_health_needs_a_key(document: Document) -> None:
    open_ones = {operation["operationId"] for operation in operations(document) if not operation.get("security")}

    assert open_ones == {"health", "ready"}
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"


def test_every_error_is_a_problem(document: Document) -> None:
    for operation in operations(document):
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert answer["content"] == {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
            else:
                assert MEDIA_TYPE not in answer.get("content", {})


def test_headers_that_a_client_needs_are_declared(document: Document) -> None:
    submit = document["paths"]["/v1/jobs"]["post"]

    quotas = {"RateLimit", "RateLimit-Policy"}
    accepted = {"Location", "Retry-After", "Idempotency-Key-Expires", *quotas}
    assert submit["responses"]["202"]["headers"].keys() == accepted
    assert submit["responses"]["429"]["headers"].keys() == {"Retry-After", *quotas}
    assert submit["responses"]["503"]["headers"].keys() == {"Retry-After"}
    assert submit["responses"]["401"]["headers"].keys() == {"WWW-Authenticate"}
    assert [(one["name"], one["in"], one["required"]) for one in submit["parameters"]] == [
        ("Idempotency-Key", "header", False),
        ("traceparent", "header", False),
    ]


def test_bodies_refuse_what_they_do_not_name_and_have_examples(document: Document) -> None:
    bodies = [
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        for operation in operations(document)
        if "requestBody" in operation
    ]

    assert sorted(bodies) == [
        *(
            "BulkApproval",
            "DiscardOrder",
            "GivenDecision",
            "MonthlyBudget",
            "NewBulkRedrive",
            "NewErasure",
            "NewGrant",
            "NewJob",
            "NewKey",
        ),
        *("NewWebhook", "QuotaLimits", "RedriveOrder", "SecretRotation"),
    ]
    for name in bodies:
        schema = document["components"]["schemas"][name]
        assert schema["additionalProperties"] is False
        assert schema["examples"]


async def test_the_examples_are_accepted(front: Front, document: Document) -> None:
    examples = document["components"]["schemas"]["NewJob"]["examples"]

    answers = [await front.of("ann").post("/v1/jobs", json=example) for example in examples]

    assert [answer.status_code for answer in answers] == [202] * len(examples)
