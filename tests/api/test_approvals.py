"""Approvals over HTTP: seen with the tool and its arguments, decided once, by a reviewer of the tenant."""

from typing import Any

import pytest
from httpx import AsyncClient, Response

from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.keys import fingerprint_of_call, step_key
from agentjobs.ledger.approvals import WantedCall
from tests.api.front import UNKNOWN, Front
from tests.fakes import TICKET
from tests.ledger.scene import CREATE_TICKET

PRINT = fingerprint_of_call("create_ticket", {**TICKET})
APPROVE = {"decision": "approve", "note": "as agreed"}


async def waiting(front: Front, seconds: float = 600, **accepted: Any) -> str:
    """A job whose ticket waits for an approval."""
    job_id = await front.scene.running(**accepted)
    reply = {"decision": {"tool": "create_ticket", "arguments": TICKET}}
    model = {"kind": EffectKind.MODEL, "name": "model", "effect_class": EffectClass.READ_ONLY}
    await front.scene.done(job_id, "step-1.model", reply, **model)
    call = WantedCall(
        job_id=job_id,
        key=step_key(job_id, CREATE_TICKET),
        step=CREATE_TICKET,
        tool="create_ticket",
        fingerprint=PRINT,
        seconds=seconds,
    )
    await front.ledger.approvals.ask(call)
    return job_id


def kind(answer: Response) -> str:
    """Of a problem."""
    return str(answer.json()["type"]).rpartition(":")[2]


def path_of(job_id: str, step: str = CREATE_TICKET) -> str:
    """Where it is decided."""
    return f"/v1/jobs/{job_id}/approvals/{step}"


async def test_a_reviewer_sees_just_what_would_be_done(front: Front, rita: AsyncClient, ann: AsyncClient) -> None:
    job_id = await waiting(front)

    listed = (await rita.get("/v1/approvals")).json()["items"]
    own = (await ann.get(f"/v1/jobs/{job_id}/approvals")).json()["items"]
    job = (await ann.get(f"/v1/jobs/{job_id}")).json()

    assert listed == own
    assert (listed[0]["tool"], listed[0]["arguments"], listed[0]["fingerprint"]) == (
        "create_ticket",
        TICKET,
        PRINT,
    )
    assert (listed[0]["state"], listed[0]["is_open"]) == ("requested", True)
    assert job["state"] == "waiting_approval"


async def test_the_decision_is_recorded_audited_and_on_its_way(front: Front, rita: AsyncClient) -> None:
    job_id = await waiting(front)

    answer = await rita.post(path_of(job_id), json={**APPROVE, "fingerprint": PRINT})

    audited = await front.scene.rows("SELECT actor, action, target, note FROM audit_log WHERE action = 'approve'")
    assert (answer.status_code, answer.json()["state"], answer.json()["decided_by"]) == (202, "approved", "rita")
    assert audited == [{"actor": "rita", "action": "approve", "target": job_id, "note": "as agreed"}]
    assert "approval_decided" in await front.scene.topics()
    assert (await rita.get("/v1/approvals")).json()["items"] == []


async def test_the_first_decision_holds(front: Front, rita: AsyncClient) -> None:
    job_id = await waiting(front)
    await rita.post(path_of(job_id), json={"decision": "reject", "note": "no"})

    again = await rita.post(path_of(job_id), json={"decision": "reject", "note": "no"})
    other = await rita.post(path_of(job_id), json=APPROVE)

    assert (again.status_code, again.json()["state"]) == (202, "rejected")
    assert (other.status_code, kind(other)) == (409, "approval_not_open")


async def test_a_decision_on_other_arguments_is_refused(front: Front, rita: AsyncClient) -> None:
    job_id = await waiting(front)

    answer = await rita.post(path_of(job_id), json={**APPROVE, "fingerprint": "0" * 64})

    assert (answer.status_code, kind(answer)) == (409, "other_call")
    assert (await rita.get("/v1/approvals")).json()["items"][0]["state"] == "requested"


async def test_one_that_comes_too_late_is_refused(front: Front, rita: AsyncClient) -> None:
    job_id = await waiting(front)
    await front.scene.execute("UPDATE approvals SET expires_at = now() - interval '1 second'")

    answer = await rita.post(path_of(job_id), json=APPROVE)

    assert (answer.status_code, kind(answer)) == (409, "approval_not_open")
    assert "expired" in answer.json()["detail"]


async def test_one_on_a_job_that_is_being_cancelled_is_refused(
    front: Front, rita: AsyncClient, ann: AsyncClient
) -> None:
    job_id = await waiting(front)
    await ann.post(f"/v1/jobs/{job_id}/cancel")

    answer = await rita.post(path_of(job_id), json=APPROVE)

    assert (answer.status_code, kind(answer)) == (409, "approval_not_open")


@pytest.mark.parametrize("step", ["step-9.create_ticket", "plan", "a%00b", "x" * 101, "%2e%2e"])
async def test_a_step_that_asks_for_nothing_is_not_found(front: Front, rita: AsyncClient, step: str) -> None:
    job_id = await waiting(front)

    answer = await rita.post(path_of(job_id, step), json=APPROVE)

    assert answer.status_code == 404


async def test_whoever_submits_does_not_decide(front: Front, ann: AsyncClient) -> None:
    job_id = await waiting(front)

    answers = [await ann.post(path_of(job_id), json=APPROVE), await ann.get("/v1/approvals")]

    assert [answer.status_code for answer in answers] == [403, 403]


async def test_another_tenant_finds_nothing(front: Front) -> None:
    job_id = await waiting(front)
    stranger = front.of("gus")

    decided = await stranger.post(path_of(job_id), json=APPROVE)
    unknown = await stranger.post(path_of(UNKNOWN), json=APPROVE)
    listed = await stranger.get("/v1/approvals")

    assert decided.status_code == unknown.status_code == 404
    assert decided.json() | {"instance": None} == unknown.json() | {"instance": None}
    assert listed.json()["items"] == []
