"""A request for a job, as it may be given: by HTTP (api/) or by a caller in Python (enqueue.py).

Strict: members that do not exist are refused, and a number is not a text. No refusal repeats what was given.
"""

import re
import unicodedata
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from agentjobs.domain.job import (
    DEFAULT_DEADLINE_SECONDS,
    DEFAULT_PRIORITY,
    IDENTIFIER_PATTERN,
    MAX_DEADLINE_SECONDS,
    TEXT_LIMIT,
)

# Spaces, controls, and format characters (zero width): a text of only these says nothing.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})


def not_blank(text: str) -> str:
    """The text. Raises PydanticCustomError when there is nothing to be read in it."""
    if all(unicodedata.category(character) in _INVISIBLE for character in text):
        raise PydanticCustomError("blank", "This is blank: write something that can be read.")
    return text


def _without_nul(text: str) -> str:
    if "\0" in text:  # JSON may have it, PostgreSQL's texts may not
        raise PydanticCustomError("nul", "Leave out the character U+0000.")
    return text


USD_PATTERN = r"^[0-9]{1,6}(\.[0-9]{1,6})?$"
_DECIMAL = re.compile(USD_PATTERN)
_USD_SCHEMA: JsonDict = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1_000_000, "multipleOf": 0.000001},
        # Ahead of the pattern: an amount of nothing is none.
        {"type": "string", "pattern": "^(?!0*\\.?0*$)" + USD_PATTERN.removeprefix("^")},
    ]
}


def _no_boolean(amount: object) -> object:
    if isinstance(amount, bool):
        raise PydanticCustomError("usd_type", "Give an amount, best as a decimal text.")
    if isinstance(amount, str) and not _DECIMAL.fullmatch(amount):  # Python would read "5_0" as fifty
        raise PydanticCustomError("usd_form", "Give the amount as digits, such as 12.50.")
    return amount


Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER_PATTERN)]
Text = Annotated[
    str, Field(min_length=1, max_length=TEXT_LIMIT), AfterValidator(_without_nul), AfterValidator(not_blank)
]
GivenUsd = Annotated[
    Decimal,
    Field(gt=0, lt=1_000_000, decimal_places=6, strict=False),
    BeforeValidator(_no_boolean),
    WithJsonSchema(_USD_SCHEMA),
]


class Given(BaseModel):
    """The base of every body."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="wrap")
    @classmethod
    def _only_known_members(cls, given: Any, validated: ModelWrapValidatorHandler[Self]) -> Self:
        # Pydantic's own error names the unknown member, and so repeats what was sent. All errors are told at once.
        if not isinstance(given, dict) or given.keys() <= cls.model_fields.keys():
            return validated(given)
        told = {"known": ", ".join(cls.model_fields)}
        unknown = PydanticCustomError("unknown_member", "Leave out what is not known; known are: {known}.", told)
        errors = [InitErrorDetails(type=unknown, loc=(), input=None)]
        try:
            validated({name: value for name, value in given.items() if name in cls.model_fields})
        except ValidationError as error:
            errors += [_as_it_was_told(one) for one in error.errors(include_input=False, include_url=False)]
        raise ValidationError.from_exception_data(cls.__name__, errors)


def _as_it_was_told(error: ErrorDetails) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError(error["type"], error["msg"]), loc=error["loc"], input=None)


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

    @property
    def meaning(self) -> JsonValue:
        """What is asked for, defaults included: what the order, spaces and headers of a request do not change."""
        # Keys that were used before a member was there must match still: without a value it is left out.
        later = {"budget": {"steps"}} if self.budget is not None and self.budget.steps is None else None
        meaning: JsonValue = self.model_dump(mode="json", exclude=later)
        return meaning
