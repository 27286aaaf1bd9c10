"""GET /metrics: the process's figures for Prometheus. In production closed, unless a token is set for it."""

import hmac
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.security import HTTPBearer
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from agentjobs.api.declared import Responses, only
from agentjobs.api.measures import Measures
from agentjobs.api.problems import Problem, not_found

router = APIRouter(tags=["health"])

# Only for the OpenAPI document, as in authentication.py.
scheme = HTTPBearer(
    auto_error=False, scheme_name="MetricsToken", description="AGENTJOBS_METRICS_TOKEN of the installation."
)

_TOLD: Final[Responses] = {
    200: {"description": "All figures.", "content": {CONTENT_TYPE_PLAIN_0_0_4: {"schema": {"type": "string"}}}}
}


@dataclass(frozen=True)
class MetricsAccess:
    """Who may read the metrics: whoever has the token; without one nobody, or (`is_open`) anybody."""

    token: str | None = None
    is_open: bool = False

    def check(self, request: Request) -> None:
        """Raises Problem 404 where there is nothing to read, and 401 for a wrong token."""
        if self.token is None and not self.is_open:
            raise not_found()
        if self.token is not None and not self._is_given(request):
            challenge = {"WWW-Authenticate": 'Bearer realm="agentjobs metrics"'}
            raise Problem(401, "unauthenticated", "Give the token of the metrics.", headers=challenge)

    def _is_given(self, request: Request) -> bool:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(given.encode(), (self.token or "").encode())


CLOSED: Final = MetricsAccess()


@router.get(
    "/metrics",
    response_class=Response,
    operation_id="metrics",
    summary="Figures for Prometheus",
    responses=_TOLD | only(400, 401, 404, 413, 414, 431, 500),
)
async def metrics(request: Request, _: Annotated[object, Depends(scheme)]) -> Response:
    """This process's figures, and what stands in the ledger, in the text format. Nobody is named, and no job."""
    access: MetricsAccess = request.app.state.metrics_access
    access.check(request)
    measures: Measures = request.app.state.measures
    return Response(await measures.text(), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})
