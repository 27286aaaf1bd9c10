"""What a tool is, and the registry that refuses one without an effect class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.job import Job
from agentjobs.ledger.database import Connection

Arguments = TypeVar("Arguments", bound=BaseModel)


@dataclass(frozen=True)
class ToolContext:
    """What a call may know beside its arguments."""

    job: Job
    key: str
    """The step key: send it to a destination that honours idempotency keys."""

    remaining_seconds: float
    connection: Connection | None
    """The open transaction of a transactional tool; None for every other class."""


class Tool(ABC, Generic[Arguments]):
    """One thing that an agent may do. The executor validates arguments, checks the grant, records the effect
    and retries; the tool's author writes only the call.
    """

    name: str
    description: str
    arguments: type[Arguments]
    grant: str | None = None
    """The permission that the job's user needs, checked at the moment of the effect; None needs none."""

    approval_seconds: float | None = None
    """How long a reviewer may take to approve each call, seen with its arguments, before it is made; None: nobody
    is asked. Never beyond the job's deadline.
    """

    @property
    @abstractmethod
    def effect_class(self) -> EffectClass:
        """What is known about repeating `call`."""

    @property
    def short(self) -> bool:
        """Whether a call waits for nothing but this installation's database: it may take the fast lane."""
        return self.effect_class is EffectClass.TRANSACTIONAL

    @abstractmethod
    async def call(self, arguments: Arguments, context: ToolContext) -> BaseModel:
        """Do it, and return the receipt. Raise the errors of domain/failures.py; do not retry."""


class UndoableTool(Tool[Arguments]):
    """A tool whose effect can be compensated when the job is cancelled or discarded."""

    @abstractmethod
    async def undo(self, receipt: dict[str, Any], context: ToolContext) -> None:
        """Compensate the effect with this receipt. Doing it twice is no error."""


class ReconcilableTool(Tool[Arguments]):
    """A tool whose destination can be asked what became of a call that an earlier attempt began."""

    @property
    @abstractmethod
    def landing_horizon_seconds(self) -> float:
        """How long after an attempt its call may still land, unseen by `look_up`."""

    @abstractmethod
    async def look_up(self, context: ToolContext) -> BaseModel | None:
        """The receipt of the call with this key, if the destination knows it."""


class ToolRegistry:
    """The tools of a worker, by name."""

    def __init__(self, tools: tuple[Tool[Any], ...], approvals: Mapping[str, float] | None = None) -> None:
        """`approvals`: tools whose calls need a person's approval in this installation, with the seconds for it.

        Raises ValueError, or TypeError for a tool that declares no effect class.
        """
        self._tools = {tool.name: tool for tool in tools}
        self._approvals = approvals or {}
        if unknown := self._approvals.keys() - self._tools.keys():
            raise ValueError(f"there is no tool {', '.join(sorted(unknown))}")
        if len(self._tools) != len(tools):
            raise ValueError("two tools have the same name")
        for tool in tools:
            _require_declared(tool)

    def get(self, name: str) -> Tool[Any]:
        """The tool. Raises PermanentError(unknown_tool)."""
        try:
            return self._tools[name]
        except KeyError:
            raise PermanentError(Category.UNKNOWN_TOOL, "this worker has no tool of that name") from None

    def approval_seconds(self, name: str) -> float | None:
        """How long a person may take to approve a call of this tool; None: nobody is asked."""
        return self._approvals.get(name, self.get(name).approval_seconds)


def _require_declared(tool: Tool[Any]) -> None:
    if not isinstance(tool.effect_class, EffectClass):
        raise TypeError(f"the tool {tool.name} declares no effect class")
    if tool.effect_class is EffectClass.RECONCILABLE and not isinstance(tool, ReconcilableTool):
        raise TypeError(f"the tool {tool.name} is reconcilable, but has no look_up")


def parsed(tool: Tool[Any], arguments: dict[str, Any], otherwise: Category) -> BaseModel:
    """The arguments as the tool's own type. Raises PermanentError(`otherwise`) naming fields, not values."""
    try:
        model: BaseModel = tool.arguments.model_validate(arguments)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        told = "; ".join(f"{'.'.join(map(str, p['loc'])) or 'arguments'}: {p['type']}" for p in problems[:5])
        message = f"{tool.name} does not take these arguments ({told})"
        raise PermanentError(otherwise, message, nothing_happened=True) from None
    return model
