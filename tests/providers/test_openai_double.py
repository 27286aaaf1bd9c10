"""The double as a process of its own, for suites that put a model behind a whole stack."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import httpx

from tests.ports import free_port
from tests.providers.openai_double import OpenAIDouble

ASKING = {"model": "m", "messages": [{"role": "user", "content": json.dumps({"request": "Hello"})}]}


async def test_it_runs_as_a_process_with_a_script_and_a_log(tmp_path: Path) -> None:
    script, log, port = tmp_path / "script", tmp_path / "log", free_port()
    script.write_text('{"kind": "status", "status": 429, "headers": {"Retry-After": "1"}}\n{"kind": "sensible"}\n')
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.providers.openai_double",
        "--port", str(port), "--script", str(script), "--log", str(log),
    )  # fmt: skip
    try:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}/v1", transport=httpx.AsyncHTTPTransport(retries=0)
        ) as client:
            await _until_it_listens(port)
            refused = await client.post("/chat/completions", json=ASKING)
            answered = await client.post("/chat/completions", json=ASKING)
    finally:
        process.terminate()
        await process.wait()

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert "Hello" in answered.json()["choices"][0]["message"]["content"]
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["event"] for entry in entries] == ["asked", "asked"]
    assert entries[0]["body"] == ASKING


async def test_it_counts_how_many_ask_at_the_same_time() -> None:
    async with OpenAIDouble.running() as double, httpx.AsyncClient(base_url=double.base_url) as client:
        streamed = ASKING | {"stream": True}

        await asyncio.gather(*(client.post("/chat/completions", json=streamed) for _ in range(5)))

        assert len(double.asked) == 5
        assert 1 <= double.most_at_once <= 5
        assert double.at_once == 0


async def _until_it_listens(port: int) -> None:
    for _ in range(400):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise AssertionError("the double does not listen")
