"""The model that every system asks."""

import json
from typing import Any

import pytest

from benchmarks.peers.model import body_of as peers_body
from benchmarks.peers.model import request_text
from benchmarks.peers.model_process import Question, reply_to

DECISION = {"type": "json_schema", "json_schema": {"schema": {"properties": {"decision": {}}}}}
PLAN = {"category": "question", "urgency": "normal", "language": "en", "subject": "x"}


def body_of(steps: int, done: list[str], **more: Any) -> dict[str, Any]:
    """A step of a job of ours."""
    data = {"request": request_text("job-1", steps, 0.3), "plan": PLAN, "done": [{"tool": tool} for tool in done]}
    return {"model": "double", "messages": [{"role": "user", "content": json.dumps(data)}], **more}


def decided(steps: int, done: list[str]) -> str:
    body = body_of(steps, done, response_format=DECISION)
    tool: str = json.loads(reply_to(body, Question.of(body)).text or "")["decision"]["tool"]
    return tool


def test_a_job_of_many_steps_searches_until_its_calls_come_to_that_number() -> None:
    done: list[str] = []
    while (tool := decided(10, done)) != "nothing_more":
        done.append(tool)

    assert done == ["search_tickets"] * 6 + ["create_ticket"]
    assert len(done) + 3 == 10  # and a plan, a word that nothing more is needed, an answer


def test_a_job_of_one_step_searches_once() -> None:
    assert [decided(1, []), decided(1, ["search_tickets"])] == ["search_tickets", "create_ticket"]


@pytest.mark.parametrize(("steps", "waits"), [(1, 0.0), (10, 0.3)])
def test_only_a_job_of_many_steps_waits_in_its_later_calls(steps: int, waits: float) -> None:
    assert Question.of(body_of(steps, ["search_tickets"])).seconds == waits


def test_a_call_that_is_made_again_goes_by_the_same_name_and_the_next_one_by_another() -> None:
    first, again, following = (Question.of(body_of(10, done)).call for done in ([], [], ["search_tickets"]))

    assert first == again != following


def test_a_peers_call_is_told_by_its_number() -> None:
    question = Question.of(json.loads(peers_body("job-7", 3, 0.5)))

    assert (question.job, question.call, question.seconds) == ("job-7", "3", 0.5)
