"""What comes in and goes out about webhooks. A secret goes out only in the answer that makes it."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agentjobs.api.given import Note
from agentjobs.domain.request import Given
from agentjobs.domain.webhooks import (
    DEFAULT_OVERLAP_SECONDS,
    JOB_EVENTS,
    LONGEST_OVERLAP_SECONDS,
    DisabledBecause,
    EventType,
    Miss,
    WebhookState,
)
from agentjobs.ledger.webhook_deliveries import WebhookDelivery
from agentjobs.ledger.webhooks import WebhookRecord
from agentjobs.webhooks.places import URL_LIMIT

GivenEvent = Annotated[EventType, Field(strict=False)]


class NewWebhook(Given):
    """An address to be told."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": "https://hooks.example.com/jobs", "types": ["job.dead"]}]}
    )

    url: Annotated[str, Field(min_length=1, max_length=URL_LIMIT, description="https, at a public address.")]
    types: Annotated[
        list[GivenEvent],
        Field(
            min_length=1,
            max_length=len(JOB_EVENTS),
            description="Default: every end and death.",
            json_schema_extra={"uniqueItems": True, "items": {"type": "string", "enum": [*JOB_EVENTS]}},
        ),
    ] = Field(default_factory=lambda: list(JOB_EVENTS))
    description: Note | None = None


class SecretRotation(Given):
    """A new secret."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"overlap_seconds": 3600}]})

    overlap_seconds: Annotated[
        int,
        Field(ge=0, le=LONGEST_OVERLAP_SECONDS, description="For so long both sign. 0: the old one has leaked."),
    ] = DEFAULT_OVERLAP_SECONDS


class WebhookShown(BaseModel):
    """A webhook without its secret."""

    id: str
    url: str
    types: list[EventType]
    description: str | None
    created_by: str
    created_at: datetime
    enabled: bool
    disabled_at: datetime | None
    disabled_because: DisabledBecause | None
    failing_since: Annotated[datetime | None, Field(description="Since then no delivery has arrived.")]
    throttled_until: Annotated[datetime | None, Field(description="It asked for nothing before this.")]
    old_secret_until: Annotated[datetime | None, Field(description="Until then two secrets sign.")]
    links: dict[str, str]


class WebhookMade(WebhookShown):
    """With the secret, this once."""

    secret: str


class WebhookList(BaseModel):
    """The tenant's webhooks, oldest first."""

    items: list[WebhookShown]


class WebhookDeliveryShown(BaseModel):
    """One event on its way to one webhook. `id` is the header `webhook-id`."""

    id: str
    type: EventType
    job_id: str | None
    state: WebhookState
    attempts: int
    last_status: Annotated[int | None, Field(description="HTTP status of the latest answer.")]
    last_error: Miss | None
    next_attempt_at: datetime | None
    created_at: datetime
    delivered_at: datetime | None


class WebhookDeliveryPage(BaseModel):
    """Deliveries, newest first."""

    items: list[WebhookDeliveryShown]
    next_cursor: str | None


def webhook_shown(webhook: WebhookRecord) -> WebhookShown:
    """A webhook."""
    here = f"/v1/webhooks/{webhook.id}"
    words = {word: f"{here}/{word}" for word in ("deliveries", "enable", "rotate-secret", "test")}
    return WebhookShown(
        **webhook.model_dump(include=set(WebhookShown.model_fields)),
        enabled=webhook.disabled_at is None,
        links={"self": here, **words},
    )


def delivery_shown(delivery: WebhookDelivery) -> WebhookDeliveryShown:
    """A delivery."""
    return WebhookDeliveryShown(**delivery.model_dump())
