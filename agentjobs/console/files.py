"""The stylesheet, the script and the icon: read once, and served under an address that changes with them."""

import hashlib
from functools import cache
from importlib import resources
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from agentjobs.api.problems import not_found
from agentjobs.console.places import HOME

_TYPES: Final = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}
_YEAR_SECONDS: Final = 31_536_000

router = APIRouter()


@router.get("/static/{version}/{name}")
async def file(version: str, name: str) -> Response:
    """One of these files; anything else is not there."""
    if name not in _TYPES:
        raise not_found()
    # Another version's address may be asked for while processes are being replaced: it must not be remembered.
    lasting = f"public, max-age={_YEAR_SECONDS}, immutable" if version == _version(name) else "no-store"
    headers = {"Cache-Control": lasting, "Content-Type": f"{_TYPES[name]}; charset=utf-8"}
    return Response(_content(name), headers=headers)


def addresses() -> dict[str, str]:
    """Where each file is, by its name without the dot."""
    return {name.replace(".", "_"): f"{HOME}static/{_version(name)}/{name}" for name in _TYPES}


@cache
def _content(name: str) -> bytes:
    return (resources.files("agentjobs.console") / "static" / name).read_bytes()


def _version(name: str) -> str:
    return hashlib.sha256(_content(name)).hexdigest()[:16]
