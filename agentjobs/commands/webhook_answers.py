"""What the API answers about webhooks, as far as the commands show it."""

from pydantic import AwareDatetime

from agentjobs.commands.answers import Answer, Count


class Webhook(Answer):
    """An address that is told; `secret` itself only in the answer that makes it."""

    id: str
    url: str
    secret: str | None = None
    types: tuple[str, ...] = ()
    description: str | None = None
    enabled: bool = True
    disabled_because: str | None = None
    failing_since: AwareDatetime | None = None
    created_at: AwareDatetime | None = None


class WebhookDelivery(Answer):
    """One event on its way to one webhook."""

    id: str
    type: str
    state: str
    job_id: str | None = None
    attempts: Count = 0
    last_status: int | None = None
    last_error: str | None = None
    next_attempt_at: AwareDatetime | None = None
    created_at: AwareDatetime | None = None
