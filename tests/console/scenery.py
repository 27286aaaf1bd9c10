"""A tenant with something to look at on every page: jobs in all states, two weeks of deaths, bulk redrives."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import uuid4

from agentjobs.api.redrives_given import NewBulkRedrive
from agentjobs.domain import keys
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.failures import Category, failure
from agentjobs.domain.job import Budget
from agentjobs.domain.states import JobState
from agentjobs.domain.webhooks import JOB_EVENTS, DisabledBecause
from agentjobs.ledger.approvals import WantedCall
from agentjobs.ledger.identity import Role
from agentjobs.ledger.redrive_records import LetterFilter, RedriveOrder
from agentjobs.webhooks.signing import new_secret
from tests.ledger.scene import MODEL_CALL, Scene

MODEL = "openai:gpt-5-mini"
SEARCH, TICKET = "step-1.search_tickets", "step-2.create_ticket"
PLAN: dict[str, Any] = {
    "language": "en",
    "category": "billing",
    "urgency": "normal",
    "subject": "Charged twice in May",
    "steps": ["search_tickets", "create_ticket"],
}
RECEIPT = {"id": "T-1042", "url": "https://tickets.example.org/T-1042"}
ANSWER = (
    "I am sorry about the double charge. I have opened ticket T-1042 for our billing team, with the two dates "
    "that you named.\n\nThey will look at both charges and write to you."
)
REASONS = (
    (Category.ACCESS_DENIED, "the grant tickets:create is missing", 9),
    (Category.RETRIES_EXHAUSTED, "the tracker answered 503 five times", 6),
    (Category.INVALID_INPUT, "the tracker refused the ticket: the subject is empty", 3),
    (Category.BUDGET_EXCEEDED, "200,000 tokens are spent, and the next call may need 16,000", 2),
)


@dataclass(frozen=True)
class Scenery:
    """Puts it all into the tenant of a scene."""

    scene: Scene
    most: int = 12
    """Of each kind, where there are many."""

    async def put_up(self) -> dict[str, str]:
        """Returns the ids of what is worth a look, by its name."""
        shown = {"succeeded": await self.succeeded()}
        for _ in range(self.most - 1):
            await self.succeeded()
        shown["retry_wait"] = await self.waiting()
        shown["running"] = await self.writing()
        shown["approval"] = await self.asked()
        shown["dead"] = (await self.dead())[0]
        await self.accepted()
        cancelled = await self.accepted()
        await self.scene.move(cancelled, JobState.CANCELLED)
        shown["redrive"] = await self.redrive()
        return shown

    async def administered(self) -> dict[str, str]:
        """Keys, grants, another tenant, webhooks of which one is disabled, and erasures."""
        identity, tenant = self.scene.ledger.identity, self.scene.tenant
        await identity.create_tenant("globex")
        await self.scene.ledger.budgets.set("globex", tokens=None, usd=Decimal(150), actor="gus")
        for user, roles in (("ann", {Role.SUBMIT}), ("ben", {Role.SUBMIT}), ("rolf", {Role.REVIEW, Role.SUBMIT})):
            _, key = await identity.create_key(tenant, user, frozenset(roles))
            await identity.add_grant(tenant, user, "tickets:create", granted_by="rita")
        await identity.revoke_key(tenant, key.id)
        gone, kept = [
            await self._webhook(url) for url in ("https://old.example.com/", "https://hooks.example.com/jobs")
        ]
        async with self.scene.ledger.database.transaction() as connection:
            await self.scene.ledger.webhooks.disable(gone, DisabledBecause.GONE, connection)
        for _ in range(3):
            await self.dead_once()
        await self.scene.execute(
            "UPDATE webhook_deliveries SET state = 'failed', next_attempt_at = NULL, attempts = 10, "
            "last_status = 503, last_error = 'refused' WHERE id = (SELECT min(id) FROM webhook_deliveries)"
        )
        ended = await self.accepted()
        await self.scene.move(ended, JobState.CANCELLED)
        await self.scene.ledger.erasures.of_job(tenant, ended, actor="rita")
        await self.scene.ledger.erasures.of_user(tenant, "ann", actor="rita")
        return {"webhook": kept}

    async def dead_once(self) -> str:
        """A job that died; its id."""
        job_id = await self.planned()
        died = failure(Category.ACCESS_DENIED, "the grant tickets:create is missing", TICKET)
        await self.scene.ledger.outcomes.bury(job_id, generation=0, failure=died, worker="worker-1")
        return job_id

    async def _webhook(self, url: str) -> str:
        webhook = await self.scene.ledger.webhooks.add(
            self.scene.tenant,
            url=url,
            types=JOB_EVENTS,
            description="the support team's channel",
            secret=new_secret(),
            actor="rita",
        )
        return webhook.id

    async def accepted(self) -> str:
        """A job; its id."""
        return (await self.scene.accept(id=str(uuid4()), budget=Budget(tokens=200_000, usd=Decimal("0.50")))).id

    async def planned(self) -> str:
        """A job with its plan; its id."""
        job_id = await self.accepted()
        await self.model(job_id, keys.PLAN, PLAN, Usage(tokens_in=812, tokens_out=96, usd=Decimal("0.000395")))
        await self.scene.done(job_id, SEARCH, {"tickets": []}, name="search_tickets", effect_class="read_only")
        return job_id

    async def model(self, job_id: str, step: str, reply: dict[str, Any], usage: Usage) -> None:
        """A call that a model answered."""
        intent = self.scene.intent(job_id, step, reserve=Reservation(tokens=16_000), **MODEL_CALL)
        begun = await self.scene.ledger.effects.begin(intent)
        assert begun.attempt_id is not None
        await self.scene.ledger.effects.complete(intent, begun.attempt_id, reply, usage=usage, model=MODEL)

    async def ticket(self, job_id: str) -> None:
        """The ticket, at the second try."""
        first = await self.scene.begin_attempt(job_id, TICKET)
        away = failure(Category.UNAVAILABLE, "the tracker answered 503", TICKET)
        await self.scene.ledger.effects.fail(first, away, wait_seconds=4.0, release=True)
        await self.scene.done(job_id, TICKET, RECEIPT, attempt=2)

    async def succeeded(self) -> str:
        """A job from its request to its ticket; its id."""
        job_id = await self.planned()
        await self.ticket(job_id)
        usage = Usage(tokens_in=1_460, tokens_out=188, usd=Decimal("0.000741"))
        await self.model(job_id, keys.ANSWER, {"text": ANSWER}, usage)
        await self.scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
        return job_id

    async def waiting(self) -> str:
        """A job that waits for its third attempt; its id."""
        job_id = await self.planned()
        for attempt, wait in ((1, 2.0), (2, 300.0)):
            begun = await self.scene.begin_attempt(job_id, TICKET, attempt=attempt)
            away = failure(Category.UNAVAILABLE, "the tracker answered 503", TICKET)
            await self.scene.ledger.effects.fail(begun, away, wait_seconds=wait, release=True)
        return job_id

    async def writing(self) -> str:
        """A job whose answer is being written; its id."""
        job_id = await self.planned()
        await self.ticket(job_id)
        intent = self.scene.intent(job_id, keys.ANSWER, **MODEL_CALL)
        begun = await self.scene.ledger.effects.begin(intent)
        assert begun.attempt_id is not None
        text = ANSWER[: len(ANSWER) // 2]
        await self.scene.ledger.effects.write_text(intent, begun.attempt_id, text)
        return job_id

    async def asked(self) -> str:
        """A job that waits for a person; its id."""
        job_id = await self.planned()
        arguments: dict[str, str | int] = {"subject": "Charged twice in May", "category": "billing"}
        reply: dict[str, Any] = {"decision": {"tool": "create_ticket", "arguments": arguments}}
        await self.model(job_id, "step-2.model", reply, Usage(tokens_in=500, tokens_out=40))
        print_of = keys.fingerprint_of_call("create_ticket", dict(arguments))
        key = keys.step_key(job_id, TICKET)
        wanted = WantedCall(
            job_id=job_id, key=key, step=TICKET, tool="create_ticket", fingerprint=print_of, seconds=86_400
        )
        await self.scene.ledger.approvals.ask(wanted)
        return job_id

    async def dead(self) -> list[str]:
        """Letters of several reasons, whose deaths lie days apart; their ids."""
        letters = []
        for reason, message, count in REASONS:
            for number in range(min(count, self.most)):
                job_id = await self.planned()
                died = failure(reason, message, TICKET)
                await self.scene.ledger.outcomes.bury(job_id, generation=0, failure=died, worker="worker-1")
                letters.append(job_id)
                await self._backdate(job_id, hours=(number * number * 7) % 290 + len(letters))
        return letters

    async def redrive(self) -> str:
        """A bulk redrive that is under way; its id."""
        new = NewBulkRedrive.model_validate({"filter": {"reason": "retries_exhausted"}, "note": "x"})
        order = RedriveOrder(
            id=str(uuid4()),
            tenant=self.scene.tenant,
            created_by="rita",
            note="the tracker is back",
            filter=LetterFilter(reason="retries_exhausted"),
            key=None,
            fingerprint=keys.fingerprint(new.model_dump(mode="json")),
            **new.model_dump(exclude={"filter", "note", "dry_run"}),
        )
        await self.scene.ledger.redrives.accept(order, approval_above=100)
        await self.scene.ledger.redrives.ask(order.id, up_to=1)
        return order.id

    async def _backdate(self, job_id: str, hours: int) -> None:
        for table, column in (("dead_letters", "id"), ("deaths", "job_id")):
            statement = f"UPDATE {table} SET died_at = died_at - make_interval(hours => $2) WHERE {column} = $1"
            await self.scene.execute(statement, job_id, hours)
