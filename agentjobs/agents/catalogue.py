"""The agents of this release."""

from agentjobs.agents.spec import AgentRegistry
from agentjobs.agents.support_triage import SUPPORT_TRIAGE


def built_in_agents() -> AgentRegistry:
    """Every version that a job may still carry stays listed; the last one of a name is current."""
    return AgentRegistry((SUPPORT_TRIAGE,))
