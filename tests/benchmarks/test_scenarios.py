"""What scenarios make of what they have seen, and how systems are changed for them."""

import json

import pytest

from benchmarks.calls import Calls, Line
from benchmarks.peers.cpu import milliseconds_each
from benchmarks.peers.systems import CELERY, FLOOR, OURS, SYSTEMS, asking_the_model, for_many
from benchmarks.rounds import ordered
from benchmarks.scenarios.crash import LIMIT_SECONDS, MOVING, values_of
from benchmarks.scenarios.elsewhere import medians
from benchmarks.scenarios.scenario import jobs_of
from benchmarks.scenarios.submission import with_two
from benchmarks.scenarios.throughput import batches_of


def test_jobs_never_have_the_same_name_twice() -> None:
    assert len({job.id for job in [*jobs_of(3), *jobs_of(3)]}) == 6


@pytest.mark.parametrize(
    ("jobs", "batches"), [(300, [300]), (500, [500]), (1_200, [500, 500, 200]), (5_000, [500] * 10)]
)
def test_many_jobs_are_handed_in_by_batches(jobs: int, batches: list[int]) -> None:
    assert batches_of(jobs) == batches


def test_cpu_is_told_for_one_job_by_process_and_in_all() -> None:
    each = milliseconds_each({"api": 1.0, "worker": 2.0}, {"api": 1.5, "worker": 3.0, "late": 0.5}, 100)

    assert each == pytest.approx({"api": 5.0, "worker": 10.0, "late": 5.0, "all": 20.0})


def test_all_jobs_move_when_the_last_one_does() -> None:
    values = told({"job-1": 0.5, "job-2": 1.5})

    assert (values[MOVING], values["jobs stuck for 90 s"], values["jobs that ended well"]) == (1.5, 0, 2)


def test_a_job_that_never_moves_is_told_as_stuck_for_as_long_as_was_waited() -> None:
    values = told({"job-1": 0.5})

    assert (values[MOVING], values["jobs stuck for 90 s"]) == (LIMIT_SECONDS, 1)


def told(moving: dict[str, float]) -> dict[str, float]:
    calls = Calls((Line("asked", 1, "job-1", "plan"),))
    return {value.what: value.value for value in values_of(moving, calls, jobs_of(2), over=len(moving))}


def test_the_order_of_the_systems_changes_from_round_to_round() -> None:
    assert list(ordered([OURS, FLOOR], 0)) == [OURS, FLOOR]
    assert list(ordered([OURS, FLOOR], 1)) == [FLOOR, OURS]


def test_only_ours_is_changed_to_ask_the_model_that_all_ask_anyway() -> None:
    assert asking_the_model(FLOOR) == FLOOR
    assert asking_the_model(OURS).settings["AGENTJOBS_MODEL"] == "openai-chat:double"


def test_one_worker_process_gets_room_for_as_many_jobs_as_are_wanted_at_once() -> None:
    assert for_many(CELERY, 1_000).processes["worker"][-1] == "1000"
    assert for_many(OURS, 1_000).settings["AGENTJOBS_WORKER_ACTIVITIES"] == "1000"


def test_a_second_api_is_started_as_the_first() -> None:
    assert with_two(OURS).processes["api-2"] == OURS.processes["api"]


def test_a_script_is_read_by_the_json_after_its_table() -> None:
    figures = [{"what": "of the other", "unit": "s", "n": 1, "median": 0.5, "least": 0.1, "most": 1.0}]

    (value,) = medians(f"what  unit\na  b\n\n{json.dumps(figures, indent=1)}\n")

    assert (value.what, value.unit, value.value) == ("of the other", "s", 0.5)


def test_systems_go_by_their_names_and_say_where_their_form_is_from() -> None:
    assert all(name == system.name and system.documentation for name, system in SYSTEMS.items())
    assert all(set(system.ready) == set(system.processes) for system in SYSTEMS.values())
