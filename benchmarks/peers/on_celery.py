"""Celery on Redis: a job is one task, or a chain of them.

docs.celeryq.dev: Tasks (acks_late), Optimizing (prefetch), Redis (visibility timeout), Canvas (chains).
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from celery import Celery, chain
from celery.signals import worker_ready

from benchmarks.peers import steps
from benchmarks.peers.system import Job

URL = os.environ["BENCH_REDIS_URL"]
app = Celery("bench", broker=URL, backend=URL)
app.conf.task_default_queue = os.environ["BENCH_QUEUE"]
match os.environ["BENCH_CELERY"]:
    case "acks_late":
        app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1)
    case "tuned":  # what is lost comes back after seconds, and so does a task that takes longer
        app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1)
        app.conf.broker_transport_options = {
            "visibility_timeout": 10,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
        }


@worker_ready.connect
def told(**_: object) -> None:
    """The word that the benchmark waits for."""
    print("ready", flush=True)  # noqa: T201


@app.task
def plan(job_id: str) -> None:
    """First."""
    steps.plan(job_id)


@app.task
def call_model(job_id: str, step: int, seconds: float) -> None:
    """One call."""
    steps.call_model(job_id, step, seconds)


@app.task
def open_ticket(job_id: str) -> None:
    """Last."""
    steps.open_ticket(job_id)


whole = app.task(steps.whole)


class Client:
    """Sends tasks, and looks for their results."""

    async def submit(self, job: Job) -> None:
        """It is in Redis."""
        if os.environ.get("BENCH_CHAIN") != "1":
            whole.apply_async((job.id, job.steps, job.seconds), task_id=job.id)
            return
        calls = [call_model.si(job.id, step, job.seconds) for step in range(job.steps)]
        chain(plan.si(job.id), *calls, open_ticket.si(job.id).set(task_id=job.id)).apply_async()

    async def is_over(self, job_id: str) -> bool:
        """By its result's state."""
        state = app.AsyncResult(job_id).state
        if state in {"FAILURE", "REVOKED"}:
            raise RuntimeError(f"{job_id}: {state}")
        return bool(state == "SUCCESS")

    async def until_over(self, job_id: str) -> None:
        """The backend tells when it is there."""
        app.AsyncResult(job_id).get(timeout=60)


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """Of this application."""
    yield Client()
