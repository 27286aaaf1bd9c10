"""The application over its collaborators."""

from fastapi import FastAPI

from agentjobs import __version__
from agentjobs.agents.spec import AgentRegistry
from agentjobs.api import (
    approvals,
    audit,
    budget,
    dead_letters,
    erasures,
    events,
    grants,
    health,
    jobs,
    keys,
    metrics,
    openapi,
    problems,
    queues,
    quota,
    redrives,
    waiting,
    webhooks,
)
from agentjobs.api.authentication import Authenticator
from agentjobs.api.edge import Edge
from agentjobs.api.event_feed import EventFeed
from agentjobs.api.event_stream import OpenStreams
from agentjobs.api.measures import Measures
from agentjobs.api.metrics import CLOSED, MetricsAccess
from agentjobs.api.shown import Links
from agentjobs.domain.bulk import APPROVAL_ABOVE
from agentjobs.domain.quotas import NO_LIMITS, Limits
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.events import Events
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.metrics import Standings
from agentjobs.webhooks.places import Reach


def create_app(
    ledger: Ledger,
    agents: AgentRegistry,
    *,
    links: Links | None = None,
    failpoints: Failpoints | None = None,
    redrive_approval_above: int = APPROVAL_ABOVE,
    quotas: Limits = NO_LIMITS,
    streams: OpenStreams | None = None,
    webhooks_private: bool = False,
    metrics_access: MetricsAccess = CLOSED,
) -> FastAPI:
    """The HTTP API of one installation. Who serves it also runs `state.event_feed`, and closes `state.streams`."""
    app = FastAPI(
        title="agentjobs",
        version=__version__,
        summary="Durable jobs for agents.",
        redoc_url=None,
        docs_url=None,
        # A redirect would be built from the Host header, and would lose the body of a POST.
        redirect_slashes=False,
    )
    app.state.ledger = ledger
    app.state.agents = agents
    app.state.failpoints = failpoints or Failpoints()
    app.state.redrive_approval_above = redrive_approval_above
    app.state.quotas = quotas
    app.state.webhooks_reach = Reach.of_tenants(private=webhooks_private)
    app.state.links = links or Links(None)
    app.state.authenticator = Authenticator(ledger.identity)
    app.state.event_feed = EventFeed(Events(ledger.database))
    app.state.streams = streams or OpenStreams()
    app.state.metrics_access = metrics_access
    app.state.measures = Measures(Standings(ledger.database), lambda: app.state.streams.count)
    problems.install(app)
    app.add_middleware(Edge, measure=app.state.measures.answered)
    for part in (
        jobs,
        approvals,
        events,
        waiting,
        dead_letters,
        redrives,
        budget,
        queues,
        quota,
        keys,
        grants,
        audit,
        webhooks,
        erasures,
        health,
        metrics,
    ):
        app.include_router(part.router)
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]
    return app
