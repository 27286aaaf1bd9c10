"""What is made of the values of the rounds."""

import pytest

from benchmarks.series import Series, Value, percentile, slope


def series_of(**systems: list[float]) -> Series:
    series = Series()
    for system, values in systems.items():
        for value in values:
            series.add(system, [Value("jobs a second", "1/s", value)])
    return series


def test_each_system_has_the_median_of_its_rounds() -> None:
    figures = series_of(ours=[1.0, 3.0, 2.0], floor=[4.0]).figures()

    assert [(figure.what, figure.n, figure.median, figure.least, figure.most) for figure in figures] == [
        ("jobs a second: ours", 3, 2.0, 1.0, 3.0),
        ("jobs a second: floor", 1, 4.0, 4.0, 4.0),
    ]


def test_a_ratio_is_taken_within_each_round() -> None:
    (ratio,) = series_of(ours=[10.0, 30.0], floor=[20.0, 20.0]).ratios(["jobs a second"], "ours")

    assert (ratio.what, ratio.unit, ratio.n, ratio.least, ratio.most) == (
        "jobs a second: ours / floor",
        "ratio",
        2,
        0.5,
        1.5,
    )


def test_rounds_that_the_other_one_has_not_make_no_ratio() -> None:
    (ratio,) = series_of(ours=[10.0, 30.0], floor=[20.0]).ratios(["jobs a second"], "ours")

    assert (ratio.n, ratio.median) == (1, 0.5)


def test_what_is_not_compared_makes_no_ratio() -> None:
    assert series_of(ours=[1.0], floor=[1.0]).ratios(["latency"], "ours") == []


def test_nothing_is_compared_with_zero() -> None:
    assert series_of(ours=[1.0], floor=[0.0]).ratios(["jobs a second"], "ours") == []


@pytest.mark.parametrize(("share", "value"), [(50, 50), (95, 95), (99, 99), (100, 100), (1, 1)])
def test_a_percentile_is_one_of_the_values(share: int, value: int) -> None:
    assert percentile(list(range(100, 0, -1)), share) == value


def test_of_nothing_there_is_no_percentile() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        percentile([], 50)


def test_the_slope_is_the_growth_from_one_value_to_the_next() -> None:
    assert slope([10, 12, 14, 16]) == pytest.approx(2)
    assert slope([5, 5, 5]) == 0
    assert slope([5]) == 0
