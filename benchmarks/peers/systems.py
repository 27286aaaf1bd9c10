"""Which systems there are, in which settings."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.peers.system import System

AT_ONCE = "100"
"""Jobs at once in the one worker process, as our own worker has it."""

OURS = System(
    name="agentjobs",
    module="benchmarks.peers.on_agentjobs",
    processes={"api": ("agentjobs.api",), "relay": ("agentjobs.outbox",), "worker": ("worker",)},
    ready={"api": "api_started", "relay": "relay_started", "worker": "worker_started"},
    packages=("temporalio", "asyncpg", "fastapi", "uvicorn", "pydantic"),
    documentation="README.md",
    settings={"BENCH_AGENT": "support-triage"},
    remarks="As `starter.py dev` sets it, quotas off. The built-in agent has eight steps, all in the fast lane"
    " with the offline model: plan, three model calls, a search, the ticket, the answer, the end.",
    is_peer=False,
)
WITH_OUR_AGENTS = {
    "api": ("benchmarks.peers.our_process", "agentjobs.api"),
    "relay": ("benchmarks.peers.our_process", "agentjobs.outbox"),
    "worker": ("benchmarks.peers.our_process", "worker"),
}
OURS_SHORT = replace(
    OURS,
    name="agentjobs-short",
    processes=WITH_OUR_AGENTS,
    settings={"BENCH_AGENT": "no-search"},
    remarks="An agent without the search: six steps.",
)
OURS_TWO = replace(
    OURS,
    name="agentjobs-2",
    processes={**OURS.processes, "worker-2": OURS.processes["worker"]},
    ready={**OURS.ready, "worker-2": OURS.ready["worker"]},
    remarks="Two worker processes.",
)
FLOOR = System(
    name="floor",
    module="benchmarks.peers.on_temporal",
    processes={"worker": ("benchmarks.peers.on_temporal",)},
    ready={"worker": "ready"},
    packages=("temporalio",),
    documentation="docs.temporal.io/develop/python: Core application, Failure detection",
    remarks="Three regular activities that do nothing; the tuned server; the sandbox as it comes.",
    is_peer=False,
)
CELERY = System(
    name="celery",
    module="benchmarks.peers.on_celery",
    processes={
        "worker": (
            *("celery", "-A", "benchmarks.peers.on_celery", "worker"),
            *("--pool", "threads", "--concurrency", AT_ONCE),
        )
    },
    ready={"worker": "ready"},
    packages=("celery", "kombu", "redis"),
    documentation="docs.celeryq.dev: Tasks, Optimizing, Using Redis, Canvas, Concurrency",
    settings={"BENCH_CELERY": "acks_late"},
    remarks="acks_late, reject_on_worker_lost, prefetch 1; one task.",
    needs_redis=True,
)
RQ = System(
    name="rq",
    module="benchmarks.peers.on_rq",
    processes={"worker": ("benchmarks.peers.rq_pool", "4")},
    ready={"worker": "*** Listening on"},
    packages=("rq", "redis"),
    documentation="python-rq.org/docs: Workers, Exceptions & Retries",
    remarks="A pool of four workers, each job in a process of its own; Retry(max=10).",
    needs_redis=True,
)
DRAMATIQ = System(
    name="dramatiq",
    module="benchmarks.peers.on_dramatiq",
    processes={
        "worker": ("dramatiq", "benchmarks.peers.on_dramatiq", "--processes", "1", "--threads", AT_ONCE),
    },
    ready={"worker": "is ready for action"},
    packages=("dramatiq", "redis"),
    documentation="dramatiq.io: Guide, Best practices, Reference (RedisBroker)",
    settings={"BENCH_DRAMATIQ": "plain"},
    needs_redis=True,
)
DBOS = System(
    name="dbos",
    module="benchmarks.peers.on_dbos",
    processes={"worker": ("benchmarks.peers.on_dbos",)},
    ready={"worker": "ready"},
    packages=("dbos", "psycopg", "sqlalchemy"),
    documentation="docs.dbos.dev/python: Workflows, Queues, DBOS Client, Workflow recovery",
    settings={"BENCH_DBOS_POLLING": "0.05"},
    remarks="The queue and the results polled every 50 ms.",
)
PROCRASTINATE = System(
    name="procrastinate",
    module="benchmarks.peers.on_procrastinate",
    processes={"worker": ("benchmarks.peers.on_procrastinate",)},
    ready={"worker": "ready"},
    packages=("procrastinate", "psycopg"),
    documentation="procrastinate.readthedocs.io: Quickstart, Retry stalled jobs",
    settings={"BENCH_PROCRASTINATE": "plain"},
    remarks="Stalled jobs are looked for every ten minutes, as the documentation's example does.",
)


def asking_the_model(system: System) -> System:
    """For jobs of many steps: ours asks the model that all share, by an agent that may take so many."""
    if system.module != OURS.module:
        return system
    settings = {**system.settings, "BENCH_AGENT": "many-steps", "AGENTJOBS_MODEL": "openai-chat:double"}
    return replace(system, processes=WITH_OUR_AGENTS, settings=settings)


def for_many(system: System, jobs: int) -> System:
    """With room for so many jobs at once in one worker process."""
    number = str(max(jobs, int(AT_ONCE)))
    room = {
        "BENCH_AT_ONCE": number,
        "AGENTJOBS_WORKER_ACTIVITIES": number,
        "AGENTJOBS_WORKER_CACHED_WORKFLOWS": number,
    }
    processes = {
        name: tuple(number if word == AT_ONCE else word for word in argv)
        for name, argv in system.processes.items()
    }
    return replace(system, processes=processes, settings={**system.settings, **room})


def floor_of(activities: int) -> System:
    """With another number of activities."""
    remarks = f"{activities} regular activities that do nothing."
    return replace(
        FLOOR, name=f"floor-{activities}", settings={"BENCH_ACTIVITIES": str(activities)}, remarks=remarks
    )


def _varied(system: System, name: str, remarks: str, **settings: str) -> System:
    return replace(system, name=name, settings={**system.settings, **settings}, remarks=remarks)


SYSTEMS = {
    system.name: system
    for system in (
        OURS,
        OURS_SHORT,
        OURS_TWO,
        FLOOR,
        _varied(FLOOR, "floor-unsandboxed", "The floor, without the workflow sandbox.", BENCH_SANDBOX="off"),
        floor_of(6),
        floor_of(8),
        _varied(
            FLOOR, "floor-ticket", "Three regular activities; the third inserts the ticket.", BENCH_TICKETS="1"
        ),
        _varied(
            FLOOR,
            "temporal",
            "start-to-close 60 s and no heartbeats, as samples have it",
            BENCH_TICKETS="1",
            BENCH_TIMEOUTS="plain",
        ),
        _varied(
            FLOOR,
            "temporal-tuned",
            "heartbeat and workflow task timeouts of 1 s, first retry after 0.1 s",
            BENCH_TICKETS="1",
            BENCH_TIMEOUTS="tuned",
        ),
        CELERY,
        _varied(CELERY, "celery-default", "As it comes: acknowledged before it runs.", BENCH_CELERY="default"),
        _varied(
            CELERY,
            "celery-chain",
            "As celery, a task for each step: what is lost in the middle goes on there.",
            BENCH_CHAIN="1",
        ),
        _varied(
            CELERY,
            "celery-tuned",
            "As celery-chain, with a visibility timeout of 10 s and a look for lost tasks every second.",
            BENCH_CELERY="tuned",
            BENCH_CHAIN="1",
        ),
        RQ,
        replace(
            RQ, name="rq-20", processes={"worker": ("benchmarks.peers.rq_pool", "20")}, remarks="A pool of 20."
        ),
        DRAMATIQ,
        _varied(
            DRAMATIQ,
            "dramatiq-tuned",
            "A heartbeat timeout of 5 s; one command in ten looks for dead workers.",
            BENCH_DRAMATIQ="tuned",
        ),
        DBOS,
        _varied(DBOS, "dbos-default", "As it comes: everything polled every second.", BENCH_DBOS_POLLING="1"),
        PROCRASTINATE,
        _varied(
            PROCRASTINATE,
            "procrastinate-tuned",
            "Heartbeats every second, stalled after three, looked for every second.",
            BENCH_PROCRASTINATE="tuned",
        ),
    )
}
