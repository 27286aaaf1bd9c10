"""A kill at every place that docs/failure-boundaries.md names, in one storm, with links that break beside it."""

from pathlib import Path

import pytest

from agentjobs.failpoints import NAMES
from tests.chaos.storm.__main__ import play
from tests.chaos.storm.campaign import Storm
from tests.chaos.storm.parts import OFFLINE, Mix
from tests.chaos.storm.schedule import Nemesis
from tests.chaos.storm.telling import verdict_told

SECONDS = 75.0
JOBS = 120
BESIDE = (Nemesis.RESET, Nemesis.DATABASE_REPLIES_LOST, Nemesis.TEMPORAL_REPLIES_LOST, Nemesis.REDELIVERED)


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_a_storm_over_every_boundary_breaks_no_promise(tmp_path: Path, seed: str) -> None:
    # Tickets lie in the ledger's database: two of the places are reached in no other way. No model is asked: a
    # worker that can ask one takes twice as long to start, and here each starts several times.
    storm = Storm(seed, SECONDS, JOBS, (Nemesis.FAILPOINT, *BESIDE))

    verdict = await play(storm, Mix(tracker="postgres", model=OFFLINE), tmp_path)

    assert verdict.passed, verdict_told(verdict)
    assert verdict.done.failpoints == NAMES
