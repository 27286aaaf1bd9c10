"""One table of moves, told three times: in the domain, in the schema and in the docs."""

import re
from itertools import product
from pathlib import Path

import pytest

from agentjobs.domain.states import FINAL, LIVE, TRANSITIONS, JobState, may_move
from agentjobs.ledger.migrate import migrations

DIAGRAM = Path(__file__).parents[2] / "docs" / "states.md"
MOVES = {(before.value, after.value) for before, following in TRANSITIONS.items() for after in following}


def test_the_table_speaks_of_every_state() -> None:
    assert set(TRANSITIONS) == set(JobState)


def test_a_state_is_final_exactly_when_nothing_follows_it() -> None:
    assert {state for state in JobState if not TRANSITIONS[state]} == FINAL
    assert {JobState.SUCCEEDED, JobState.CANCELLED, JobState.DISCARDED} == FINAL


def test_every_state_is_live_or_dead_or_final_and_only_one_of_them() -> None:
    kinds = [LIVE, FINAL, frozenset({JobState.DEAD})]

    assert [sum(state in kind for kind in kinds) for state in JobState] == [1] * len(JobState)


def test_every_state_can_be_reached_and_left_for_an_end() -> None:
    assert _reachable_from(JobState.PENDING) == set(JobState)
    assert [state for state in JobState if not _reachable_from(state) & FINAL] == []


def test_a_dead_job_never_succeeds_without_running_again() -> None:
    assert TRANSITIONS[JobState.DEAD] == {JobState.RUNNING, JobState.DISCARDED}


@pytest.mark.parametrize(("before", "after"), list(product(JobState, JobState)))
def test_a_job_may_stay_or_move_by_the_table(before: JobState, after: JobState) -> None:
    assert may_move(before, after) == (before is after or (before.value, after.value) in MOVES)


def test_the_schema_allows_exactly_the_moves_of_the_table() -> None:
    sql = "\n".join(text for _, text in migrations())

    clause = _between(sql, "CREATE FUNCTION job_may_move", "ELSE before IS NULL AND after = 'pending'")
    following = re.findall(r"WHEN '(\w+)' THEN after IN \(([^)]+)\)", clause)
    pairs = [(before, after) for before, listed in following for after in re.findall(r"'(\w+)'", listed)]

    assert len(pairs) == len(set(pairs))
    assert set(pairs) == MOVES


def test_the_schema_knows_exactly_the_states_of_the_table() -> None:
    sql = "\n".join(text for _, text in migrations())

    clause = _between(sql, "CONSTRAINT jobs_state_known CHECK", "))")

    assert set(re.findall(r"'(\w+)'", clause)) == {state.value for state in JobState}


def test_the_schema_calls_the_same_states_final() -> None:
    sql = "\n".join(text for _, text in migrations())

    clause = _between(sql, "CONSTRAINT jobs_finalized_exactly_when_final CHECK", ")))")

    assert set(re.findall(r"'(\w+)'", clause)) == {state.value for state in FINAL}


def test_the_diagram_draws_exactly_the_moves_of_the_table() -> None:
    arrows = _arrows()

    drawn = [arrow for arrow in arrows if "[*]" not in arrow]

    assert len(drawn) == len(set(drawn))
    assert set(drawn) == MOVES


def test_the_diagram_begins_at_pending_and_ends_at_the_final_states() -> None:
    arrows = _arrows()

    assert [after for before, after in arrows if before == "[*]"] == [JobState.PENDING]
    assert {before for before, after in arrows if after == "[*]"} == {state.value for state in FINAL}


def test_the_page_has_a_paragraph_for_every_state() -> None:
    headings = re.findall(r"^### `(\w+)`\n\n\S", DIAGRAM.read_text("utf-8"), re.MULTILINE)

    assert headings == [state.value for state in JobState]


def _arrows() -> list[tuple[str, str]]:
    diagram = _between(DIAGRAM.read_text("utf-8"), "```mermaid\nstateDiagram-v2\n", "```")
    return re.findall(r"^\s*(\S+) --> ([\w*\[\]]+)", diagram, re.MULTILINE)


def _between(text: str, start: str, end: str) -> str:
    assert text.count(start) == 1
    return text.split(start, 1)[1].split(end, 1)[0]


def _reachable_from(start: JobState) -> set[JobState]:
    seen, waiting = {start}, [start]
    while waiting:
        new = TRANSITIONS[waiting.pop()] - seen
        seen |= new
        waiting.extend(new)
    return seen
