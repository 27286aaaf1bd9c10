"""Budget arithmetic: what was spent, what is held back for a call, and whether one more call fits."""

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from agentjobs.domain.job import Budget, Frozen


class Usage(Frozen):
    """What one model call cost. USD is exact decimal money."""

    tokens_in: Annotated[int, Field(ge=0)] = 0
    tokens_out: Annotated[int, Field(ge=0)] = 0
    usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)

    @property
    def tokens(self) -> int:
        """Tokens in both directions: the unit of `Budget.tokens`."""
        return self.tokens_in + self.tokens_out

    def __add__(self, other: "Usage") -> "Usage":
        """The sum of two usages."""
        return Usage(
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            usd=self.usd + other.usd,
        )


class Reservation(Frozen):
    """The most that one call may cost, held back before it is made and settled by its real usage after."""

    tokens: Annotated[int, Field(ge=0)] = 0
    usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)


def fits(budget: Budget, spent: Reservation, wanted: Reservation) -> bool:
    """Whether `wanted` fits beside what is spent or held back already.

    The ledger's `begin` asks the same question in SQL; a test compares the two.
    """
    tokens_fit = budget.tokens is None or spent.tokens + wanted.tokens <= budget.tokens
    usd_fits = budget.usd is None or spent.usd + wanted.usd <= budget.usd
    return tokens_fit and usd_fits
