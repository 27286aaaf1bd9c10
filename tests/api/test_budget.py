"""The tenant's monthly budget: everybody of the tenant sees it, an admin sets it, and each change is on record."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from httpx import AsyncClient

from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.effects import EffectClass, EffectKind
from tests.api.front import Front, pointers

MODEL_CALL = {"kind": EffectKind.MODEL, "name": "model", "effect_class": EffectClass.READ_ONLY}
HELD = Reservation(tokens=10, usd=Decimal("0.5"))
NOTHING = {"tokens": 0, "usd": "0.000000"}
NO_LIMITS = {"tokens": None, "usd": None}


async def spend(front: Front, **changes: str) -> None:
    """A job of which one model call is paid, and another one is in flight."""
    job_id = (await front.scene.accept(**changes)).id
    call = front.scene.intent(job_id, "plan", **MODEL_CALL)
    attempt_id = await front.scene.begin_attempt(job_id, "plan", **MODEL_CALL, reserve=HELD)
    usage = Usage(tokens_in=7, tokens_out=2, usd=Decimal("0.25"))
    await front.ledger.effects.complete(call, attempt_id, {}, usage=usage, model="m")
    await front.scene.begin_attempt(job_id, "step-1.model", **MODEL_CALL, reserve=HELD)


@pytest.mark.parametrize("limits", [NO_LIMITS, {"tokens": 1_000, "usd": "2.500000"}])
async def test_the_month_says_what_is_spent_and_held_back(
    front: Front, adam: AsyncClient, limits: dict[str, Any]
) -> None:
    await adam.put("/v1/budget", json=limits)
    for user in ("ann", "ben"):
        await spend(front, user=user)
    await spend(front, tenant="globex")

    answers = [(await front.of(name).get("/v1/budget")).json() for name in ("ann", "rita", "adam")]

    assert answers[0] == {
        "month": f"{datetime.now(UTC):%Y-%m}",
        "limits": limits,
        "spent": {"tokens": 18, "usd": "0.500000"},
        "held_back": {"tokens": 20, "usd": "1.000000"},
    }
    assert answers[1:] == answers[:1] * 2


async def test_a_tenant_without_a_budget_has_no_limits(ann: AsyncClient) -> None:
    month = (await ann.get("/v1/budget")).json()

    assert (month["limits"], month["spent"], month["held_back"]) == (NO_LIMITS, NOTHING, NOTHING)


async def test_what_is_set_holds_for_the_tenant_alone_and_is_on_record(front: Front, adam: AsyncClient) -> None:
    wanted = {"tokens": 1_000, "usd": "2.5"}

    answers = [await adam.put("/v1/budget", json=wanted) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1].json() == answers[0].json() == (await front.of("ann").get("/v1/budget")).json()
    assert answers[0].json()["limits"] == {"tokens": 1_000, "usd": "2.500000"}
    assert (await front.of("gus").get("/v1/budget")).json()["limits"] == NO_LIMITS
    audited = await front.scene.rows("SELECT tenant, actor, action, target FROM audit_log")
    assert audited == [{"tenant": "acme", "actor": "adam", "action": "set_budget", "target": "acme"}] * 2


async def test_what_was_spent_before_counts(front: Front, adam: AsyncClient) -> None:
    await spend(front)

    month = (await adam.put("/v1/budget", json={"tokens": 1, "usd": None})).json()

    assert (month["limits"], month["spent"]["tokens"]) == ({"tokens": 1, "usd": None}, 9)


async def test_a_budget_can_be_lifted(adam: AsyncClient) -> None:
    await adam.put("/v1/budget", json={"tokens": 1_000, "usd": "2.5"})

    lifted = await adam.put("/v1/budget", json=NO_LIMITS)

    assert (lifted.status_code, lifted.json()["limits"]) == (200, NO_LIMITS)


@pytest.mark.parametrize(
    "limits",
    [{"tokens": 1, "usd": None}, {"tokens": 10**15, "usd": 0.5}, {"tokens": None, "usd": "999999.999999"}],
)
async def test_the_last_allowed_value_is_taken(adam: AsyncClient, limits: dict[str, Any]) -> None:
    assert (await adam.put("/v1/budget", json=limits)).status_code == 200


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({}, ["/tokens", "/usd"]),
        ({"tokens": 1}, ["/usd"]),
        ({"usd": "1"}, ["/tokens"]),
        ({"tokens": 0, "usd": None}, ["/tokens"]),
        ({"tokens": -1, "usd": None}, ["/tokens"]),
        ({"tokens": 10**15 + 1, "usd": None}, ["/tokens"]),
        ({"tokens": "5", "usd": None}, ["/tokens"]),
        ({"tokens": True, "usd": None}, ["/tokens"]),
        ({"tokens": 1.5, "usd": None}, ["/tokens"]),
        ({"tokens": None, "usd": "0"}, ["/usd"]),
        ({"tokens": None, "usd": "-1"}, ["/usd"]),
        ({"tokens": None, "usd": "1000000"}, ["/usd"]),
        ({"tokens": None, "usd": "0.0000001"}, ["/usd"]),
        ({"tokens": None, "usd": "NaN"}, ["/usd"]),
        ({"tokens": None, "usd": True}, ["/usd"]),
        ({"tokens": None, "usd": "none"}, ["/usd"]),
        ({"tokens": None, "usd": None, "steps": 3}, [""]),
        ({"tokens": None, "usd": None, "tenant": "globex"}, [""]),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_limits_that_cannot_be_taken_change_nothing(
    front: Front, adam: AsyncClient, limits: dict[str, Any], named: list[str]
) -> None:
    response = await adam.put("/v1/budget", json=limits)

    assert pointers(response) == named
    assert (await adam.get("/v1/budget")).json()["limits"] == NO_LIMITS
    assert await front.scene.count("audit_log") == 0
