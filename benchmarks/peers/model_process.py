"""A model that takes its time, as a process: the one judge, for all systems, of how often anybody was asked.

python -m benchmarks.peers.model_process --port 8001 --log FILE

A request begins with `bench JOB STEPS SECONDS`. A job of one step waits in its first call only. Each call is a
line in the log when it comes, and one when its answer has gone out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.providers.double_forms import chat_chunks, chat_document
from tests.providers.double_mind import Reply, sensible
from tests.providers.double_wire import Asked, Line
from tests.providers.openai_double import OpenAIDouble

SEARCHES_LESS = 4
"""Beside its searches a job of ours asks for a plan, for the ticket, for nothing more and for the answer."""


@dataclass(frozen=True)
class Question:
    """What one request is about."""

    job: str
    call: str
    """The same for a call that is made again."""

    seconds: float
    done: int
    steps: int

    @classmethod
    def of(cls, body: dict[str, Any]) -> Question:
        """Read from the request."""
        content = next(one["content"] for one in reversed(body["messages"]) if one["role"] == "user")
        data = json.loads(content if isinstance(content, str) else content[0]["text"])
        _, job, steps, seconds = str(data["request"]).split()[:4]
        stage = "answer" if body.get("stream") else "step" if data.get("plan") else "plan"
        done = len(data.get("done") or [])
        call = str(data.get("call", f"{stage}-{done}"))
        waits = int(steps) > 1 or stage == "plan"
        return cls(job, call, float(seconds) if waits else 0.0, done, int(steps))


def reply_to(body: dict[str, Any], question: Question) -> Reply:
    """A sensible one; a job of many steps searches again and again before it opens its ticket."""
    reply = sensible(body)
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    decides = bool(body.get("tools")) or "decision" in schema.get("properties", {})
    if not decides or not 0 < question.done < question.steps - SEARCHES_LESS:
        return reply
    arguments = {"query": f"printer {question.done}"}
    if reply.call is not None:
        return Reply(call=("search_tickets", json.dumps(arguments)), finish="tool_calls")
    return Reply(text=json.dumps({"decision": {"tool": "search_tickets", "arguments": arguments}}))


@dataclass
class SlowModel(OpenAIDouble):
    """The double of the tests, with time to think."""

    async def _answered(self, asked: Asked, line: Line) -> None:
        question = Question.of(asked.body)
        self._write("asked", question)
        leaving = asyncio.create_task(line.left())
        done, _ = await asyncio.wait({leaving}, timeout=question.seconds)
        if done:  # nobody is there any more to hear the answer
            self._write("left", question)
            return
        leaving.cancel()
        reply = reply_to(asked.body, question)
        if asked.body.get("stream"):
            await line.begin()
            for _, event in chat_chunks(asked.body, reply):
                await line.event(json.dumps(event))
            await line.event("[DONE]")
            await line.end()
        else:
            await line.whole(200, json.dumps(chat_document(asked.body, reply)).encode())
        self._write("answered", question)

    def _note(self, event: str, asked: Asked, **more: Any) -> None:
        """Not here: this double writes less of a request, and its end."""

    def _write(self, event: str, question: Question) -> None:
        if self.log is not None:
            entry = {"event": event, "at": time.time(), **asdict(question)}
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


async def _main(port: int, log: Path) -> None:
    async with SlowModel.running(port=port, log=log):
        await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--log", type=Path, required=True)
    given = options.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(given.port, given.log))
