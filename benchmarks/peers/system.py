"""What a system is, seen from the benchmark: which processes carry its jobs out, and who hands jobs in."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PEERS_PYTHON = CHECKOUT / ".venv-bench" / "bin" / "python"
"""Other people's packages never get into our own environment."""


@dataclass(frozen=True, kw_only=True)
class System:
    """One system in one setting. `module` has its `client`; `processes` are argument lists after `python -m`."""

    name: str
    module: str
    processes: Mapping[str, tuple[str, ...]]
    ready: Mapping[str, str]
    """What each process writes into its log when it takes work."""

    packages: tuple[str, ...]
    documentation: str
    """Which pages of its documentation the form is taken from."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of its own, as it is set here."""

    remarks: str = ""
    needs_redis: bool = False
    is_peer: bool = True

    @property
    def python(self) -> str:
        """The interpreter that has its packages."""
        return str(PEERS_PYTHON) if self.is_peer else sys.executable


@dataclass(frozen=True)
class Job:
    """One job, as every client is given it.

    steps: how many model calls of `seconds` each; of zero seconds, nobody is called.
    """

    id: str
    steps: int = 1
    seconds: float = 0.0
