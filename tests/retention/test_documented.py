"""docs/enqueue.md and docs/retention.md say what the code does."""

import re
from types import ModuleType

import asyncpg
import pytest

from agentjobs.domain.retention import CONTENT_DAYS, JOBS_DAYS
from agentjobs.enqueue import EnqueueError, InvalidRequest, NoTransaction, UnknownTenant
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.docs.pages import DOCS, marked_block, section
from tests.ledger.scene import Scene


@pytest.fixture
async def dsn(scene: Scene, postgres: EmbeddedPostgres) -> str:
    """The database, with the table of the page's application."""
    await scene.execute("DROP TABLE IF EXISTS orders")
    await scene.execute("CREATE TABLE orders (number serial, item text NOT NULL CHECK (item <> ''))")
    return postgres.dsn((await scene.rows("SELECT current_database() AS name"))[0]["name"])


async def test_the_example_takes_an_order_and_enqueues_its_job(scene: Scene, dsn: str) -> None:
    shown = ModuleType("shown")
    exec(marked_block(DOCS / "enqueue.md", "enqueue"), shown.__dict__)

    job_id = await shown.take_order(dsn, "a printer")
    with pytest.raises(asyncpg.CheckViolationError):
        await shown.take_order(dsn, "")

    assert (await scene.job(job_id)).user == "shop"
    assert await scene.rows("SELECT key, job_id FROM idempotency_keys") == [{"key": "order-1", "job_id": job_id}]
    assert (await scene.count("orders"), await scene.count("jobs")) == (1, 1)


def test_every_error_of_enqueue_is_told() -> None:
    text = section(DOCS / "enqueue.md", "Enqueue in your own transaction")
    named = {"KeyReused", "JobErased", "KeyInFlight", "QuotaExceeded", "UnknownAgent"}
    ours = {error.__name__ for error in (InvalidRequest, NoTransaction, UnknownTenant)}

    assert ours == {error.__name__ for error in EnqueueError.__subclasses__()}
    assert [name for name in ours | named if f"`{name}`" not in text] == []


def test_the_days_are_those_of_the_code() -> None:
    table = section(DOCS / "retention.md", "What is kept for how long")

    assert re.findall(r"`AGENTJOBS_RETENTION_(CONTENT|JOBS)_DAYS`, (\d+)", table) == [
        ("CONTENT", str(CONTENT_DAYS)),
        ("JOBS", str(JOBS_DAYS)),
    ]
