"""A stand-in for the HTTP API: the same paths, shapes and refusals, with time that stands still."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx

from tests.commands.documents import Document, job_document

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
URL = "http://127.0.0.1:8080"
API_KEY = "ajk_submit"
ADMIN_KEY = "ajk_admin"
ROLES = {API_KEY: {"submit"}, ADMIN_KEY: {"submit", "review", "admin"}}
NEEDED = {
    **{"jobs": "submit", "dead-letters": "review", "keys": "admin", "grants": "admin"},
    "audit": "review",
    **{"waiting": "submit", "budget": "submit", "PUT budget": "admin", "quota": "submit", "PUT quota": "admin"},
}

Trouble = Callable[[httpx.Request], httpx.Response]


def problem(
    status: int, title: str, detail: str, headers: dict[str, str] | None = None, **more: Any
) -> httpx.Response:
    document = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return httpx.Response(
        status,
        content=json.dumps(document),
        headers={"Content-Type": "application/problem+json", **(headers or {})},
    )


def answering(response: httpx.Response) -> Trouble:
    return lambda _: response


def refused(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("[Errno 111] Connection refused", request=request)


class FakeApi:
    """Jobs, dead letters, keys and grants in memory. `troubles` befall the next requests, one each."""

    def __init__(self) -> None:
        self.jobs: dict[str, list[Document]] = {}
        self.attempts: dict[str, list[Document]] = {}
        self.letters: dict[str, Document] = {}
        self.keys: dict[str, Document] = {}
        self.grants: list[Document] = []
        self.audit: list[Document] = []
        self.flow: list[Document] = []
        self.temporal_ui: str | None = None
        self.limits: Document = {"tokens": None, "usd": None}
        self.quota: Document = {
            "tenant": "dev",
            "user": "ann",
            "in_flight": {"limit": 5, "in_use": 2},
            "per_minute": {"limit": 120, "in_use": 3},
            "queue_length": {"limit": None, "in_use": 4},
            "running": {"limit": 200, "in_use": 1},
            "own": {"in_flight": None, "per_minute": None, "queue_length": None},
        }
        self.troubles: list[Trouble] = []
        self.becomes: Callable[[str], list[Document]] = lambda job_id: [job_document(job_id)]
        self.requests: list[httpx.Request] = []
        self._one_at_a_time = threading.Lock()
        self._accepted: dict[str, tuple[str, Document]] = {}

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self.handle)

    def lose_the_answer(self, request: httpx.Request) -> httpx.Response:
        """What was asked is done, and the connection breaks."""
        self._answer(request)
        raise httpx.ReadError("connection reset", request=request)

    def handle(self, request: httpx.Request) -> httpx.Response:
        with self._one_at_a_time:
            self.requests.append(request)
            trouble = self.troubles.pop(0) if self.troubles else self._answer
            return trouble(request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if key not in ROLES:
            return problem(401, "Unauthorized", "the key is not known")
        _, _, collection, *rest = request.url.path.split("/")
        needed = NEEDED.get(f"{request.method} {collection}") or NEEDED[collection]
        if needed not in ROLES[key]:
            return problem(403, "Forbidden", f"this needs the role {needed}")
        answer: httpx.Response = getattr(self, "_" + collection.replace("-", "_"))(request, rest)
        return answer

    def _jobs(self, request: httpx.Request, rest: list[str]) -> httpx.Response:
        match request.method, rest:
            case "POST", []:
                return self._accept(request)
            case "GET", []:
                return _page(request, [states[0] for states in self.jobs.values()])
            case _, [job_id, *_] if job_id not in self.jobs:
                return problem(404, "Not Found", f"no job {job_id}")
            case "GET", [job_id]:
                states = self.jobs[job_id]
                return httpx.Response(200, json=states.pop(0) if len(states) > 1 else states[0])
            case "GET", [job_id, "attempts"]:
                return httpx.Response(200, json={"items": self.attempts.get(job_id, [])})
            case "POST", [job_id, "cancel"]:
                return self._cancel(job_id)
        return problem(405, "Method Not Allowed", request.method)

    def _accept(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        key = request.headers.get("Idempotency-Key", f"none-{len(self.requests)}")
        if not body["input"]["text"].strip():
            errors = [{"pointer": "/input/text", "detail": "must not be blank"}]
            return problem(422, "Unprocessable Content", "the request is not valid", errors=errors)
        if key not in self._accepted:
            self._accepted[key] = (request.content.decode(), self._new_job())
        told, job = self._accepted[key]
        if told != request.content.decode():
            return problem(422, "Unprocessable Content", "this key was used for another request")
        headers = {"Location": f"/v1/jobs/{job['id']}", "Retry-After": "1"}
        return httpx.Response(202, json=job, headers=headers)

    def _new_job(self) -> Document:
        job_id = f"job-{len(self._accepted) + 1}"
        self.jobs.setdefault(job_id, self.becomes(job_id))
        return job_document(job_id)

    def _cancel(self, job_id: str) -> httpx.Response:
        job = self.jobs[job_id][0]
        if job["state"] in {"succeeded", "discarded", "dead"}:
            return problem(409, "Conflict", f"the job is {job['state']}")
        job["cancel_requested_at"] = "2026-03-01T12:00:00Z"
        return httpx.Response(202, json=job)

    def _waiting(self, request: httpx.Request, rest: list[str]) -> httpx.Response:
        jobs = [states[0] for states in self.jobs.values() if states[0]["state"] == "retry_wait"]
        jobs.sort(key=lambda job: str(job["next_attempt_at"]))
        by_category: dict[str, list[Document]] = {}
        for job in jobs:
            by_category.setdefault(job["failure"]["category"], []).append(job)
        counts = [
            {"category": category, "count": len(alike), "next_at": alike[0]["next_attempt_at"]}
            for category, alike in by_category.items()
        ]
        links = {"self": "/v1/waiting", "temporal_ui": self.temporal_ui}
        shown = jobs[: int(request.url.params["limit"])]
        return httpx.Response(200, json={"items": shown, "counts": counts, "total": len(jobs), "links": links})

    def _budget(self, request: httpx.Request, rest: list[str]) -> httpx.Response:
        if request.method == "PUT":
            self.limits = json.loads(request.content)
        spent, held_back = {"tokens": 18, "usd": "0.500000"}, {"tokens": 0, "usd": "0.000000"}
        month = {"month": "2026-03", "limits": self.limits, "spent": spent, "held_back": held_back}
        return httpx.Response(200, json=month)

    def _quota(self, request: httpx.Request, rest: list[str]) -> httpx.Response:
        return httpx.Response(200, json=self.quota)

    def _dead_letters(self, request: httpx.Request, rest: list[str]) -> httpx.Response:
        match request.method, rest:
            case "GET", []:
                return _page(request, list(self.letters.values()))
            case "GET", ["report"]:
                return self._report()
            case _, [letter_id, *_] if letter_id not in self.letters:
                return problem(404, "Not Found", f"no dead letter {letter_id}")
            case "GET", [letter_id]:
                return httpx.Response(200, json={**self.letters[letter_id], "input": {"text": "It\nhurts."}})
            case "POST", [letter_id, "redrive" | "discard" as verb]:
                return self._decide(letter_id, verb, json.loads(request.content))
        return problem(405, "Method Not Allowed", request.method)

    def _decide(self, letter_id: str, verb: str, body: Document) -> httpx.Response:
        if not body["note"].strip():
            return problem(422, "Unprocessable Content", "the note must not be blank")
        letter = self.letters[letter_id]
        if letter["state"] != "open":
            return problem(409, "Conflict", f"the dead letter is {letter['state']}")
        letter.update(state=f"{verb}_requested", note=body["note"])
        return httpx.Response(202, json=letter)

    def _report(self) -> httpx.Response:
        rows = [("bug", 1, "2026-03-01T11:00:00Z"), ("access_denied", 10, "2026-02-27T12:00:00Z")]
        kinds = [
            {
                "reason": reason,
                "agent": "support-triage",
                "policy_version": "1",
                "count": count,
                "oldest_at": oldest,
            }
            for reason, count, oldest in rows
        ]
        counted = {"open": kinds, "by_state": {"open": 11, "redriven": 2}, "open_count": 11}
        ages = {"under_1_hour": 0, "under_1_day": 1, "under_7_days": 10, "older": 0}
        outcomes = {"recovered": 2, "died_again": 1, "cancelled": 0, "undecided": 0, "discarded": 3}
        more = {
            **{"oldest_at": "2026-02-27T12:00:00Z", "ages": ages, "as_of": "2026-03-01T12:00:00Z"},
            **{"since": "2026-02-28T12:00:00Z", "unit": "hour", "flow": self.flow, "outcomes": outcomes},
            "recovery": {"median_seconds": 90.0, "p90_seconds": 7_200.0},
        }
        return httpx.Response(200, json=counted | more)

    def _audit(self, request: httpx.Request, rest: list[str]) -> httpx.Response:
        return _page(request, self.audit)

    def _keys(self, request: httpx.Request, rest: list[str]) -> httpx.Response:
        match request.method, rest:
            case "POST", []:
                return self._create_key(json.loads(request.content))
            case "GET", []:
                return httpx.Response(200, json={"items": list(self.keys.values())})
            case "DELETE", [key_id] if key_id in self.keys:
                self.keys[key_id]["revoked_at"] = "2026-03-01T12:00:00Z"
                return httpx.Response(204)
        return problem(404, "Not Found", "no such key")

    def _create_key(self, body: Document) -> httpx.Response:
        record = {
            "id": f"key-{len(self.keys) + 1}",
            "tenant": body.get("tenant", "dev"),
            "user": body["user"],
            "roles": body["roles"],
            "created_at": "2026-03-01T12:00:00Z",
            "expires_at": None,
            "revoked_at": None,
        }
        self.keys[record["id"]] = record
        return httpx.Response(201, json={**record, "key": "ajk_secret"})

    def _grants(self, request: httpx.Request, rest: list[str]) -> httpx.Response:
        asked = dict(request.url.params)
        matching = [grant for grant in self.grants if asked.items() <= grant.items()]
        if request.method == "POST":
            grant = {**json.loads(request.content), "tenant": "dev", "granted_by": "dev", "created_at": None}
            self.grants.append(grant | {"created_at": "2026-03-01T12:00:00Z"})
            return httpx.Response(201, json=self.grants[-1])
        if request.method == "GET":
            return httpx.Response(200, json={"items": matching})
        if not matching:
            return problem(404, "Not Found", "there is no such grant")
        self.grants.remove(matching[0])
        return httpx.Response(204)


def _page(request: httpx.Request, items: list[Document]) -> httpx.Response:
    asked = dict(request.url.params)
    for name in ("state", "agent", "reason", "actor", "action", "target"):
        items = [item for item in items if name not in asked or item[name] == asked[name]]
    start, limit = int(asked.get("cursor", 0)), int(asked.get("limit", 50))
    if not 1 <= limit <= 200:
        return problem(422, "Unprocessable Content", "limit must be 1 to 200")
    following = str(start + limit) if start + limit < len(items) else None
    return httpx.Response(200, json={"items": items[start : start + limit], "next_cursor": following})
