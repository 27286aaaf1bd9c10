"""Our own programs as children: the API, the relay and the workers."""

import sys
from collections.abc import Iterable, Mapping
from signal import Signals

from agentjobs.stack.children import ChildSpec, Probe
from agentjobs.stack.options import StackOptions
from agentjobs.stack.ports import LOOPBACK, steady_ports
from agentjobs.stack.probes import http_answer, log_line

# A worker may finish the activities it holds; what it cannot finish is tried again by the next one.
WORKER_GRACE_SECONDS = 15.0

METRICS = "AGENTJOBS_METRICS_ADDRESS"


def agentjobs_programs(options: StackOptions, environment: Mapping[str, str]) -> list[ChildSpec]:
    """Every program of the stack, in the order of stack.json."""
    relay_port, *worker_ports = steady_ports(1 + options.workers)
    return [
        _program("api", "agentjobs.api", environment, http_answer(f"{options.api_url}/readyz")),
        _program("relay", "agentjobs.outbox", _measured(environment, relay_port), log_line("relay_started")),
        *(
            _program(f"worker-{number}", "worker", _measured(environment, port), log_line("worker_started"))
            for number, port in enumerate(worker_ports, start=1)
        ),
    ]


def metrics_of(programs: Iterable[ChildSpec], options: StackOptions) -> dict[str, str]:
    """Where the figures of each program are."""
    addresses = {one.name: one.environment[METRICS] for one in programs if METRICS in one.environment}
    own = {name: f"http://{address}/metrics" for name, address in addresses.items()}
    return {"api": f"{options.api_url}/metrics", **own}


def _measured(environment: Mapping[str, str], port: int) -> dict[str, str]:
    return {**environment, METRICS: f"{LOOPBACK}:{port}"}


def _program(name: str, module: str, environment: Mapping[str, str], ready: Probe) -> ChildSpec:
    return ChildSpec(
        name=name,
        # -P: a worker.py in the user's own working directory must not be taken for ours.
        argv=(sys.executable, "-P", "-m", module),
        environment=environment,
        ready=ready,
        stop_signal=Signals.SIGTERM,
        grace_seconds=WORKER_GRACE_SECONDS,
    )
