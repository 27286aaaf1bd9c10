"""The body of what a tenant's webhook is told: ids, codes and links, and no content."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agentjobs.domain.webhooks import EventType


def body_of(event: EventType, at: datetime, data: Mapping[str, Any], *, links_base: str | None = None) -> bytes:
    """Standard Webhooks 1.0.0, "Payload structure": type, timestamp, and data that stays thin.

    at: when it happened. links_base: the address of the API; without it links are paths.
    """
    document = {
        "type": event.value,
        "timestamp": at.isoformat(),
        "data": {**data, "links": _links(event, data, (links_base or "").rstrip("/"))},
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _links(event: EventType, data: Mapping[str, Any], base: str) -> dict[str, str]:
    if event is EventType.TEST:
        return {}
    job = {"job": f"{base}/v1/jobs/{data['id']}"}
    if event in (EventType.DEAD, EventType.DISCARDED):
        return job | {"dead_letter": f"{base}/v1/dead-letters/{data['id']}"}
    return job
