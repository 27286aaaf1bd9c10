"""The tools of this release."""

from collections.abc import Mapping

from agentjobs.tools.tickets import CreateTicket, SearchTickets
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.tracker import Tracker


def built_in_tools(tracker: Tracker, approvals: Mapping[str, float] | None = None) -> ToolRegistry:
    """The tools over the worker's tracker. `approvals`: see ToolRegistry."""
    return ToolRegistry((SearchTickets(tracker), CreateTicket(tracker)), approvals)
