"""From a name such as `openai-chat:gpt-4.1-mini` to a model that is ready to be asked; what is missing is told."""

from __future__ import annotations

import re
from typing import Final

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import infer_provider_class

from agentjobs.settings import SettingsError

_OUR_EXTRAS: Final = frozenset({"openai", "anthropic"})
_EXTRA: Final = re.compile(r"pydantic-ai-slim\[([a-z-]+)\]")
_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")


def real_model(name: str) -> Model:
    """The model of pydantic-ai that `PROVIDER:MODEL` names; key and address come from the provider's variables.

    Raises SettingsError for an unknown provider, a package or a key that is missing, and a model that cannot do
    what an agent needs. It connects to nothing.
    """
    provider = name.partition(":")[0]
    try:
        infer_provider_class(provider)
        model = infer_model(name)
    except ImportError as error:
        raise SettingsError(f"AGENTJOBS_MODEL={name} needs a package: pip install '{_package(error)}'") from None
    except UserError as error:
        raise SettingsError(_lacking(name, error)) from None
    except ValueError:
        raise SettingsError(f"AGENTJOBS_MODEL: no provider is called {provider!r}") from None
    _require_usable(model, name)
    return model


def _package(error: ImportError) -> str:
    found = _EXTRA.search(str(error))
    extra = found.group(1) if found else "all"
    return f"agentjobs[{extra}]" if extra in _OUR_EXTRAS else f"pydantic-ai-slim[{extra}]"


def _lacking(name: str, error: UserError) -> str:
    variable = _VARIABLE.search(str(error))
    if variable is None:
        return f"AGENTJOBS_MODEL: {name} cannot be used: its provider's settings are not complete"
    return f"{variable.group()} is required by AGENTJOBS_MODEL={name}"


def _require_usable(model: Model, name: str) -> None:
    if not model.profile.get("supports_tools", True):
        raise SettingsError(f"AGENTJOBS_MODEL: {name} cannot call tools, which every agent needs")
    # A client that repeats calls by itself would hide attempts from the ledger, and their cost.
    if "max_retries" in model.unsupported_settings:
        raise SettingsError(f"AGENTJOBS_MODEL: {name} has a client whose own retries cannot be switched off")
    address = model.base_url
    if address is not None and not address.startswith(("http://", "https://")):
        raise SettingsError(
            f"AGENTJOBS_MODEL: the address of {name}'s provider must begin with https:// or http://"
        )
