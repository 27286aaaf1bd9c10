"""Builds of the product with one protection taken out: what the checker must catch.

A build is a copy of the source in which one text is another. Nothing in the product can be switched off.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.chaos.storm.schedule import Nemesis
from tests.e2e.conftest import CHECKOUT

SOURCES: Final = ("agentjobs", "activities", "workflows", "worker.py")


@dataclass(frozen=True)
class Plant:
    """One text of one file, and what stands there instead."""

    invariant: str
    file: str
    old: str
    new: str
    nemeses: tuple[Nemesis, ...] = ()
    """Under which it shows; some show in fair weather."""

    judged: bool = False
    """Whether it takes the judges of models and tickets to see it."""


PLANTS: Final[Mapping[str, Plant]] = {
    "some workflows stand still": Plant(
        "I1",
        "workflows/agent_job.py",
        "            await self._to_the_end()\n",
        '            await workflow.wait_condition(lambda: self._start.job_id[0] not in "0123")\n'
        "            await self._to_the_end()\n",
    ),
    "each attempt has a key of its own at the destination": Plant(
        "I2",
        "agentjobs/trackers/roundup.py",
        '        "external_key": key,\n',
        '        "external_key": f"{key}#{id(ticket)}",\n',
        (Nemesis.TOOL_REPLIES_LOST,),
        judged=True,
    ),
    "the last word on a call holds, and not the first": Plant(
        "I4",
        "agentjobs/ledger/queries/approvals.sql",
        "       AND latest.state = 'requested' AND latest.expires_at > now()\n",
        "       AND latest.expires_at > now()\n",
        judged=True,
    ),
    "a workflow does not show its end": Plant(
        "I4",
        "workflows/agent_job.py",
        "            self._show(over.state)\n            await workflow.wait_condition",
        "            await workflow.wait_condition",
    ),
    "quotas are counted and not kept": Plant(
        "I5", "agentjobs/ledger/queries/acceptance.sql", "SELECT refused, ", "SELECT NULL::text AS refused, "
    ),
    "a stream skips an event when it goes on": Plant(
        "I6",
        "agentjobs/ledger/queries/events.sql",
        "AND seq > wanted.after\n",
        "AND seq > wanted.after + (wanted.after = 3)::integer\n",
    ),
    "a job is read without its tenant": Plant(
        "I7",
        "agentjobs/ledger/queries/reading.sql",
        'SELECT * FROM jobs WHERE id = :id AND tenant = :tenant AND (:user::text IS NULL OR "user" = :user);',
        "SELECT * FROM jobs WHERE id = :id AND :tenant::text IS NOT NULL\n"
        '   AND (:user::text IS NULL OR "user" = :user);',
    ),
    "an alert is marked as delivered and not sent": Plant(
        "I8",
        "activities/alerts.py",
        "taken = await self._sink(at.sink).deliver(begun.alert)",
        'taken = __import__("agentjobs.alerts.sink", fromlist=["Taken"]).Taken(status=204)',
    ),
    "a call is made once more than it is on record": Plant(
        "I9",
        "activities/executor.py",
        "            reply = await _before_deadline(work.call(begun, None), begun.remaining_seconds)\n",
        "            await work.call(begun, None)\n"
        "            reply = await _before_deadline(work.call(begun, None), begun.remaining_seconds)\n",
        judged=True,
    ),
    "the API writes requests into its log": Plant(
        "I10",
        "agentjobs/api/jobs.py",
        "    key = idempotency_key(request)\n",
        "    key = idempotency_key(request)\n    print(new.input.text, flush=True)\n",
    ),
    "a workflow does what its recorded course has not": Plant(
        "I11",
        "workflows/agent_job.py",
        "            await self._to_the_end()\n",
        "            await workflow.sleep(0.001)\n            await self._to_the_end()\n",
    ),
    "a repeated request is a new one": Plant(
        "I12",
        "agentjobs/api/jobs.py",
        "    key = idempotency_key(request)\n",
        "    key = None if idempotency_key(request) else None\n",
    ),
}


def build(plant: Plant, place: Path) -> Path:
    """The source with the protection taken out, copied to this place. Raises ValueError as `replaced` does."""
    for name in SOURCES:
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(CHECKOUT / name, place / name)
    file = place / plant.file
    file.write_text(replaced(plant), encoding="utf-8")
    return place


def replaced(plant: Plant) -> str:
    """The planted file's text. Raises ValueError unless what is replaced stands there just once."""
    text = (CHECKOUT / plant.file).read_text("utf-8")
    if text.count(plant.old) != 1:
        raise ValueError(f"{plant.file} has {text.count(plant.old)} times what {plant.invariant} replaces")
    return text.replace(plant.old, plant.new)
