"""Strings that occur nowhere else, put wherever users, models, tools and settings put theirs; and every place
where somebody who must not see them might look.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import psutil
from google.protobuf.json_format import MessageToDict
from temporalio.client import Client

from agentjobs.temporal import DATA_CONVERTER
from tests.alerts.receiver import SECRET, Receiver, receiving
from tests.chaos.rig import until
from tests.e2e.model_double import Rule
from tests.e2e.model_rig import CANARY, QUOTING, SLOW, Job, ModelRig, running_model_rig
from tests.providers.double_faults import Fault
from tests.replay.texts import texts_of
from tests.tracing.collector import Collector, collecting
from tests.trackers.github_double import REPOSITORY, TOKEN, GithubDouble
from tests.trackers.github_faults import answer

INPUT: Final = CANARY
CORRECTION: Final = "canary-correction-77c1"
NOTE: Final = "canary-note-19d4"
IDEMPOTENCY_KEY: Final = "canary-idempotency-a03b"
PLAN: Final = "canary-plan-c55e"
"""The subject that the model makes up: also among the arguments of its tools' calls."""

ANSWER: Final = "canary-answer-e8f2"
NONSENSE: Final = "canary-nonsense-4b6d"
TOOL_ERROR: Final = "canary-tool-error-90aa"
MODEL_KEY: Final = "sk-canary-model-key-2f7c"
PATH: Final = "canary-path-61be"
"""Of a webhook's address, where some services keep a secret."""

CONTENT: Final = (INPUT, CORRECTION, NOTE, PLAN, ANSWER)
"""What the ledger keeps, because users and reviewers are to see it again."""

OTHERS: Final = (IDEMPOTENCY_KEY, NONSENSE, TOOL_ERROR, MODEL_KEY, PATH, TOKEN, SECRET)

_PLAN: Final = json.dumps(
    {
        "language": "en",
        "category": "question",
        "urgency": "normal",
        "subject": PLAN,
        "steps": ["search_tickets", "create_ticket"],
    }
)
RULES: Final = (
    Rule(Fault("status", status=503, error=QUOTING), says="retried", stage="step", calls=1),
    Rule(Fault("status", status=400, error=QUOTING), says="doomed", stage="step", calls=1),
    Rule(Fault("reply", reply={"text": f'{{"language": "{NONSENSE}"}}'}), says="malformed", stage="plan", calls=1),
    Rule(SLOW, says="cancelled", stage="answer"),
    Rule(Fault("reply", reply={"text": _PLAN}), stage="plan"),
    Rule(Fault("reply", reply={"text": f"We have read it. {ANSWER}"}), stage="answer"),
)  # fmt: skip


@dataclass
class Swept:
    """A stack in which everything has happened once, and what it has told by then."""

    rig: ModelRig
    receiver: Receiver
    secrets: tuple[str, ...]
    """Made by the installation itself: API keys, a webhook's secret, the database's password."""

    figures: dict[str, str]
    """What Prometheus is told, by process."""

    histories: dict[str, list[str]]
    """Every text of every workflow, with payloads decoded, and what lists of workflows show."""

    collector: Collector
    """Of traces."""

    @property
    def places(self) -> dict[str, str]:
        """Everything that is told outside of the ledger, by place."""
        heard = [f"{one.head} {one.headers} {one.body.decode()}" for one in self.receiver.received]
        return {
            **{f"log {name}": text for name, text in self.rig.logged().items()},
            **{f"metrics of {name}": text for name, text in self.figures.items()},
            **{f"workflow {name}": "\n".join(texts) for name, texts in self.histories.items()},
            "traces": self.collector.text,
            "webhooks and alerts": "\n".join(heard).replace(f"/hook/{PATH}", "/hook"),
            "command lines": "\n".join(self._command_lines()),
        }

    async def ledger_text(self) -> str:
        """Every row of every table."""
        pool = self.rig.running.ledger.database.pool
        tables = await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = [await pool.fetch(f'SELECT t::text FROM "{table[0]}" AS t') for table in tables]
        return "\n".join(str(row[0]) for of_table in rows for row in of_table)

    def _command_lines(self) -> list[str]:
        return [" ".join(psutil.Process(pid).cmdline()) for pid in self.rig.running.stack.info.pids.values()]


@asynccontextmanager
async def swept(home: Path) -> AsyncIterator[Swept]:
    """Jobs that succeed, are tried again, die, are redriven and discarded, are cancelled; and a database that
    crashes meanwhile.
    """
    async with receiving() as receiver, GithubDouble.running() as github, collecting() as collector:
        settings = {
            **collector.environment,
            "AGENTJOBS_LOG_LEVEL": "DEBUG",
            "AGENTJOBS_TRACKER": "github",
            "AGENTJOBS_GITHUB_REPOSITORY": REPOSITORY,
            "AGENTJOBS_GITHUB_TOKEN": TOKEN,
            "AGENTJOBS_GITHUB_API_URL": github.base_url,
            "AGENTJOBS_ALERT_WEBHOOK_URL": f"{receiver.url}/{PATH}",
            "AGENTJOBS_ALERT_WEBHOOK_SECRETS": SECRET,
            "AGENTJOBS_ALERT_WEBHOOK_PRIVATE": "true",
            "AGENTJOBS_WEBHOOKS_PRIVATE": "true",
            "OPENAI_API_KEY": MODEL_KEY,
        }
        async with running_model_rig(home, 1, **settings) as rig:
            rig.double.rule(*RULES)
            secret = await _add_webhook(rig, f"{receiver.url}/{PATH}")
            await _play(rig, github)
            await until(lambda: _heard(receiver), "alerts and webhooks", 30)
            info = rig.running.stack.info
            made = (info.api_key, info.admin_key, secret, urlsplit(info.database).password or "")
            await until(lambda: _traced(collector), "traces", 30)
            figures, histories = await _figures(info.metrics), await _histories(info.temporal)
            yield Swept(rig, receiver, made, figures, histories, collector)


async def _play(rig: ModelRig, github: GithubDouble) -> None:
    same = {"Idempotency-Key": IDEMPOTENCY_KEY}
    again = [
        await rig.user.post("/v1/jobs", json={"input": {"text": f"ordinary {INPUT}"}}, headers=same)
        for _ in range(2)
    ]
    jobs = [again[0].json(), *[await rig.submit(words) for words in ("retried", "malformed")]]
    doomed, cancelled = await rig.submit("doomed"), await rig.submit("cancelled")
    await rig.until_it_writes(cancelled["id"])
    await rig.tell(f"/v1/jobs/{cancelled['id']}/cancel")
    await rig.all_over([*jobs, doomed, cancelled])

    github.will(answer(422, TOOL_ERROR))
    refused = await rig.submit("refused by the tracker")
    await rig.over(refused["id"])
    await _decide(rig, doomed, "redrive", input={"text": f"corrected {CORRECTION}"})
    await rig.in_state(doomed["id"], "succeeded")
    await _decide(rig, refused, "discard")
    await rig.in_state(refused["id"], "discarded")

    interrupted = await rig.submit("interrupted")
    await rig.running.stack.kill("postgres")
    await rig.running.stack.until_ready("postgres")
    await rig.all_over([interrupted])


async def _decide(rig: ModelRig, job: Job, word: str, **more: Any) -> None:
    await rig.tell(f"/v1/dead-letters/{job['id']}/{word}", {"note": f"{word}: {NOTE}", **more}, rig.admin)


async def _add_webhook(rig: ModelRig, url: str) -> str:
    answered = await rig.admin.post("/v1/webhooks", json={"url": url, "description": NOTE})
    assert answered.status_code == 201, answered.text
    secret: str = answered.json()["secret"]
    return secret


async def _heard(receiver: Receiver) -> bool:
    types = {one.document["type"] for one in receiver.received}
    return {"job.died", "job.succeeded", "job.dead", "job.cancelled", "job.discarded"} <= types


async def _traced(collector: Collector) -> bool:
    ends = {one.attributes["agentjobs.job.state"] for one in collector.spans if one.name == "run support-triage"}
    return {"succeeded", "dead", "cancelled", "discarded"} <= ends


async def _figures(places: dict[str, str]) -> dict[str, str]:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        return {name: (await client.get(url)).raise_for_status().text for name, url in places.items()}


async def _histories(temporal: str) -> dict[str, list[str]]:
    client = await Client.connect(temporal, data_converter=DATA_CONVERTER)
    found: dict[str, list[str]] = {}
    async for execution in client.list_workflows():
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        history = (await handle.fetch_history()).to_json_dict()
        described = MessageToDict((await handle.describe()).raw_description)
        listed = MessageToDict(execution.raw_info)
        found.setdefault(execution.id, []).extend([*texts_of(history), *texts_of(described), *texts_of(listed)])
    return found
