"""The tools of this release."""

from agentjobs.tools.tickets import CreateTicket, SearchTickets
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.tracker import Tracker


def built_in_tools(tracker: Tracker) -> ToolRegistry:
    """The tools over the worker's tracker."""
    return ToolRegistry((SearchTickets(tracker), CreateTicket(tracker)))
