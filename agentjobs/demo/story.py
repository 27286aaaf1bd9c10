"""What the demonstration does, and what it shows. Every claim it prints was looked up just before."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from rich.console import Console

from agentjobs.commands.answers import Attempt, DeadLetter, Job
from agentjobs.commands.client import Client
from agentjobs.commands.outside import Outside
from agentjobs.commands.patience import SUBMITTING
from agentjobs.commands.place import Place
from agentjobs.commands.request import JobRequest
from agentjobs.demo import load_requests
from agentjobs.demo.told import progress_line, results_table
from agentjobs.domain import keys
from agentjobs.domain.effects import EffectState
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.stack import Stack

PATIENCE_SECONDS = 60
TICKET_STEP = "step-2.create_ticket"
NEWCOMER = "newcomer"

T = TypeVar("T")


class StoryBroken(Exception):
    """Something did not happen as the story claims. The message says what."""


@dataclass(frozen=True)
class Submitted:
    """A request that was accepted."""

    job_id: str
    language: str


class Story:
    """Three acts over one running stack."""

    def __init__(self, console: Console, stack: Stack, ledger: Ledger) -> None:
        self._console = console
        self._stack = stack
        self._ledger = ledger
        self._owner = self._client(stack.info.api_key)
        self._reviewer = self._client(stack.info.admin_key)

    async def tell(self) -> None:
        """All of it."""
        submitted = await self._submit_all()
        await self._kill_the_worker(submitted)
        jobs = await self._follow(submitted)
        self._show(jobs, submitted)
        await self._death_and_redrive()

    async def _submit_all(self) -> list[Submitted]:
        self._title("1. Real requests, in several languages")
        submitted = []
        for request in load_requests():
            job = await asyncio.to_thread(
                self._owner.submit, JobRequest(text=request.text), request.id, SUBMITTING
            )
            submitted.append(Submitted(job.id, request.lang))
        again = await asyncio.to_thread(
            self._owner.submit, JobRequest(text=load_requests()[0].text), load_requests()[0].id, SUBMITTING
        )
        _hold(again.id == submitted[0].job_id, "the same Idempotency-Key made a second job")
        self._say(f"{len(submitted)} accepted (202). The first was sent twice with its key: still one job.")
        return submitted

    async def _kill_the_worker(self, submitted: Sequence[Submitted]) -> None:
        self._title("2. kill -9 between the ticket and its acknowledgement")
        job_id = await self._eventually(lambda: self._committed(submitted), "a committed ticket")
        pid = self._stack.info.pids["worker-1"]
        self._say(f"Job {job_id}: its ticket is committed; the worker (pid {pid}) has told nobody yet.")
        await self._stack.kill("worker-1")
        killed = monotonic()
        self._say("kill -9. Its database session is gone, so its work is handed on; a new worker is started.")
        await self._eventually(lambda: self._succeeded(job_id), "the job after the crash")
        took = monotonic() - killed
        tickets = await self._ledger.tickets.of_operation(keys.step_key(job_id, TICKET_STEP))
        _hold(len(tickets) == 1, f"there are {len(tickets)} tickets")
        new_pid = self._stack.info.pids["worker-1"]
        self._say(f"The new worker (pid {new_pid}) found the receipt: the job succeeded, with one ticket,")
        self._say(f"{took:.1f} s after the kill.")

    async def _committed(self, submitted: Sequence[Submitted]) -> str | None:
        for one in submitted:
            effect = await self._ledger.effects.read(keys.step_key(one.job_id, TICKET_STEP))
            if effect is not None and effect.state is EffectState.COMPLETED:
                job = await asyncio.to_thread(self._owner.job, one.job_id)
                if job.step == TICKET_STEP:
                    return one.job_id
        return None

    async def _succeeded(self, job_id: str) -> bool:
        return (await asyncio.to_thread(self._owner.job, job_id)).has_succeeded

    async def _follow(self, submitted: Sequence[Submitted]) -> list[Job]:
        jobs: list[Job] = []
        seen = ""

        async def all_ended() -> bool:
            nonlocal jobs, seen
            jobs = [await asyncio.to_thread(self._owner.job, one.job_id) for one in submitted]
            if (line := progress_line(jobs)) != seen:
                self._say(line)
                seen = line
            return all(job.has_ended for job in jobs)

        await self._eventually(all_ended, "all jobs to end")
        _hold(all(job.has_succeeded for job in jobs), "a job did not succeed")
        return jobs

    def _show(self, jobs: Sequence[Job], submitted: Sequence[Submitted]) -> None:
        self._title("What became of them")
        self._console.print(results_table(jobs, [one.language for one in submitted], self._console.width))
        self._say("In the Temporal UI (while the demo runs), for example:")
        self._say(f"  {jobs[0].links.get('temporal_ui')}")

    async def _death_and_redrive(self) -> None:
        self._title("3. A job dies, and a person brings it back")
        job_id = await self._submit_without_grant()
        letter = await self._eventually(lambda: self._letter(job_id), "the dead letter and its alert")
        self._say(f"Job {job_id} is dead: {letter.reason} at {letter.step}: {letter.message}.")
        self._say(f"Somebody was alerted at {letter.alerted_at:%H:%M:%S}. review id {letter.review_id}")
        await asyncio.to_thread(self._reviewer.add_grant, NEWCOMER, "tickets:create")
        self._say(f"The cause is corrected: {NEWCOMER} may create tickets now. Redrive:")
        await asyncio.to_thread(self._reviewer.redrive, job_id, "the grant was missing", "original")
        await self._eventually(lambda: self._redriven(job_id), "the redriven job")
        attempts = await asyncio.to_thread(self._reviewer.attempts, job_id)
        self._say(f"It succeeded. Its {len(attempts)} attempts, over both lives:")
        for attempt in attempts:
            self._say(f"  {attempt.step:<24} {attempt.outcome:<10} {attempt.category or ''}".rstrip())
        _hold(_each_succeeded_once(attempts), "a step was done twice")
        self._say("Each step succeeded once: what was done before the death was not done again.")

    async def _submit_without_grant(self) -> str:
        body = {"user": NEWCOMER, "roles": ["submit"]}
        key = await asyncio.to_thread(self._reviewer.create_key, body)
        request = JobRequest(text=load_requests()[-1].text)
        client = self._client(key.key or "")
        return (await asyncio.to_thread(client.submit, request, NEWCOMER, SUBMITTING)).id

    async def _letter(self, job_id: str) -> DeadLetter | None:
        job = await asyncio.to_thread(self._reviewer.job, job_id)
        if job.state != "dead":
            return None
        letter = await asyncio.to_thread(self._reviewer.dead_letter, job_id)
        return letter if letter.alerted_at is not None else None

    async def _redriven(self, job_id: str) -> bool:
        return (await asyncio.to_thread(self._reviewer.job, job_id)).has_succeeded

    async def _eventually(self, look: Callable[[], Awaitable[T | None]], what: str) -> T:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (found := await look()):  # noqa: ASYNC110 - what is waited for is in other processes
                    await asyncio.sleep(0.2)
                return found
        except TimeoutError:
            raise StoryBroken(f"waited {PATIENCE_SECONDS} s in vain for {what}") from None

    def _client(self, key: str) -> Client:
        return Client(Place(self._stack.info.api, key), Outside(), self._say)

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    def _title(self, text: str) -> None:
        self._console.print(f"\n{text}", style="bold")


def _each_succeeded_once(attempts: Sequence[Attempt]) -> bool:
    done = [attempt.step for attempt in attempts if attempt.outcome == "succeeded"]
    return len(done) == len(set(done))


def _hold(claim: bool, otherwise: str) -> None:
    if not claim:
        raise StoryBroken(otherwise)
