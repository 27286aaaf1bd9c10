"""A client that repeats what it does not know the outcome of, and keeps a record of everything it did."""

import asyncio
import ssl
import time
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Final, TypeAlias

import httpx

from agentjobs.domain.approvals import Decision
from tests.chaos.evidence import Answer, Operation

Body: TypeAlias = Mapping[str, Any] | None
Headers: TypeAlias = Mapping[str, str] | None

PATIENCE_SECONDS = 90.0
PAUSE_SECONDS = 0.2
REQUEST_SECONDS = 5.0
PLAIN: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Nothing here speaks TLS: one context for all clients, for each would read all certificates anew."""

AT_ONCE = 50
"""Requests of one user on their way."""


class Refused(Exception):
    """The server said no."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the API answered {status}")
        self.status = status


class Client:
    """One user's way to the API. Each operation ends with an answer, however often it is asked for.

    apis: the addresses, asked in turn.
    """

    def __init__(
        self,
        apis: Sequence[str],
        key: str,
        history: list[Operation],
        *,
        user: str = "",
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"}, timeout=REQUEST_SECONDS, trust_env=False, verify=PLAIN
        )
        # httpx looks through all that wait for a connection each time that one is free: they wait here instead.
        self._room = asyncio.Semaphore(AT_ONCE)
        self._apis = cycle(apis)
        self._history = history
        self._user = user
        self._patience_seconds = patience_seconds

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def submit(self, text: str, key: str) -> str:
        """Accepted under this key; the job's id."""
        body = {"input": {"text": text}}
        shown = await self._insist("submit", key, "/v1/jobs", body, {"Idempotency-Key": f'"{key}"'})
        job_id: str = shown["id"]
        return job_id

    async def cancel(self, job_id: str) -> None:
        """Asked for. Raises Refused when the job is over or dead."""
        await self._insist("cancel", job_id, f"/v1/jobs/{job_id}/cancel", None)

    async def redrive(self, job_id: str) -> None:
        """Asked for; a repeat that is told "not open any more" was heard the first time."""
        try:
            await self._insist("redrive", job_id, f"/v1/dead-letters/{job_id}/redrive", {"note": "granted now"})
        except Refused as refused:
            if refused.status != 409 or not self._unknown_before("redrive", job_id):
                raise

    async def decide(self, job_id: str, decision: Decision, asked: Mapping[str, Any]) -> None:
        """This word on what is asked, as it was shown. Raises Refused where another was first, or it came late."""
        body = {"decision": decision, "note": "seen", "fingerprint": asked["fingerprint"]}
        await self._insist(decision, job_id, f"/v1/jobs/{job_id}/approvals/{asked['step']}", body)

    async def grant(self, user: str, action: str) -> None:
        """Given."""
        await self._insist("grant", user, "/v1/grants", {"user": user, "action": action})

    async def make_key(self, user: str) -> str:
        """A key with the role submit, of the same tenant."""
        made = await self._insist("key", user, "/v1/keys", {"user": user, "roles": ["submit"]})
        key: str = made["key"]
        return key

    async def state(self, job_id: str) -> str | None:
        """Where the job stands, if the API answers now. Reading is not on record."""
        try:
            answer = await self._http.get(f"{next(self._apis)}/v1/jobs/{job_id}")
        except httpx.TransportError:
            return None
        return str(answer.json()["state"]) if answer.status_code == 200 else None

    async def status_of(self, job_id: str) -> int:
        """What is answered to who asks for the job: asked until somebody knows."""
        return (await self._known(f"/v1/jobs/{job_id}")).status_code

    async def approvals(self, job_id: str) -> list[dict[str, Any]]:
        """What was and is asked for the job, as it is shown to people."""
        answer = await self._known(f"/v1/jobs/{job_id}/approvals")
        answer.raise_for_status()
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def _known(self, path: str) -> httpx.Response:
        async with asyncio.timeout(self._patience_seconds):
            while True:
                try:
                    answer = await self._http.get(f"{next(self._apis)}{path}")
                except httpx.TransportError:
                    continue
                if answer.status_code < 500:
                    return answer
                await asyncio.sleep(PAUSE_SECONDS)

    async def quota_in_use(self) -> int:
        """How many jobs of this user are in flight, as the API tells it."""
        answer = await self._http.get(f"{next(self._apis)}/v1/quota")
        answer.raise_for_status()
        return int(answer.json()["in_flight"]["in_use"])

    async def _insist(
        self,
        what: str,
        key: str,
        path: str,
        body: Body,
        headers: Headers = None,
    ) -> dict[str, Any]:
        async with asyncio.timeout(self._patience_seconds):
            while True:
                answered = await self._once(what, key, path, body, headers)
                if not isinstance(answered, float):
                    return answered
                await asyncio.sleep(answered)

    async def _once(self, what: str, key: str, path: str, body: Body, headers: Headers) -> dict[str, Any] | float:
        """The answer, or in how many seconds to ask again."""
        asked_at = time.time()

        def note(answer: Answer, status: int | None = None, job_id: str | None = None) -> None:
            self._history.append(Operation(what, key, answer, status, job_id, asked_at, time.time(), self._user))

        try:
            async with self._room:
                answer = await self._http.post(f"{next(self._apis)}{path}", json=body, headers=headers)
        except httpx.TransportError:
            note(Answer.UNKNOWN)
            return PAUSE_SECONDS
        if answer.status_code >= 500:
            note(Answer.UNKNOWN, answer.status_code)
            return PAUSE_SECONDS
        if answer.is_error:
            note(Answer.FAILED, answer.status_code)
            if _asks_to_come_again(answer):
                return float(answer.headers.get("retry-after", PAUSE_SECONDS))
            raise Refused(answer.status_code)
        shown: dict[str, Any] = answer.json()
        note(Answer.OK, answer.status_code, shown.get("id"))
        return shown

    def _unknown_before(self, what: str, key: str) -> bool:
        return any(
            operation.what == what and operation.key == key and operation.answer is Answer.UNKNOWN
            for operation in self._history
        )


def _asks_to_come_again(answer: httpx.Response) -> bool:
    """Over a quota, or the first request under this key is still on its way."""
    return answer.status_code == 429 or (answer.status_code == 409 and "retry-after" in answer.headers)
