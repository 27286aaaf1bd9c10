"""Our own programs as children: the API, the relay and the workers."""

import sys
from collections.abc import Mapping
from signal import Signals

from agentjobs.stack.children import ChildSpec, Probe
from agentjobs.stack.options import StackOptions
from agentjobs.stack.probes import http_answer, log_line

# A worker may finish the activities it holds; what it cannot finish is tried again by the next one.
WORKER_GRACE_SECONDS = 15.0


def agentjobs_programs(options: StackOptions, environment: Mapping[str, str]) -> list[ChildSpec]:
    """Every program of the stack, in the order of stack.json."""
    return [
        _program("api", "agentjobs.api", environment, http_answer(f"{options.api_url}/readyz")),
        _program("relay", "agentjobs.outbox", environment, log_line("relay_started")),
        *(
            _program(f"worker-{number}", "worker", environment, log_line("worker_started"))
            for number in range(1, options.workers + 1)
        ),
    ]


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
