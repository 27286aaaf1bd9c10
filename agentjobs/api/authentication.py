"""Who calls: by bearer key (RFC 6750), and by nothing else in the request."""

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from agentjobs.api.problems import Problem
from agentjobs.ledger.identity import Caller, Identity, Role

CACHE_SECONDS = 5.0
"""How long a revoked key may still be taken."""

CACHE_SIZE = 10_000

# Only for the OpenAPI document: the check is ours, since theirs answers 403 without a challenge.
scheme = HTTPBearer(auto_error=False, description="An API key: `Authorization: Bearer ajk_...`")


class Authenticator:
    """Finds the caller of a key, and remembers it for seconds. Wrong keys are not remembered."""

    def __init__(self, identity: Identity, clock: Callable[[], float] = monotonic) -> None:
        self._identity = identity
        self._clock = clock
        self._known: dict[str, tuple[float, Caller]] = {}

    async def caller_of(self, key: str) -> Caller | None:
        """Whose key this is."""
        known = self._known.get(key)
        if known is not None and known[0] > self._clock():
            return known[1]
        caller = await self._identity.find_caller(key)
        self._known.pop(key, None)
        if caller is not None:
            self._remember(key, caller)
        return caller

    def _remember(self, key: str, caller: Caller) -> None:
        if len(self._known) >= CACHE_SIZE:
            self._known.clear()
        self._known[key] = (self._clock() + CACHE_SECONDS, caller)


async def authenticated(request: Request, _: Annotated[object, Depends(scheme)]) -> Caller:
    """The caller. Raises 401 with a challenge."""
    given = request.headers.getlist("authorization")
    kind, _, key = (given[0] if len(given) == 1 else "").partition(" ")
    if kind.lower() == "bearer" and key.strip():
        authenticator: Authenticator = request.app.state.authenticator
        caller = await authenticator.caller_of(key.strip())
        if caller is not None:
            return caller
    raise Problem(
        401,
        "unauthenticated",
        "Give one valid API key: Authorization: Bearer ajk_...",
        headers={"WWW-Authenticate": 'Bearer realm="agentjobs"'},
    )


def having(*roles: Role) -> Callable[[Caller], Awaitable[Caller]]:
    """A dependency: the caller, who must have one of these roles."""

    async def checked(caller: Annotated[Caller, Depends(authenticated)]) -> Caller:
        if caller.roles.isdisjoint(roles):
            wanted = " or ".join(roles)
            raise Problem(403, "role_missing", f"This needs a key with the role {wanted}.")
        return caller

    return checked


Anyone = Annotated[Caller, Depends(having(*Role))]
Submitter = Annotated[Caller, Depends(having(Role.SUBMIT))]
Reviewer = Annotated[Caller, Depends(having(Role.REVIEW))]
Admin = Annotated[Caller, Depends(having(Role.ADMIN))]


def visible_user(caller: Caller) -> str | None:
    """Whose jobs the caller sees: its own, or (None) the whole tenant's."""
    return caller.user if caller.roles.isdisjoint({Role.REVIEW, Role.ADMIN}) else None
