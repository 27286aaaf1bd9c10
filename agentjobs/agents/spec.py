"""What an agent is."""

from typing import Annotated

from pydantic import Field

from agentjobs.domain.budget import Reservation
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.job import IDENTIFIER_PATTERN, Budget, Frozen


class AgentSpec(Frozen):
    """One version of an agent. A job keeps the version it was accepted with until a redrive chooses another."""

    name: Annotated[str, Field(pattern=IDENTIFIER_PATTERN)]
    policy_version: Annotated[str, Field(pattern=r"^[0-9A-Za-z._-]{1,32}$")]
    instructions: str
    tools: tuple[str, ...]
    once: tuple[str, ...] = ()
    """Tools that a job needs one call of: after it they are not offered any more. (A model that is offered a tool
    may well call it again.)
    """

    max_steps: Annotated[int, Field(ge=1, le=100)]
    default_budget: Budget
    call_reservation: Reservation
    """The most that one model call is expected to cost: held back from the budgets before each call. Money is held
    back by the model's price for so many tokens, if that is more.
    """

    max_output_tokens: Annotated[int, Field(ge=16, le=200_000)] = 4_096
    """What a reply may have; a longer one is cut off, and is then no reply."""

    models: tuple[str, ...] = ()
    """Asked in this order: the later ones only where an earlier one is in trouble (domain/admission.py). Empty:
    those of the installation, AGENTJOBS_MODEL and AGENTJOBS_FALLBACK_MODELS.
    """


class UnknownAgent(PermanentError):
    """There is no such agent, or not in this version: check the name against the list of agents."""

    def __init__(self) -> None:
        super().__init__(Category.NOT_FOUND, "this release has no such agent, or not in that policy version")


class AgentRegistry:
    """All versions of all agents that this release knows. The last version given of a name is its current one."""

    def __init__(self, specs: tuple[AgentSpec, ...]) -> None:
        self._versions = {(spec.name, spec.policy_version): spec for spec in specs}
        self._current = {spec.name: spec for spec in specs}
        if len(self._versions) != len(specs):
            raise ValueError("two agents have the same name and policy version")

    def names(self) -> list[str]:
        """The agents that take jobs."""
        return sorted(self._current)

    def models(self) -> set[tuple[str, ...]]:
        """The models that the agents name, each agent's in its order; () where the installation's are asked."""
        return {spec.models for spec in self._versions.values()}

    def current(self, name: str) -> AgentSpec:
        """The version that new jobs get. Raises UnknownAgent."""
        try:
            return self._current[name]
        except KeyError:
            raise UnknownAgent from None

    def version(self, name: str, policy_version: str) -> AgentSpec:
        """The version that a job was accepted with. Raises UnknownAgent."""
        try:
            return self._versions[name, policy_version]
        except KeyError:
            raise UnknownAgent from None
