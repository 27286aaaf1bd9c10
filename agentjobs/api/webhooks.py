"""Routes of webhooks: who is told of the tenant's jobs, with which secret, and what arrived. For its admins."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from agentjobs.api.authentication import Admin
from agentjobs.api.cursors import Cursor, Limit, page_of, position_of
from agentjobs.api.declared import headers, problems, problems_with_body
from agentjobs.api.parts import LedgerPart, found
from agentjobs.api.problems import Problem, not_found, unacceptable
from agentjobs.api.strict_route import StrictRoute
from agentjobs.api.webhook_schemas import (
    NewWebhook,
    SecretRotation,
    WebhookDeliveryPage,
    WebhookDeliveryShown,
    WebhookList,
    WebhookMade,
    WebhookShown,
    delivery_shown,
    webhook_shown,
)
from agentjobs.domain.webhooks import JOB_EVENTS, WEBHOOKS_LIMIT
from agentjobs.ledger.webhook_deliveries import StillTesting
from agentjobs.ledger.webhooks import TooManyWebhooks, WebhookDisabled
from agentjobs.webhooks.places import Forbidden, Reach, checked_place
from agentjobs.webhooks.signing import new_secret

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=StrictRoute)


async def _reach_of(request: Request) -> Reach:
    reach: Reach = request.app.state.webhooks_reach
    return reach


ReachPart = Annotated[Reach, Depends(_reach_of)]


@router.post(
    "",
    status_code=201,
    response_model=WebhookMade,
    operation_id="createWebhook",
    summary="Have an address told when jobs end",
    responses={201: {"headers": headers({"Location": "The webhook."})}, **problems_with_body(409)},
)
async def create(
    new: NewWebhook, caller: Admin, response: Response, ledger: LedgerPart, reach: ReachPart
) -> WebhookMade:
    """The answer is the only place that shows the secret. Nothing is sent or looked up yet."""
    _check(new, reach)
    secret = new_secret()
    try:
        webhook = await ledger.webhooks.add(
            caller.tenant,
            url=new.url,
            types=tuple(new.types),
            description=new.description,
            secret=secret,
            actor=caller.user,
        )
    except TooManyWebhooks:
        detail = f"A tenant has at most {WEBHOOKS_LIMIT} webhooks: remove one first."
        raise Problem(409, "too_many_webhooks", detail) from None
    response.headers["Location"] = f"/v1/webhooks/{webhook.id}"
    return WebhookMade(**webhook_shown(webhook).model_dump(), secret=secret.get_secret_value())


@router.get(
    "", response_model=WebhookList, operation_id="listWebhooks", summary="All webhooks", responses=problems()
)
async def webhooks(caller: Admin, ledger: LedgerPart) -> WebhookList:
    """Also the disabled ones."""
    return WebhookList(items=[webhook_shown(webhook) for webhook in await ledger.webhooks.all(caller.tenant)])


@router.get(
    "/{id}",
    response_model=WebhookShown,
    operation_id="readWebhook",
    summary="One webhook",
    responses=problems(404),
)
async def webhook(id: str, caller: Admin, ledger: LedgerPart) -> WebhookShown:
    """Without its secret."""
    return webhook_shown(found(await ledger.webhooks.read(caller.tenant, id)))


@router.delete(
    "/{id}",
    status_code=204,
    operation_id="removeWebhook",
    summary="Tell an address no more",
    responses=problems(404),
)
async def remove(id: str, caller: Admin, ledger: LedgerPart) -> None:
    """What waits to be sent is dropped; what is being sent at this moment may still arrive."""
    if not await ledger.webhooks.remove(caller.tenant, id, actor=caller.user):
        raise not_found()


@router.post(
    "/{id}/enable",
    response_model=WebhookShown,
    operation_id="enableWebhook",
    summary="Tell it again",
    responses=problems(404),
)
async def enable(id: str, caller: Admin, ledger: LedgerPart) -> WebhookShown:
    """What happens from now on. What it has missed can be replayed."""
    return webhook_shown(found(await ledger.webhooks.enable(caller.tenant, id, actor=caller.user)))


@router.post(
    "/{id}/rotate-secret",
    response_model=WebhookMade,
    operation_id="rotateWebhookSecret",
    summary="Sign with a new secret",
    responses=problems_with_body(404),
)
async def rotate_secret(id: str, rotation: SecretRotation, caller: Admin, ledger: LedgerPart) -> WebhookMade:
    """The answer is the only place that shows it. Both sign until the overlap is over."""
    secret = new_secret()
    webhook = found(
        await ledger.webhooks.rotate_secret(
            caller.tenant, id, secret, overlap_seconds=rotation.overlap_seconds, actor=caller.user
        )
    )
    return WebhookMade(**webhook_shown(webhook).model_dump(), secret=secret.get_secret_value())


@router.post(
    "/{id}/test",
    status_code=202,
    response_model=WebhookDeliveryShown,
    operation_id="testWebhook",
    summary="Send it a test",
    responses=problems(404, 409),
)
async def send_test(id: str, caller: Admin, ledger: LedgerPart) -> WebhookDeliveryShown:
    """A message `webhook.test`, on the same way as all others; its deliveries say what came of it."""
    try:
        return delivery_shown(
            found(await ledger.webhook_deliveries.add_test(caller.tenant, id, actor=caller.user))
        )
    except WebhookDisabled:
        raise _disabled() from None
    except StillTesting:
        detail = "An earlier test is still being tried: its deliveries say what becomes of it."
        raise Problem(409, "still_testing", detail) from None


@router.get(
    "/{id}/deliveries",
    response_model=WebhookDeliveryPage,
    operation_id="listWebhookDeliveries",
    summary="What it was told, and whether it arrived",
    responses=problems(404),
)
async def deliveries(
    id: str, caller: Admin, ledger: LedgerPart, cursor: Cursor = None, limit: Limit = 50
) -> WebhookDeliveryPage:
    """Of the last 30 days. What a receiver answers is not kept, but for its status."""
    webhook = found(await ledger.webhooks.read(caller.tenant, id))
    rows = await ledger.webhook_deliveries.page(webhook.id, before=position_of(cursor), limit=limit + 1)
    page, following = page_of(rows, limit, "created_at")
    return WebhookDeliveryPage(items=[delivery_shown(delivery) for delivery in page], next_cursor=following)


@router.post(
    "/{id}/deliveries/{delivery}/replay",
    status_code=202,
    response_model=WebhookDeliveryShown,
    operation_id="replayWebhookDelivery",
    summary="Send it once more",
    responses=problems(404, 409),
)
async def replay(id: str, delivery: str, caller: Admin, ledger: LedgerPart) -> WebhookDeliveryShown:
    """Under the same `webhook-id`, with a new timestamp, from the beginning of the schedule."""
    try:
        return delivery_shown(
            found(await ledger.webhook_deliveries.replay(caller.tenant, id, delivery, actor=caller.user))
        )
    except WebhookDisabled:
        raise _disabled() from None


def _check(new: NewWebhook, reach: Reach) -> None:
    if not set(new.types) <= set(JOB_EVENTS) or len(set(new.types)) < len(new.types):
        raise unacceptable("/types", f"Name some of {', '.join(JOB_EVENTS)}, each once.")
    try:
        checked_place(new.url, reach)
    except Forbidden as error:
        raise unacceptable("/url", f"This cannot be told: {error}.") from None


def _disabled() -> Problem:
    return Problem(409, "webhook_disabled", "The webhook is disabled: enable it first.")
