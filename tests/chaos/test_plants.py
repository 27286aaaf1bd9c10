"""The checker is good for something: each invariant is broken in a build of the product, and found broken."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.storm.__main__ import play
from tests.chaos.storm.campaign import Storm
from tests.chaos.storm.parts import OFFLINE, Mix
from tests.chaos.storm.plants import PLANTS, build, replaced
from tests.chaos.storm.telling import verdict_told

JOBS = 40
SECONDS = 15.0
PATIENCE_SECONDS = 60.0


@pytest.mark.parametrize("name", PLANTS)
def test_what_a_plant_replaces_is_there(name: str) -> None:
    plant = PLANTS[name]

    assert plant.new in replaced(plant)


@pytest.mark.chaos
@pytest.mark.timeout(420)
@pytest.mark.parametrize("name", PLANTS)
async def test_a_build_without_a_protection_is_caught(name: str, tmp_path: Path, seed: str) -> None:
    plant = PLANTS[name]
    source, home = tmp_path / "source", tmp_path / "home"
    source.mkdir()
    home.mkdir()
    storm = Storm(seed, SECONDS, JOBS, plant.nemeses, patience_seconds=PATIENCE_SECONDS)
    mix = Mix() if plant.judged else Mix(tracker="postgres", model=OFFLINE)

    verdict = await play(storm, replace(mix, source=build(plant, source)), home)

    assert plant.invariant in {violation.invariant for violation in verdict.violations}, verdict_told(verdict)
