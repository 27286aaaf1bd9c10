"""Switched on by OpenTelemetry's own variables: there is none of ours.

With OTEL_EXPORTER_OTLP_ENDPOINT (or ..._TRACES_ENDPOINT) spans are sent there, by OTLP over HTTP; without it, or
with OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER=none, there is no thread and nothing is kept. The SDK itself reads
the rest: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_EXPORTER_OTLP_*.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from agentjobs.settings import SettingsError

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


@contextmanager
def traced(environment: Mapping[str, str], name: str) -> Iterator[None]:
    """Trace while the block runs, if the variables ask for it; at its end, send what is left, for moments.

    name: of this process among ours. Raises SettingsError for a protocol that is not spoken here.
    """
    if not _is_wanted(environment):
        yield
        return
    _require_http(environment)
    # Imported here: who does not trace need not spend the time and the memory.
    from agentjobs.tracing.exporting import begin, end

    provider = begin(environment, name)
    try:
        yield
    finally:
        end(provider)


def _is_wanted(environment: Mapping[str, str]) -> bool:
    is_disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    is_none = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"
    return any(environment.get(one, "").strip() for one in _ENDPOINTS) and not is_disabled and not is_none


def _require_http(environment: Mapping[str, str]) -> None:
    spoken = next((one for one in _PROTOCOLS if environment.get(one, "").strip()), None)
    if spoken is not None and environment[spoken].strip() != "http/protobuf":
        raise SettingsError(f"{spoken}: only http/protobuf is spoken here, at port 4318 as a rule")
