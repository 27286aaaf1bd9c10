"""The worker: composition root. Settings -> ledger, provider, tools -> one Temporal worker.

Runs against any Temporal that temporalio.envconfig can name (TEMPORAL_ADDRESS, TLS, API key, profile).
"""

import os
import secrets
import socket
import sys
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import structlog
from temporalio.client import Client
from temporalio.worker import Worker

from activities.alerts import DeskWork
from activities.asking import Access
from activities.bulk import BulkWork
from activities.executor import Executor, Present
from activities.model_calls import ModelCalls
from activities.records import Records
from activities.run_tool import ToolRuns
from activities.short_steps import ShortStepRuns
from agentjobs.agents.catalogue import built_in_agents
from agentjobs.agents.spec import AgentRegistry
from agentjobs.alerts.catalogue import age_policy_of, sinks_of
from agentjobs.alerts.sink import Sink
from agentjobs.domain.admission import Limits
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.ledger import Ledger
from agentjobs.presence import Presence
from agentjobs.processes import run_until_signalled, started
from agentjobs.providers.catalogue import provider_named
from agentjobs.providers.models import Models
from agentjobs.settings import Environment, Settings, SettingsError
from agentjobs.temporal import connect, workflow_runner
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.catalogue import tracker_of
from agentjobs.trackers.tracker import Tracker
from workflows.agent_job import AgentJob
from workflows.bulk_redrive import BulkRedrive
from workflows.dead_letter_desk import DeadLetterDesk
from workflows.desk_delivery import AlertDelivery

log = structlog.get_logger()

# Longer than the longest model call (workflows/options.py): a deploy lets calls in flight finish, since an
# answer that is cut off is paid for and lost.
GRACE = timedelta(seconds=200)

# A killed worker's cached workflows go to another one after this long; the default is ten seconds.
STICKY_TIMEOUT = timedelta(seconds=2)

# The SDK would hold heartbeats back for 80 % of their timeout, and a cancel with them.
HEARTBEAT_THROTTLE = timedelta(seconds=1)

POLLERS = 5
"""Long polls of each kind: more show no gain on the servers measured, and a frozen worker swallows one task
with each poll that it has open."""


def build_worker(
    client: Client,
    ledger: Ledger,
    settings: Settings,
    *,
    present: Present,
    identity: str,
    models: Models,
    agents: AgentRegistry,
    tools: ToolRegistry,
    sinks: Sequence[Sink] = (),
) -> Worker:
    """The worker over its collaborators. Tests build the same one with their own agents and tools."""
    failpoints = Failpoints.parse(settings.failpoints)
    executor = Executor(ledger, failpoints, present)
    access = Access(models, ledger, limits_of(settings))
    model_calls = ModelCalls(executor, access, agents, tools)
    tool_runs = ToolRuns(executor, ledger, agents, tools)
    records = Records(ledger, failpoints, present)
    short_steps = ShortStepRuns(model_calls, tool_runs, records)
    bulk_work = BulkWork(ledger)
    desk_work = DeskWork(ledger, sinks, age_policy_of(settings))
    return Worker(
        client,
        task_queue=settings.task_queue,
        identity=identity,
        workflows=[AgentJob, DeadLetterDesk, AlertDelivery, BulkRedrive],
        activities=[
            model_calls.plan,
            model_calls.call_model,
            model_calls.write_answer,
            tool_runs.run_tool,
            tool_runs.find_effects,
            tool_runs.undo_tool,
            short_steps.short_steps,
            records.ask_approval,
            records.record_outcome,
            records.record_death,
            records.record_redrive,
            desk_work.raise_alert,
            desk_work.raise_alerts,
            desk_work.look_at_letters,
            desk_work.deliver_alert,
            bulk_work.look_at_redrive,
            bulk_work.ask_letters,
            bulk_work.end_redrive,
        ],
        workflow_runner=workflow_runner(guarded=settings.environment is Environment.TEST),
        max_concurrent_activities=settings.worker_activities,
        max_concurrent_workflow_tasks=settings.worker_workflow_tasks,
        max_cached_workflows=settings.worker_cached_workflows,
        max_concurrent_workflow_task_polls=POLLERS,
        max_concurrent_activity_task_polls=POLLERS,
        max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
        graceful_shutdown_timeout=GRACE,
    )


def limits_of(settings: Settings) -> Limits:
    """What each model may be asked, over all workers of the installation."""
    return Limits(
        requests_per_minute=settings.model_requests_per_minute,
        tokens_per_minute=settings.model_tokens_per_minute,
        calls_at_once=settings.model_calls_at_once,
    )


def tools_of(settings: Settings, tracker: Tracker) -> ToolRegistry:
    """The built-in tools. Raises SettingsError when an approval is asked for a tool that is not there."""
    try:
        return built_in_tools(tracker, settings.approval_seconds)
    except ValueError as error:
        raise SettingsError(f"AGENTJOBS_APPROVALS: {error}") from None


async def serve(settings: Settings) -> None:
    """Work until cancelled; then finish what is in flight, within GRACE."""
    models = Models(settings.models, partial(provider_named, background=settings.model_background))
    agents = built_in_agents()
    for names in agents.models():
        models.require(names)
    ledger = await Ledger.open(settings.dsn, size=settings.database_pool_size, application_name="agentjobs-worker")
    try:
        client = await connect(settings.metrics_address)
        # Unique over restarts: Temporal shows it, and a takeover tells a dead process from its successor by it.
        identity = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        async with (
            tracker_of(settings, ledger.tickets) as tracker,
            sinks_of(settings, ledger, tracker) as sinks,
            Presence(settings.dsn, ledger.workers, identity).held() as present,
        ):
            worker = build_worker(
                client,
                ledger,
                settings,
                present=present,
                identity=identity,
                models=models,
                agents=agents,
                tools=tools_of(settings, tracker),
                sinks=sinks,
            )
            log.info(
                "worker_started",
                model=settings.model,
                tracker=settings.tracker,
                sinks=["log", *(sink.name for sink in sinks)],
                task_queue=settings.task_queue,
            )
            await worker.run()
    finally:
        await models.aclose()
        await ledger.close()


if __name__ == "__main__":
    code = started("worker", lambda settings: run_until_signalled(serve(settings)))
    sys.stdout.flush()
    sys.stderr.flush()
    # The Temporal client may crash the interpreter while that is torn down, and an exit code must not lie
    # (sdk-python 300): everything is closed and flushed by now.
    os._exit(code)
