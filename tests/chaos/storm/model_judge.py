"""The double of a model provider as a judge: what it was asked is on disk before it answers.

python -m tests.chaos.storm.model_judge --port 8001 --rules FILE --log FILE
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.storm.judge_log import JudgeLog
from tests.e2e.model_double import RuledDouble


@dataclass
class ModelJudge(RuledDouble):
    """Like the double of the whole-stack tests, with a log that outlives everything."""

    lines: JudgeLog | None = None

    def _write(self, event: str, number: int, **more: Any) -> None:
        if self.lines is not None:
            self.lines.write(event, number=number, **more)


async def main(port: int, rules: Path, log: Path) -> None:
    """Serve until killed."""
    with JudgeLog(log) as lines:
        async with ModelJudge.running(port=port) as judge:
            assert isinstance(judge, ModelJudge)
            judge.rules, judge.lines = rules, lines
            await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--rules", type=Path, required=True)
    options.add_argument("--log", type=Path, required=True)
    given = options.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(main(given.port, given.rules, given.log))
