"""A process of ours as it is, with two more agents: the catalogue is part of the code, and has none like these.

python -m benchmarks.peers.our_process agentjobs.api | worker
"""

from __future__ import annotations

import runpy
import sys

from agentjobs.agents import catalogue
from agentjobs.agents.spec import AgentRegistry
from agentjobs.agents.support_triage import SUPPORT_TRIAGE

_ONCE = {"once": ("create_ticket",)}
MANY_STEPS = SUPPORT_TRIAGE.model_copy(update={"name": "many-steps", "max_steps": 50, **_ONCE})
NO_SEARCH = SUPPORT_TRIAGE.model_copy(update={"name": "no-search", "tools": ("create_ticket",), **_ONCE})


def with_ours() -> AgentRegistry:
    """What every release has, and those of the benchmark."""
    return AgentRegistry((SUPPORT_TRIAGE, MANY_STEPS, NO_SEARCH))


if __name__ == "__main__":
    catalogue.built_in_agents = with_ours
    runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
