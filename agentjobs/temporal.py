"""Everything about Temporal that several processes share: the one way to connect, to run workflows, and the
names that are part of the public contract.
"""

import asyncio
import logging
from typing import Any, Final

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.sdk.v1 import EnhancedStackTrace, WorkflowMetadata
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, KeepAliveConfig
from temporalio.common import MetricMeter, SearchAttributeKey
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    BinaryNullPayloadConverter,
    CompositePayloadConverter,
    DataConverter,
    JSONProtoPayloadConverter,
)
from temporalio.envconfig import ClientConfig
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from agentjobs.settings import StartError
from agentjobs.tracing.spans import is_on
from agentjobs.tracing.temporal import Tracing

AGENT_JOB: Final = "AgentJob"
DEAD_LETTER_DESK: Final = "DeadLetterDesk"
BULK_REDRIVE: Final = "BulkRedrive"

JOB_STATE: Final = SearchAttributeKey.for_keyword("JobState")
TENANT: Final = SearchAttributeKey.for_keyword("Tenant")
AGENT: Final = SearchAttributeKey.for_keyword("Agent")
DEAD_REASON: Final = SearchAttributeKey.for_keyword("DeadReason")
RETRY_WAIT_UNTIL: Final = SearchAttributeKey.for_datetime("RetryWaitUntil")
SEARCH_ATTRIBUTES: Final = (JOB_STATE, TENANT, AGENT, DEAD_REASON, RETRY_WAIT_UNTIL)


def kind_of(key: SearchAttributeKey[Any]) -> str:
    """The type of a search attribute as the Temporal command line names it."""
    return "Datetime" if key is RETRY_WAIT_UNTIL else "Keyword"


DEFAULT_TARGET: Final = "127.0.0.1:7233"
CONNECT_SECONDS: Final = 15

KEEP_ALIVE: Final = KeepAliveConfig(interval_millis=15_000, timeout_millis=10_000)
"""A connection whose other end is gone without a word is given up after 25 s. (The SDK's own values make 45; a
server refuses clients that ask more often than every 10.)
"""

WAIT_BOUNDS: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
"""In seconds; a wait that another side asks for may be an hour."""


class AnswersOfTheSdk(JSONProtoPayloadConverter):
    """What a workflow tells the Temporal UI by itself: current details, its stack. Read only where declared."""

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        """Raises RuntimeError where another form is declared."""
        if type_hint not in {WorkflowMetadata, EnhancedStackTrace}:
            raise RuntimeError("a protobuf message where none is declared")
        return super().from_payload(payload, type_hint)


class OnlyJson(CompositePayloadConverter):
    """What workflows and activities are given: nothing, or JSON of the declared form.

    The SDK's own converter also takes raw bytes, whatever form is declared, and protobuf messages: a payload that
    somebody planted would get past the models.
    """

    def __init__(self) -> None:
        super().__init__(BinaryNullPayloadConverter(), AnswersOfTheSdk(), PydanticJSONPlainPayloadConverter())


DATA_CONVERTER: Final = DataConverter(payload_converter_class=OnlyJson)


async def connect(metrics_address: str | None = None) -> Client:
    """Connect by temporalio.envconfig (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TLS, API key, TOML profile).

    metrics_address: IP:PORT at which Prometheus finds this process's figures, if it is to find any.

    Raises StartError when the server does not answer within CONNECT_SECONDS, or nobody can listen at that address.
    """
    config = ClientConfig.load_client_connect_config()
    target = config.setdefault("target_host", DEFAULT_TARGET)
    runtime = _runtime(metrics_address)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            client = await Client.connect(
                **config,
                data_converter=DATA_CONVERTER,
                runtime=runtime,
                interceptors=tracing_interceptors(),
                keep_alive_config=KEEP_ALIVE,
            )
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
            return client
    except RPCError as error:
        why = f"Temporal at {target} refuses the namespace ({error.status.name}); check TEMPORAL_NAMESPACE"
        raise StartError(why) from None
    except (RuntimeError, TimeoutError):
        raise StartError(f"no Temporal server answers at {target}; check TEMPORAL_ADDRESS") from None


def tracing_interceptors() -> list[Tracing]:
    """What a client needs for traces: nothing in a process that tells of none."""
    return [Tracing()] if is_on() else []


def meter_of(client: Client) -> MetricMeter:
    """For figures of our own at the address of the SDK's."""
    runtime = client.service_client.config.runtime
    return MetricMeter.noop if runtime is None else runtime.metric_meter


def _runtime(metrics_address: str | None) -> Runtime:
    # The core writes coloured text to stderr by itself; forwarded, its records take the form of all others.
    levels = TelemetryFilter(core_level="WARN", other_level="ERROR")
    logs = LoggingConfig(filter=levels, forwarding=forwarded_logs())
    try:
        return Runtime(telemetry=TelemetryConfig(logging=logs, metrics=_metrics(metrics_address)))
    except ValueError:
        why = f"cannot listen on {metrics_address}; set AGENTJOBS_METRICS_ADDRESS to a free IP:PORT"
        raise StartError(why) from None


def _metrics(address: str | None) -> PrometheusConfig | None:
    if address is None:
        return None
    return PrometheusConfig(
        bind_address=address,
        counters_total_suffix=True,  # Prometheus' own conventions, as in the API's figures
        unit_suffix=True,
        durations_as_seconds=True,
        histogram_bucket_overrides={"agentjobs_wait": WAIT_BOUNDS},
    )


def forwarded_logs() -> LogForwardingConfig:
    """The core's own log. Without its fields: a failure among them has the text of an exception, which may quote
    what a user wrote.
    """
    return LogForwardingConfig(logger=logging.getLogger("temporalio.core"), append_log_fields_to_message=False)


async def register_search_attributes(client: Client) -> None:
    """Make our search attributes known to the namespace: a start that names an unknown one is refused.

    Raises RPCError where the server lets nobody (Temporal Cloud: add them once in its own console).
    """
    namespace = client.namespace
    known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
    missing = [key for key in SEARCH_ATTRIBUTES if key.name not in known.custom_attributes]
    if missing:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=namespace,
                search_attributes={
                    key.name: IndexedValueType.ValueType(key.indexed_value_type) for key in missing
                },
            )
        )


def workflow_runner(*, guarded: bool) -> WorkflowRunner:
    """How workflows are run. guarded: in the sandbox, as in all tests and replays. Elsewhere a worker does
    without: it would spend as much on the sandbox as on jobs (docs/adr/0019-fast-lane.md).

    Exactly these packages pass through, both or neither: reloaded for each run they would cost 5 ms, and one
    side would hold other copies of the same classes than the other. What passes through is not guarded, so the
    domain is kept pure by lint. `workflows` itself never passes: its isolation is what the sandbox is for.
    """
    if not guarded:
        return UnsandboxedWorkflowRunner()
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules("agentjobs", "activities")
    )
