"""The models of a worker, by name: each made when it is first asked for, and closed at the end."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from agentjobs.providers.model import ModelProvider


class Models:
    """Which models are asked, in which order.

    names: of the installation, for agents that name none. provider_named: makes a provider; raises SettingsError.
    """

    def __init__(self, names: tuple[str, ...], provider_named: Callable[[str], ModelProvider]) -> None:
        self._names = names
        self._provider_named = provider_named
        self._providers: dict[str, ModelProvider] = {}

    def of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The candidates of an agent that names these."""
        return names or self._names

    def get(self, name: str) -> ModelProvider:
        """The provider of this model."""
        if name not in self._providers:
            self._providers[name] = self._provider_named(name)
        return self._providers[name]

    def require(self, names: tuple[str, ...]) -> None:
        """Make these now: a name or a key that is wrong is told at the start, and not to the first job."""
        for name in self.of(names):
            self.get(name)

    def most_usd(self, names: tuple[str, ...], tokens: int) -> Decimal:
        """The most that a call of so many tokens can cost, whichever of these answers it."""
        return max(self.get(name).most_usd(tokens) for name in names)

    async def aclose(self) -> None:
        """Give back the connections of all of them."""
        for provider in self._providers.values():
            await provider.aclose()
