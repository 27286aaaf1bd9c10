"""How fast something rises with the jobs."""

from pathlib import Path
from typing import cast

import pytest

from tests.chaos.storm.site import Site
from tests.chaos.storm.vitals import Look, Vitals, slope


def _looks(*values: float) -> list[Look]:
    return [Look(jobs=500 * number, values={"worker MB": value}) for number, value in enumerate(values)]


def test_a_slope_is_by_a_thousand_jobs() -> None:
    assert slope(_looks(100, 105, 110, 115), "worker MB") == pytest.approx(10.0)
    assert slope(_looks(100, 100, 100), "worker MB") == 0.0


def test_without_jobs_there_is_no_slope() -> None:
    assert slope([Look(7, {"worker MB": 1.0}), Look(7, {"worker MB": 9.0})], "worker MB") == 0.0


def test_only_the_second_half_counts(tmp_path: Path) -> None:
    vitals = Vitals(cast("Site", tmp_path), _looks(0, 80, 100, 100, 100, 100))

    assert vitals.told() == "worker MB 0 to 100 (+0.0)"
