"""Who calls: by bearer key (RFC 6750), and by nothing else in the request."""

import asyncio
import math
import re
from collections.abc import Callable
from time import monotonic
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from agentjobs.api.guesses import Guesses
from agentjobs.api.problems import Problem
from agentjobs.ledger.identity import KEY_PREFIX, Caller, Identity, Role
from agentjobs.tracing import names, spans

CACHE_SECONDS = 5.0
"""How long another process may still take a key that was revoked; the one that revokes it stops at once. One that
expires is taken until just then."""

CACHE_SIZE = 10_000
KEY_FORM = re.compile(re.escape(KEY_PREFIX) + "[A-Za-z0-9_-]{43}")
TENANT_HEADERS = ("x-tenant-id", "x_tenant_id")

# Only for the OpenAPI document: the check is ours, since theirs answers 403 without a challenge.
scheme = HTTPBearer(auto_error=False, description="An API key: `Authorization: Bearer ajk_...`")


class Authenticator:
    """Finds the caller of a key, and remembers it for seconds. Wrong keys are not remembered."""

    def __init__(self, identity: Identity, clock: Callable[[], float] = monotonic) -> None:
        self._identity = identity
        self._clock = clock
        self._guesses = Guesses(clock)
        self._known: dict[str, tuple[float, Caller]] = {}
        self._asked: dict[str, asyncio.Task[Caller | None]] = {}

    async def caller_at(self, peer: str, key: str) -> Caller | None:
        """Whose key this is. Raises Problem 429 when too many wrong ones have come from this peer.

        A key that was right before is looked up all the same: nobody locks it out from where it is used.
        """
        if key in self._known or key in self._asked or not KEY_FORM.fullmatch(key):
            return await self.caller_of(key)
        self._guesses.take(peer)
        try:
            caller = await self.caller_of(key)
        except BaseException:
            self._guesses.give_back(peer)
            raise
        if caller is not None:
            self._guesses.give_back(peer)
        return caller

    async def caller_of(self, key: str) -> Caller | None:
        """Whose key this is."""
        if not KEY_FORM.fullmatch(key):
            return None  # nor a look-up
        known = self._known.get(key)
        if known is not None and known[0] > self._clock():
            return known[1]
        return await asyncio.shield(self._asked.get(key) or self._ask(key))

    def _ask(self, key: str) -> asyncio.Task[Caller | None]:
        """One look-up, however many requests with this key wait for it."""
        asked = self._asked[key] = asyncio.create_task(self._look_up(key))
        asked.add_done_callback(lambda _: self._asked.pop(key, None))
        return asked

    async def _look_up(self, key: str) -> Caller | None:
        caller = await self._identity.find_caller(key)
        self._known.pop(key, None)
        if caller is not None:
            self._remember(key, caller)
        return caller

    def forget(self, key_id: str) -> None:
        """The key is revoked."""
        self._known = {key: known for key, known in self._known.items() if known[1].key_id != key_id}

    def _remember(self, key: str, caller: Caller) -> None:
        if len(self._known) >= CACHE_SIZE:
            self._known.clear()
        self._known[key] = (self._clock() + min(CACHE_SECONDS, _seconds_left(caller)), caller)


class Having:
    """A dependency: the caller, who must have one of these roles. Its route asks before it reads the body."""

    def __init__(self, *roles: Role) -> None:
        self.roles = roles

    async def __call__(self, request: Request, _: Annotated[object, Depends(scheme)]) -> Caller:
        """The caller, for the endpoint."""
        return await self.admit(request)

    async def admit(self, request: Request) -> Caller:
        """The caller, once a request. Raises Problem 401, or 403."""
        if not hasattr(request.state, "caller"):
            request.state.caller = await _authenticated(request)
        caller: Caller = request.state.caller
        spans.about({names.TENANT: caller.tenant})
        if caller.roles.isdisjoint(self.roles):
            wanted = " or ".join(self.roles)
            raise Problem(
                403,
                "role_missing",
                f"This needs a key with the role {wanted}.",
                headers=_challenge(error="insufficient_scope", scope=" ".join(self.roles)),
            )
        return caller


async def _authenticated(request: Request) -> Caller:
    given = request.headers.getlist("authorization")
    kind, _, key = (given[0] if len(given) == 1 else "").partition(" ")
    if kind.lower() == "bearer":
        authenticator: Authenticator = request.app.state.authenticator
        caller = await authenticator.caller_at(_peer(request), key.strip(" "))
        if caller is not None:
            _check_tenant(request, caller)
            return caller
    error = {"error": "invalid_token"} if given else {}
    detail = "Give one valid API key: Authorization: Bearer ajk_..."
    raise Problem(401, "unauthenticated", detail, headers=_challenge(**error))


def _seconds_left(caller: Caller) -> float:
    # By the database's clock: ours may be wrong by hours, and a key would then be taken beyond its end.
    return math.inf if caller.seconds_left is None else caller.seconds_left


def _challenge(**parameters: str) -> dict[str, str]:
    # RFC 6750, section 3.
    told = {"realm": "agentjobs", **parameters}
    return {"WWW-Authenticate": "Bearer " + ", ".join(f'{name}="{value}"' for name, value in told.items())}


def _peer(request: Request) -> str:
    return request.client.host if request.client else ""


def _check_tenant(request: Request, caller: Caller) -> None:
    # The tenant is the key's. Who names another one expects an answer that is not the one to come.
    named = {value for name in TENANT_HEADERS for value in request.headers.getlist(name)}
    if named - {caller.tenant}:
        raise Problem(403, "other_tenant", "The tenant is that of the key: leave X-Tenant-Id out.")


Anyone = Annotated[Caller, Depends(Having(*Role))]
Submitter = Annotated[Caller, Depends(Having(Role.SUBMIT))]
Reviewer = Annotated[Caller, Depends(Having(Role.REVIEW))]
Admin = Annotated[Caller, Depends(Having(Role.ADMIN))]


def visible_user(caller: Caller) -> str | None:
    """Whose jobs the caller sees: its own, or (None) the whole tenant's."""
    return caller.user if caller.roles.isdisjoint({Role.REVIEW, Role.ADMIN}) else None
