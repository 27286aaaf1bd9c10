"""What comes in. Strict: members that do not exist are refused, and a number is not a text."""

import re
import unicodedata
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agentjobs.domain.job import (
    DEFAULT_DEADLINE_SECONDS,
    DEFAULT_PRIORITY,
    IDENTIFIER_PATTERN,
    MAX_DEADLINE_SECONDS,
    TEXT_LIMIT,
)
from agentjobs.ledger.identity import Role

ACTION_PATTERN = r"^[a-z_]{1,40}:[a-z_]{1,40}$"
KEY_SECONDS_LIMIT = 10 * 365 * 86_400
MONTHLY_TOKENS_LIMIT = 10**15

# Spaces, controls, and format characters (zero width): a text of only these says nothing.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})


def _not_blank(text: str) -> str:
    if all(unicodedata.category(character) in _INVISIBLE for character in text):
        raise PydanticCustomError("blank", "This is blank: write something that can be read.")
    return text


_DECIMAL = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?")


def _no_boolean(amount: object) -> object:
    if isinstance(amount, bool):
        raise PydanticCustomError("usd_type", "Give an amount, best as a decimal text.")
    if isinstance(amount, str) and not _DECIMAL.fullmatch(amount):  # Python would read "5_0" as fifty
        raise PydanticCustomError("usd_form", "Give the amount as digits, such as 12.50.")
    return amount


Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER_PATTERN)]
Text = Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT), AfterValidator(_not_blank)]
Note = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_not_blank)]
GivenRole = Annotated[Role, Field(strict=False)]
GivenUsd = Annotated[
    Decimal, Field(gt=0, lt=1_000_000, decimal_places=6, strict=False), BeforeValidator(_no_boolean)
]


class Given(BaseModel):
    """The base of every body."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _only_known_members(cls, given: Any) -> Any:
        # Pydantic's own error names the unknown member, and so repeats what was sent.
        if isinstance(given, dict) and not given.keys() <= cls.model_fields.keys():
            told = {"known": ", ".join(cls.model_fields)}
            raise PydanticCustomError("unknown_member", "Leave out what is not known; known are: {known}.", told)
        return given


class JobInput(Given):
    """The request itself."""

    text: Text


class GivenBudget(Given):
    """What the job may spend; a limit that is not named is the agent's own."""

    tokens: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    usd: GivenUsd | None = None
    steps: Annotated[int, Field(ge=1, le=100, description="Tool calls that the model may ask for.")] | None = None


class NewJob(Given):
    """A job to be accepted."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"input": {"text": "My printer is on fire"}},
                {
                    "agent": "support-triage",
                    "input": {"text": "Ich kann mich nicht anmelden"},
                    "deadline_seconds": 3600,
                    "budget": {"tokens": 50_000, "usd": "0.25", "steps": 3},
                    "priority": 1,
                },
            ]
        }
    )

    agent: Identifier = "support-triage"
    input: JobInput
    deadline_seconds: Annotated[int, Field(ge=1, le=MAX_DEADLINE_SECONDS)] = DEFAULT_DEADLINE_SECONDS
    budget: GivenBudget | None = None
    priority: Annotated[int, Field(ge=1, le=5, description="1 is the most urgent.")] = DEFAULT_PRIORITY


class RedriveOrder(Given):
    """Run the dead job again."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"note": "the grant is in place now", "policy": "original"},
                {"note": "she meant the other printer", "input": {"text": "The printer in room 7 is on fire"}},
                {"note": "worth more", "budget": {"tokens": 100_000}},
            ]
        }
    )

    note: Note
    policy: Literal["original", "current"] = "original"
    again: Annotated[
        bool, Field(description="Your word that effects in doubt are to be had once more, under a new key.")
    ] = False
    input: Annotated[
        JobInput | None,
        Field(description="The request as it should have been. What is done stays; the rest is asked anew."),
    ] = None
    budget: Annotated[
        GivenBudget | None, Field(description="Limits to raise; one that is not named stays as it is.")
    ] = None


class DiscardOrder(Given):
    """Give the dead job up."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"note": "asked by mistake"}]})

    note: Note


class MonthlyBudget(Given):
    """What the tenant may spend in a month. Both members are named, so that none is lifted by being forgotten."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tokens": 20_000_000, "usd": "150.00"}]})

    tokens: Annotated[
        Annotated[int, Field(ge=1, le=MONTHLY_TOKENS_LIMIT)] | None, Field(description="null is no limit.")
    ]
    usd: Annotated[GivenUsd | None, Field(description="null is no limit.")]


class NewKey(Given):
    """A key to be made."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user": "ann", "roles": ["submit"]}]})

    tenant: Annotated[Identifier | None, Field(description="Default: your own.")] = None
    user: Identifier
    roles: Annotated[list[GivenRole], Field(min_length=1, max_length=3)]
    expires_in_seconds: Annotated[int, Field(ge=1, le=KEY_SECONDS_LIMIT)] | None = None


class NewGrant(Given):
    """A permission to be given."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user": "ann", "action": "tickets:create"}]})

    user: Identifier
    action: Annotated[str, StringConstraints(pattern=ACTION_PATTERN)]
