"""No statement of a job's way reads a table that grows with the jobs."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.conftest import fresh_database
from tests.ledger.crowd import GROWING, fill

JOBS = 4_000
"""Enough that the planner would rather not read a table from end to end."""

OF_EVERY_JOB = (
    "find_key",
    "accept_job",
    "find_by_key",
    "only_one_starter",
    "claim_starts",
    "mark_started",
    "claim_commands",
    "mark_delivered",
    "claim_desk_words",
    "postpone",
    "begin_effect",
    "send_again",
    "lock_effect",
    "complete_effect",
    "read_effect",
    "fail_attempt",
    "abandon_attempt",
    "remember_response",
    "write_text",
    "close_to_steps",
    "abandon_effect",
    "adopt_effect",
    "give_up_effect",
    "admit_call",
    "report_call",
    "search_tickets",
    "create_ticket",
    "finish",
)
OF_SOME = (
    "request_cancel",
    "ask_approval",
    "decide_approval",
    "approvals_of_job",
    "lock_job",
    "bury",
    "resume",
    "claim_waits",
    "read_job",
    "standing",
    "trace_of_job",
    "attempts_of_job",
    "events_of_job",
    "effects_of_job",
    "news",
    "stand_of_job",
    "read_dead_letter",
    "read_letter_input",
    "attempts_of_letter",
    "deaths_of_letter",
    "request_resolution",
    "still_requested",
    "requeue_start",
    "requeue_cancel",
)
AT_EVERY_LOOK = (
    "is_lost",
    "workers_without_lock",
    "workers_to_take_over",
    "words_lost",
    "claim_redrive_calls",
    "claim_webhook_deliveries",
    "erasures_under_way",
    "claim_workflow_looks",
)


@pytest.fixture(scope="module")
async def full(postgres: EmbeddedPostgres) -> AsyncIterator[Ledger]:
    """A ledger with thousands of old jobs."""
    async with fresh_database(postgres) as url:
        opened = await Ledger.open(url, size=2, application_name="tests")
        await fill(opened, JOBS)
        yield opened
        await opened.close()


@pytest.mark.parametrize("name", OF_EVERY_JOB + OF_SOME + AT_EVERY_LOOK)
async def test_it_finds_its_rows_by_an_index(full: Ledger, name: str) -> None:
    async with full.database.transaction() as connection:
        plan = await _generic_plan(connection, full.database, name)

    assert _read_whole(plan) == []


async def test_a_statement_that_reads_a_whole_table_is_noticed(full: Ledger) -> None:
    async with full.database.transaction() as connection:
        plan = await _plan(connection, "SELECT id FROM attempts WHERE category = $1")

    assert _read_whole(plan) == ["attempts"]


async def _generic_plan(connection: Connection, database: Database, name: str) -> dict[str, Any]:
    return await _plan(connection, getattr(database.run, name).sql)


async def _plan(connection: Connection, statement: str) -> dict[str, Any]:
    """The one plan for all values, to which PostgreSQL goes over after some runs."""
    await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    await connection.execute(f"PREPARE looked_at AS {statement}")
    try:
        count = await connection.fetchval(
            "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'looked_at'"
        )
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        (row,) = await connection.fetch(f"EXPLAIN (FORMAT JSON) EXECUTE looked_at{values}")
    finally:
        await connection.execute("DEALLOCATE looked_at")
    plan: dict[str, Any] = json.loads(row[0])[0]["Plan"]
    return plan


def _read_whole(plan: dict[str, Any]) -> list[str]:
    whole = {
        node["Relation Name"]
        for node in _nodes(plan)
        if node.get("Relation Name") in GROWING and node["Node Type"] == "Seq Scan"
    }
    return sorted(whole)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)
