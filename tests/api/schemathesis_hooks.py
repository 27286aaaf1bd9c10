"""A check of our own for Schemathesis: what the document allows is refused only for what no schema can say."""

import json
import re
from typing import Any

import schemathesis
from schemathesis import Case, Response
from schemathesis.checks import CheckContext
from schemathesis.specs.openapi.checks import positive_data_acceptance

UNSAID_CODES = {"idempotency_key_reused", "last_event_id_unknown"}
UNSAID = re.compile(
    # What there is, or was:
    "There is no such agent|Give the `next_cursor`|This version of the agent takes|The job has no such limit"
    "|Name more than"
    # Where a webhook may go:
    "|This cannot be told"
    # What JSON Schema has no portable words for: classes of characters, and that 5.0 is no whole number of ours.
    "|This is blank|Give a whole number"
)


@schemathesis.check
def what_the_document_allows_is_taken(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """Schemathesis's own check, but for those refusals."""
    if response.status_code in {400, 422} and _is_unsaid(json.loads(response.content)):
        return None
    return positive_data_acceptance(ctx, response, case)


def _is_unsaid(problem: dict[str, object]) -> bool:
    if str(problem["type"]).rsplit(":", 1)[1] in UNSAID_CODES:
        return True
    errors = problem.get("errors")
    return isinstance(errors, list) and all(UNSAID.match(error["detail"]) for error in errors)
