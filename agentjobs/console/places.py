"""Where things of the console are. One place, so that no page builds an address from what was sent."""

import re
from typing import Final

HOME: Final = "/console/"
SIGN_IN: Final = HOME + "sign-in"
_OURS: Final = re.compile(r"/console/[A-Za-z0-9_/-]{0,200}")


def ours(path: str) -> str:
    """The path, if it is one of the console; else its first page. Nobody is sent elsewhere by a link to us."""
    return path if _OURS.fullmatch(path) and "//" not in path else HOME
