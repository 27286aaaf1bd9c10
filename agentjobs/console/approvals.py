"""A reviewer's word on a call that waits for one."""

from fastapi import APIRouter
from starlette.responses import Response

from agentjobs.api import approvals as api
from agentjobs.api.parts import LedgerPart
from agentjobs.console.choices import chosen
from agentjobs.console.forms import given
from agentjobs.console.notices import Notice, done
from agentjobs.console.places import HOME
from agentjobs.console.route import PageRoute, Reviewing, Sent
from agentjobs.domain.approvals import Decision

router = APIRouter(prefix="/jobs", route_class=PageRoute)


@router.post("/{id}/approvals/{step}")
async def decide(id: str, step: str, form: Sent, visit: Reviewing, ledger: LedgerPart) -> Response:
    """About the very call that the page showed: the form names its fingerprint."""
    decision = chosen(Decision, form.text("decision") or "", "decision")
    word = given(
        api.GivenDecision,
        {"decision": decision, "note": form.text("note"), "fingerprint": form.text("fingerprint")},
    )
    await api.decide(id, step, word, visit.caller, ledger)
    return done(f"{HOME}jobs/{id}", Notice.APPROVED if decision is Decision.APPROVE else Notice.REJECTED)
