"""Which processes there are, how each is started, and which way it has to each of the others."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from agentjobs.stack.children import Child, ChildSpec, Probe
from agentjobs.stack.options import StackOptions
from agentjobs.stack.ports import LOOPBACK
from agentjobs.stack.probes import http_answer, log_line
from agentjobs.webhooks.signing import new_secret
from tests.chaos.storm.clocks import WallClock, compiled
from tests.chaos.storm.links import Link
from tests.e2e.conftest import CHECKOUT
from tests.ports import free_port

APIS = ("api-1", "api-2")
RELAYS = ("relay-1", "relay-2")
WORKERS = ("worker-1", "worker-2", "worker-3")
SERVERS = ("postgres", "temporal")
ALL_WORKERS = "workers"
"""Where alerts go has one address for all: a sink is known by it."""

CLOCKED = (*APIS, *RELAYS)
"""Whose wall clocks may jump."""

CLIENTS = "clients"
"""All of them, seen from the stack."""

NEEDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(APIS, ("postgres", "temporal")),
    **dict.fromkeys(RELAYS, ("postgres", "temporal")),
    **dict.fromkeys(WORKERS, ("postgres", "temporal", "model", "tickets")),
    ALL_WORKERS: ("alerts",),
    CLIENTS: APIS,
}
JUDGES = ("model", "tickets", "alerts")
SECONDS_TO_STOP = 15.0
OFFLINE = "offline"
SEARCH_TOOL = "search_tickets"

_MODULES = {
    "model": "tests.chaos.storm.model_judge",
    "tickets": "tests.chaos.storm.ticket_judge",
    "alerts": "tests.chaos.storm.alert_judge",
}
_PROGRAMS = {**dict.fromkeys(APIS, "agentjobs.api"), **dict.fromkeys(RELAYS, "agentjobs.outbox")}


@dataclass(frozen=True)
class Mix:
    """What the processes are set to."""

    tracker: str = "roundup"
    model: str = "openai-chat:double"
    """OFFLINE: the rules in the product, and nobody is asked."""

    source: Path = CHECKOUT
    """Whose code the processes run: ours, or a copy with a protection taken out."""

    sources: Mapping[str, Path] = field(default_factory=dict)
    """Of single processes: those of another release."""

    settings: Mapping[str, str] = field(default_factory=dict)
    clocks_jump: bool = False
    """Whether the wall clocks of APIs and relays can be set."""

    @property
    def asks_approval(self) -> str:
        """The tool whose calls wait for a person. The rules in the product would call it in every job."""
        return "" if self.model == OFFLINE else SEARCH_TOOL

    def source_of(self, part: str) -> Path:
        """Whose code this process runs."""
        return self.sources.get(part, self.source)


@dataclass
class Parts:
    """The ports, the links and the command lines of one stack."""

    home: Path
    mix: Mix
    ports: dict[str, int] = field(
        default_factory=lambda: {part: free_port() for part in (*APIS, *SERVERS, *JUDGES)}
    )
    links: dict[tuple[str, str], Link] = field(default_factory=dict)
    secret: str = field(default_factory=lambda: new_secret().get_secret_value())
    clocks: dict[str, WallClock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Clocks that go right. Raises StackError where none can be made to jump."""
        if self.mix.clocks_jump:
            library = compiled(self.home)
            self.clocks |= {part: WallClock(self.home / f"clock-{part}", library) for part in CLOCKED}
        for clock in self.clocks.values():
            clock.jump(0)

    def log_of(self, judge: str) -> Path:
        """Where this judge writes."""
        return self.home / f"{judge}-judge.jsonl"

    @property
    def rules_file(self) -> Path:
        """What the model does, for whom."""
        return self.home / "rules.json"

    @property
    def options(self) -> StackOptions:
        """For the servers. `api_port` only says where the first of our APIs is."""
        return StackOptions(
            home=self.home,
            postgres_port=self.ports["postgres"],
            temporal_port=self.ports["temporal"],
            ui_port=free_port(),
            api_port=self.ports["api-1"],
        )

    def programs(self, options: StackOptions, environment: Mapping[str, str]) -> list[ChildSpec]:
        """The judges, and everything of ours, each behind its own links."""
        judges = [self._judge(name, environment) for name in JUDGES]
        return [*judges, *(self.spec(part, environment) for part in (*APIS, *RELAYS, *WORKERS))]

    def spec(self, part: str, environment: Mapping[str, str]) -> ChildSpec:
        """One process of ours. `environment`: as the stack gives it to its programs."""
        if part in APIS:
            ready = http_answer(f"http://{LOOPBACK}:{self.ports[part]}/readyz")
        else:
            ready = log_line("relay_started" if part in RELAYS else "worker_started")
        module = _PROGRAMS.get(part, "worker")
        own = dict(environment) | self._way(part, environment["AGENTJOBS_DATABASE_URL"])
        if part in self.clocks:
            own |= self.clocks[part].environment
        return ChildSpec(
            name=part,
            argv=(sys.executable, "-P", "-m", module),
            environment=own | {"PYTHONPATH": str(self.mix.source_of(part))} | dict(self.mix.settings),
            ready=ready,
            grace_seconds=SECONDS_TO_STOP,
        )

    def url(self, client: str, server: str) -> str:
        """Through the link."""
        return f"http://{LOOPBACK}:{self.links[client, server].port}"

    def _way(self, part: str, dsn: str) -> dict[str, str]:
        port = str(self.links[part, "postgres"].port)
        way = {
            "AGENTJOBS_DATABASE_URL": dsn.replace(f":{urlsplit(dsn).port}/", f":{port}/"),
            "TEMPORAL_ADDRESS": f"{LOOPBACK}:{self.links[part, 'temporal'].port}",
            "AGENTJOBS_QUOTA_IN_FLIGHT": "0",
            "AGENTJOBS_QUOTA_PER_MINUTE": "0",
        }
        if part in APIS:
            way["AGENTJOBS_API_PORT"] = str(self.ports[part])
        if part in WORKERS:
            way |= self._doubles(part)
        return way

    def _doubles(self, worker: str) -> dict[str, str]:
        return {
            "AGENTJOBS_MODEL": self.mix.model,
            "OPENAI_BASE_URL": f"{self.url(worker, 'model')}/v1",
            "OPENAI_API_KEY": "x",
            "NO_PROXY": LOOPBACK,
            "AGENTJOBS_APPROVALS": self.mix.asks_approval,
            "AGENTJOBS_TRACKER": self.mix.tracker,
            "AGENTJOBS_ROUNDUP_URL": f"{self.url(worker, 'tickets')}/tracker",
            "AGENTJOBS_ROUNDUP_USER": "agentjobs",
            "AGENTJOBS_ROUNDUP_PASSWORD": self.secret,
            "AGENTJOBS_ALERT_WEBHOOK_URL": f"{self.url(ALL_WORKERS, 'alerts')}/alerts",
            "AGENTJOBS_ALERT_WEBHOOK_SECRETS": self.secret,
            "AGENTJOBS_ALERT_WEBHOOK_PRIVATE": "1",
        }

    def _judge(self, name: str, environment: Mapping[str, str]) -> ChildSpec:
        port, log = self.ports[name], self.log_of(name)
        rules = ("--rules", str(self.rules_file)) if name == "model" else ()
        argv = (sys.executable, "-m", _MODULES[name], "--port", str(port), "--log", str(log), *rules)
        return ChildSpec(
            name=name,
            argv=argv,
            environment={**environment, "PYTHONPATH": str(CHECKOUT)},
            ready=listening(port),
        )


def listening(port: int) -> Probe:
    """Ready when somebody takes a connection."""

    async def probe(child: Child) -> bool:
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, port)
        except OSError:
            return False
        writer.close()
        return True

    return probe
