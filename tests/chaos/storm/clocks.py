"""The wall clocks of single processes, which jump. Everything else of their time goes on as ever."""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentjobs.stack.errors import StackError

SOURCE: Final = Path(__file__).with_name("wall_clock.c")
OFF: Final = struct.Struct("=qq")
"""Seconds ahead as it is to be, and as the process was last told."""


@dataclass(frozen=True)
class WallClock:
    """One process's, and those of its successors. `file` says how far it is off."""

    file: Path
    library: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """What the process is started with."""
        return {"LD_PRELOAD": str(self.library), "STORM_CLOCK": str(self.file)}

    def jump(self, seconds: int) -> None:
        """At once it is so far ahead of the true time, or behind it; 0 sets it right."""
        if not self.file.exists():
            self.file.write_bytes(OFF.pack(0, 0))
        with self.file.open("r+b") as file:  # never another file: the process holds this one
            file.write(OFF.pack(seconds, 0))

    def was_told(self) -> bool:
        """Whether the process has asked for the time since it jumped."""
        ahead, told = OFF.unpack(self.file.read_bytes())
        return bool(ahead == told)


def compiled(place: Path) -> Path:
    """The library that makes a clock jump. Raises StackError, which says what to install."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise StackError("clocks cannot jump without a C compiler: apt-get install gcc, or leave that kind out")
    library = place / "wall_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, SOURCE, "-ldl"], check=True)
    return library
