"""Where the API is and which key opens it: the environment says so, else the stack.json of a running dev stack."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, SecretStr, StringConstraints, ValidationError

from agentjobs.commands.errors import ApiUnreachable, WrongUsage

if TYPE_CHECKING:
    from agentjobs.settings import ClientSettings

Filled = Annotated[str, StringConstraints(min_length=1)]


class Door(StrEnum):
    """Which key a command needs."""

    JOBS = "AGENTJOBS_API_KEY"
    READING = "AGENTJOBS_API_KEY or AGENTJOBS_ADMIN_KEY"
    REVIEW = "AGENTJOBS_ADMIN_KEY"


@dataclass(frozen=True)
class Place:
    """An address and a key for it."""

    url: str
    key: str = field(repr=False)

    @property
    def is_local(self) -> bool:
        """On this machine: no proxy may stand in between."""
        return urlsplit(self.url).hostname in {"localhost", "127.0.0.1", "::1"}


class StackFile(BaseModel):
    """The part of stack.json that a client needs."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    api: Filled
    api_key: Filled
    admin_key: Filled


def find_place(home: Path, settings: "ClientSettings", door: Door) -> Place:
    """Raises WrongUsage or ApiUnreachable with a line that tells both ways."""
    stack = read_stack_file(home)
    url = _given_url(settings) or (stack.api if stack else None)
    if url is None:
        raise ApiUnreachable(
            f"no API is known: start one with `python starter.py dev` ({home / 'stack.json'} is not there), "
            "or set AGENTJOBS_API and AGENTJOBS_API_KEY"
        )
    key = _given_key(settings, door) or _stack_key(stack, url, door)
    if key is None:
        raise WrongUsage(f"no key for {url}: set {door.value}, or unset AGENTJOBS_API to use the dev stack")
    return Place(_checked_url(url), _checked_key(key))


def read_stack_file(home: Path) -> StackFile | None:
    """What the stack in this home says of itself; None when none runs there."""
    path = home.expanduser() / "stack.json"
    try:
        return StackFile.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise WrongUsage(f"cannot read {path}: {error.strerror}") from None
    except ValidationError:
        # The value is not repeated: it holds keys.
        raise WrongUsage(f"{path} is not a stack.json: start the stack again, or give --home") from None


def _given_url(settings: "ClientSettings") -> str | None:
    return (settings.api or "").strip().rstrip("/") or None


def _given_key(settings: "ClientSettings", door: Door) -> str | None:
    usable = {
        Door.JOBS: [settings.api_key],
        Door.READING: [settings.api_key, settings.admin_key],
        Door.REVIEW: [settings.admin_key, settings.api_key],
    }[door]
    return next((key for key in map(_revealed, usable) if key), None)


def _stack_key(stack: StackFile | None, url: str, door: Door) -> str | None:
    # The stack's keys are for the stack: never send them to another address.
    if stack is None or stack.api.rstrip("/") != url.rstrip("/"):
        return None
    # For reading the admin key, too: whoever has a dev stack wants to see all that is in it.
    return stack.api_key if door is Door.JOBS else stack.admin_key


def _revealed(secret: SecretStr | None) -> str:
    return secret.get_secret_value().strip() if secret else ""


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise WrongUsage(f"AGENTJOBS_API is no http(s) address: {url}")
    return url.rstrip("/")


def _checked_key(key: str) -> str:
    if not (key.isascii() and key.isprintable()):
        raise WrongUsage("the API key has characters that no key has: set AGENTJOBS_API_KEY again")
    return key
