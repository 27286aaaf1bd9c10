"""What the HTTP API answers, as documents that a test may change."""

from typing import Any

Document = dict[str, Any]


def job_document(job_id: str, state: str = "pending", **changed: Any) -> Document:
    return {
        "id": job_id,
        "state": state,
        "agent": "support-triage",
        "policy_version": "1",
        "priority": 3,
        "step": None,
        "attempt": 0,
        "next_attempt_at": None,
        "failure": None,
        "usage": {
            **{"tokens_in": 0, "tokens_out": 0, "usd": "0.000000"},
            **{"tokens_reserved": 0, "usd_reserved": "0.000000"},
        },
        "budget": {"tokens": None, "usd": None, "steps": None},
        "generation": 0,
        "cancel_requested_at": None,
        "deadline_at": "2026-03-01T13:00:00Z",
        "created_at": "2026-03-01T11:58:00Z",
        "started_at": None,
        "updated_at": "2026-03-01T11:59:00Z",
        "finalized_at": None,
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "result": None,
        "links": {
            "self": f"/v1/jobs/{job_id}",
            "attempts": f"/v1/jobs/{job_id}/attempts",
            "cancel": f"/v1/jobs/{job_id}/cancel",
            "temporal_ui": None,
        },
        **changed,
    }


def succeeded(job_id: str, answer: str = "A ticket is open.") -> Document:
    effects = [
        {
            "step": "step-1.create_ticket",
            "tool": "create_ticket",
            "state": "completed",
            "receipt": {"ticket": "T-1"},
        }
    ]
    return job_document(
        job_id,
        "succeeded",
        step="answer",
        attempt=1,
        finalized_at="2026-03-01T12:00:00Z",
        result={"answer": answer, "plan": None, "effects": effects},
    )


def dead(job_id: str, message: str = "the tracker refused the key") -> Document:
    step = "step-1.create_ticket"
    failure = {"category": "access_denied", "reason": "access_denied", "message": message, "step": step}
    return job_document(job_id, "dead", step=step, attempt=1, failure=failure)


def waiting(job_id: str, until: str, **changed: Any) -> Document:
    step = "step-1.model"
    failure = {"category": "rate_limited", "reason": "rate_limited", "message": "slow down", "step": step}
    known = {"step": step, "attempt": 2, "next_attempt_at": until, "failure": failure}
    return job_document(job_id, "retry_wait", **{**known, **changed})


def attempt_document(**changed: Any) -> Document:
    return {
        "id": 1,
        "step": "step-1.create_ticket",
        "run_id": "r",
        "attempt": 1,
        "worker": "worker-1-of-a-machine",
        "outcome": "succeeded",
        "category": None,
        "message": None,
        "wait_seconds": None,
        "next_attempt_at": None,
        "model": "offline",
        "tokens_in": 10,
        "tokens_out": 5,
        "usd": "0.000010",
        "tokens_reserved": 0,
        "usd_reserved": "0.000000",
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "started_at": "2026-03-01T11:00:00Z",
        "finished_at": "2026-03-01T11:00:02.500000Z",
        **changed,
    }


def letter_document(letter_id: str, **changed: Any) -> Document:
    return {
        "id": letter_id,
        "generation": 1,
        "state": "open",
        "category": "access_denied",
        "reason": "access_denied",
        "message": "the tracker refused the key",
        "step": "step-1.create_ticket",
        "agent": "support-triage",
        "policy_version": "1",
        "worker": "worker-1",
        "worker_build": "b-7",
        "origin": "api",
        "submitted_by": "ann",
        "review_id": "rev-1",
        "attempts": 1,
        "effects_done": [],
        "effects_in_doubt": ["step-1.create_ticket"],
        "died_at": "2026-03-01T11:00:00Z",
        "alerted_at": None,
        "resolved_at": None,
        "resolved_by": None,
        "note": None,
        "links": {
            "self": f"/v1/dead-letters/{letter_id}",
            "job": f"/v1/jobs/{letter_id}",
            "redrive": f"/v1/dead-letters/{letter_id}/redrive",
            "discard": f"/v1/dead-letters/{letter_id}/discard",
            "temporal_ui": None,
        },
        **changed,
    }
