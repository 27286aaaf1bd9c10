"""Commands about webhooks, for admins: who is told when jobs end, and what has arrived."""

from enum import StrEnum
from typing import Annotated, Final

import typer

from agentjobs.commands.opening import DEFAULT_HOME, All, AsJson, Home, Limit, opened
from agentjobs.commands.place import Door
from agentjobs.commands.render import Screen
from agentjobs.commands.webhook_answers import Webhook, WebhookDelivery

app = typer.Typer(help="Addresses that are told when jobs end.", no_args_is_help=True)

WEBHOOK_COLUMNS: Final = ("ID", "STATE", "CREATED", "TYPES", "DESCRIPTION", "URL")
DELIVERY_COLUMNS: Final = ("ID", "STATE", "TYPE", "JOB", "ATTEMPTS", "LAST", "NEXT", "CREATED")

WebhookId = Annotated[str, typer.Argument(metavar="ID", help="The webhook's id.", show_default=False)]


class Type(StrEnum):
    """What a webhook may be told."""

    SUCCEEDED = "job.succeeded"
    DEAD = "job.dead"
    CANCELLED = "job.cancelled"
    DISCARDED = "job.discarded"


@app.command()
def add(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="https, at a public address.", show_default=False)],
    type_: Annotated[
        list[Type] | None, typer.Option("--type", help="May be given several times. Default: all.")
    ] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.", show_default=False)] = None,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Have an address told. Its secret is printed this once."""
    body: dict[str, object] = {"url": url}
    if type_:
        body["types"] = type_
    if description is not None:
        body["description"] = description
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        _show_secret(here.api.add_webhook(body), here.screen)


@app.command("list")
def list_webhooks(context: typer.Context, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """List webhooks."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        webhooks = here.api.webhooks()
        if as_json:
            here.screen.documents(webhooks)
            return
        rows = [_webhook_row(webhook, here.screen) for webhook in webhooks]
        here.screen.table(WEBHOOK_COLUMNS, rows, empty="no webhooks")


@app.command()
def remove(
    context: typer.Context, webhook_id: WebhookId, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Tell an address no more; what waits to be sent is dropped."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        here.api.remove_webhook(webhook_id)
        if as_json:
            here.screen.document({"id": webhook_id, "removed": True})
        else:
            here.screen.line(f"removed: {webhook_id}")


@app.command()
def enable(
    context: typer.Context, webhook_id: WebhookId, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Tell a disabled one again of what happens from now on."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        webhook = here.api.enable_webhook(webhook_id)
        if as_json:
            here.screen.document(webhook.document())
        else:
            here.screen.line(f"enabled: {webhook.id}")


@app.command()
def rotate(
    context: typer.Context,
    webhook_id: WebhookId,
    overlap: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", help="For so long both sign. Default: a day.", show_default=False),
    ] = None,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Sign with a new secret. It is printed this once."""
    body = {} if overlap is None else {"overlap_seconds": overlap}
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        _show_secret(here.api.rotate_webhook_secret(webhook_id, body), here.screen)


@app.command()
def test(
    context: typer.Context, webhook_id: WebhookId, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Send it a test; `webhooks deliveries` shows what came of it."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        _show_delivery(here.api.test_webhook(webhook_id), here.screen)


@app.command()
def deliveries(
    context: typer.Context,
    webhook_id: WebhookId,
    limit: Limit = 20,
    show_all: All = False,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Show what it was told, the latest first, and whether it arrived."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        found, cursor = here.api.webhook_deliveries(webhook_id, None if show_all else limit)
        if as_json:
            here.screen.documents(found, cursor)
            return
        rows = [_delivery_row(delivery, here.screen) for delivery in found]
        here.screen.table(DELIVERY_COLUMNS, rows, empty="nothing was told yet")
        here.screen.tell_more(cursor)


@app.command()
def replay(
    context: typer.Context,
    webhook_id: WebhookId,
    delivery_id: Annotated[str, typer.Argument(metavar="DELIVERY", help="The delivery's id.", show_default=False)],
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Send a delivery once more, under the same webhook-id."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        _show_delivery(here.api.replay_webhook_delivery(webhook_id, delivery_id), here.screen)


def _show_secret(webhook: Webhook, screen: Screen) -> None:
    if screen.as_json:
        screen.document(webhook.document())
        return
    screen.tell(f"webhook {webhook.id}; its secret is shown only now:")
    screen.line(webhook.secret or "")


def _show_delivery(delivery: WebhookDelivery, screen: Screen) -> None:
    if screen.as_json:
        screen.document(delivery.document())
    else:
        screen.line(f"to be sent: {delivery.id} ({delivery.type})")


def _webhook_row(webhook: Webhook, screen: Screen) -> list[object]:
    state = "enabled" if webhook.enabled else f"disabled: {webhook.disabled_because}"
    failing = "retrying" if webhook.enabled and webhook.failing_since else state
    types = ",".join(webhook.types)
    return [webhook.id, failing, screen.moment(webhook.created_at), types, webhook.description, webhook.url]


def _delivery_row(delivery: WebhookDelivery, screen: Screen) -> list[object]:
    last = delivery.last_error if delivery.last_status is None else delivery.last_status
    return [
        delivery.id,
        delivery.state,
        delivery.type,
        delivery.job_id,
        delivery.attempts,
        last,
        screen.moment(delivery.next_attempt_at),
        screen.moment(delivery.created_at),
    ]
