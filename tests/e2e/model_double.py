"""The double of a model provider as a process of its own: rules tell what it does, its log what it saw.

A rule names what it is about (words of the request, a stage, a model), for how often or how long it holds, and the
fault. Rules may be changed while it runs; calls that no rule is about are answered sensibly.

    python -m tests.e2e.model_double --port 8001 --rules FILE --log FILE
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from agentjobs.stack.ports import LOOPBACK
from tests.ports import free_port
from tests.providers.double_faults import Fault
from tests.providers.double_wire import Asked, Line
from tests.providers.openai_double import OpenAIDouble

CHECKOUT = Path(__file__).parents[2]
START_SECONDS = 20
Stage = Literal["plan", "step", "answer"]


@dataclass(frozen=True)
class Rule:
    """What happens to some calls. Whatever is None matches all.

    says: words that the job's request contains. calls: only the first so many calls of one job's stage. until: of
    `time.time`, only before it.
    """

    fault: Fault
    says: str | None = None
    stage: Stage | None = None
    model: str | None = None
    calls: int | None = None
    until: float | None = None

    def holds(self, call: Call, before: int) -> bool:
        """Whether it is about this call, which has `before` others of its job's stage and model before it."""
        return (
            (self.says is None or self.says in call.text)
            and self.stage in {None, call.stage}
            and self.model in {None, call.model}
            and (self.calls is None or before < self.calls)
            and (self.until is None or time.time() < self.until)
        )


@dataclass(frozen=True)
class Call:
    """One model call as the double saw it; times are of `time.time`."""

    number: int
    at: float
    model: str
    stage: Stage
    text: str
    """The job's request."""

    fault: str
    answered_at: float | None = None
    left_at: float | None = None
    """When the client closed the connection before it had its whole answer."""

    @property
    def over_at(self) -> float | None:
        """When it was over, however it ended."""
        return self.left_at or self.answered_at


@dataclass
class RuledDouble(OpenAIDouble):
    """The double inside its own process."""

    rules: Path | None = None
    calls: dict[int, Call] = field(default_factory=dict)
    before: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def next_fault(self) -> Fault | None:
        """By the rules of this moment, for the call that came in last."""
        asked = self.asked[-1]
        call = _call_of(asked, len(self.asked))
        before = self.before[call.text, call.stage, call.model]
        self.before[call.text, call.stage, call.model] += 1
        fault = next((rule.fault for rule in self._rules() if rule.holds(call, before)), None)
        self._write("asked", call.number, **(_known(call) | {"fault": fault.kind if fault else "sensible"}))
        return fault

    async def _answered(self, asked: Asked, line: Line) -> None:
        number = len(self.asked)
        try:
            await super()._answered(asked, line)
        finally:
            self._write("left" if asked.left_at is not None else "answered", number)

    def _note(self, event: str, asked: Asked, **more: Any) -> None:
        """Not here: this double writes down more of a call, and its end."""

    def _rules(self) -> list[Rule]:
        if self.rules is None:
            return []
        return [Rule(**{**rule, "fault": Fault(**rule["fault"])}) for rule in json.loads(self.rules.read_text())]

    def _write(self, event: str, number: int, **more: Any) -> None:
        if self.log is not None:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"event": event, "number": number, "at": time.time(), **more}) + "\n")


def _call_of(asked: Asked, number: int) -> Call:
    content = next(message["content"] for message in reversed(asked.body["messages"]) if message["role"] == "user")
    if isinstance(content, list):
        content = content[0]["text"]
    return Call(number, time.time(), asked.body["model"], _stage(asked.body), json.loads(content)["request"], "")


def _known(call: Call) -> dict[str, Any]:
    return {"model": call.model, "stage": call.stage, "text": call.text}


def _stage(body: dict[str, Any]) -> Stage:
    if body.get("stream"):
        return "answer"
    return "step" if "decision" in json.dumps(body.get("response_format")) or body.get("tools") else "plan"


@dataclass
class ModelDouble:
    """The running double, from outside."""

    port: int
    rules_file: Path
    log: Path

    @classmethod
    @asynccontextmanager
    async def running(cls, directory: Path) -> AsyncIterator[ModelDouble]:
        """A process for the length of the block; its rules and its log lie in the directory."""
        double = cls(free_port(), directory / "rules.json", directory / "calls.jsonl")
        double.log.touch()
        double.rule()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.e2e.model_double", "--port", str(double.port)),
            *("--rules", str(double.rules_file), "--log", str(double.log)),
            cwd=CHECKOUT,
        )
        try:
            await double._reached()
            yield double
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    @property
    def environment(self) -> dict[str, str]:
        """What a worker needs to ask it."""
        return {
            "AGENTJOBS_MODEL": "openai-chat:double",
            "OPENAI_BASE_URL": f"http://{LOOPBACK}:{self.port}/v1",
            "OPENAI_API_KEY": "x",
            "NO_PROXY": LOOPBACK,
        }

    def rule(self, *rules: Rule) -> None:
        """From now on these hold, and no others; the first that is about a call decides."""
        beside = self.rules_file.with_suffix(".new")
        beside.write_text(json.dumps([asdict(rule) for rule in rules]), encoding="utf-8")
        beside.replace(self.rules_file)

    def calls(self, says: str = "", stage: Stage | None = None, model: str | None = None) -> list[Call]:
        """The calls of jobs whose request contains `says`, in order."""
        found: dict[int, dict[str, Any]] = {}
        ends = {"answered": "answered_at", "left": "left_at"}
        for line in self.log.read_text("utf-8").splitlines():
            entry = json.loads(line)
            event, number, at = entry.pop("event"), entry.pop("number"), entry.pop("at")
            if event == "asked":
                found[number] = {"number": number, "at": at, **entry}
            elif number in found:
                found[number][ends[event]] = at
        calls = [Call(**known) for known in found.values()]
        return [c for c in calls if says in c.text and stage in {None, c.stage} and model in {None, c.model}]

    async def _reached(self) -> None:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                _, writer = await asyncio.open_connection(LOOPBACK, self.port)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(0.05)
        writer.close()
        await writer.wait_closed()


def most_at_once(calls: Sequence[Call]) -> int:
    """How many of these were in flight at the same moment, at most."""
    changes = sorted([(c.at, 1) for c in calls] + [(c.over_at, -1) for c in calls if c.over_at is not None])
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


async def _main(arguments: argparse.Namespace) -> None:
    async with RuledDouble.running(port=arguments.port, log=arguments.log) as double:
        assert isinstance(double, RuledDouble)
        double.rules = arguments.rules
        await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--rules", type=Path, required=True)
    options.add_argument("--log", type=Path, required=True)
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(options.parse_args()))
