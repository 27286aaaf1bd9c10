"""The routes of webhooks as typed methods."""

from collections.abc import Mapping

from agentjobs.commands.asking import Asking, in_path
from agentjobs.commands.webhook_answers import Webhook, WebhookDelivery


class WebhookCalls(Asking):
    """What an admin asks of webhooks."""

    def add_webhook(self, body: Mapping[str, object]) -> Webhook:
        """Have an address told; the answer is the only place that shows its secret."""
        return self._read(Webhook, self._ask("POST", "/v1/webhooks", json=body))

    def webhooks(self) -> list[Webhook]:
        """The tenant's webhooks."""
        return self._list(Webhook, "/v1/webhooks", {})

    def remove_webhook(self, webhook_id: str) -> None:
        """Tell an address no more."""
        self._ask("DELETE", _of(webhook_id))

    def enable_webhook(self, webhook_id: str) -> Webhook:
        """Tell a disabled one again."""
        return self._read(Webhook, self._ask("POST", f"{_of(webhook_id)}/enable"))

    def rotate_webhook_secret(self, webhook_id: str, body: Mapping[str, object]) -> Webhook:
        """A new secret; the answer is the only place that shows it."""
        return self._read(Webhook, self._ask("POST", f"{_of(webhook_id)}/rotate-secret", json=body))

    def test_webhook(self, webhook_id: str) -> WebhookDelivery:
        """Send it a test."""
        return self._read(WebhookDelivery, self._ask("POST", f"{_of(webhook_id)}/test"))

    def webhook_deliveries(self, webhook_id: str, limit: int | None) -> tuple[list[WebhookDelivery], str | None]:
        """The newest deliveries, at most `limit`, and the cursor of what follows."""
        return self._pages(WebhookDelivery, f"{_of(webhook_id)}/deliveries", limit, {})

    def replay_webhook_delivery(self, webhook_id: str, delivery_id: str) -> WebhookDelivery:
        """Send it once more."""
        path = f"{_of(webhook_id)}/deliveries/{in_path(delivery_id)}/replay"
        return self._read(WebhookDelivery, self._ask("POST", path))


def _of(webhook_id: str) -> str:
    return f"/v1/webhooks/{in_path(webhook_id)}"
