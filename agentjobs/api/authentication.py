"""Who calls: by bearer key (RFC 6750), and by nothing else in the request."""

from collections.abc import Callable
from time import monotonic
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from agentjobs.api.problems import Problem
from agentjobs.ledger.identity import KEY_PREFIX, Caller, Identity, Role

CACHE_SECONDS = 5.0
"""How long another process may still take a key that was revoked or has expired; the one that revokes it stops
at once."""

CACHE_SIZE = 10_000
TENANT_HEADERS = ("x-tenant-id", "x_tenant_id")

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
        if not key.startswith(KEY_PREFIX):
            return None
        known = self._known.get(key)
        if known is not None and known[0] > self._clock():
            return known[1]
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
        self._known[key] = (self._clock() + CACHE_SECONDS, caller)


class Having:
    """A dependency: the caller, who must have one of these roles. Its route asks before it reads the body."""

    def __init__(self, *roles: Role) -> None:
        self._roles = roles

    async def __call__(self, request: Request, _: Annotated[object, Depends(scheme)]) -> Caller:
        """The caller, for the endpoint."""
        return await self.admit(request)

    async def admit(self, request: Request) -> Caller:
        """The caller, once a request. Raises Problem 401, or 403."""
        if not hasattr(request.state, "caller"):
            request.state.caller = await _authenticated(request)
        caller: Caller = request.state.caller
        if caller.roles.isdisjoint(self._roles):
            wanted = " or ".join(self._roles)
            raise Problem(403, "role_missing", f"This needs a key with the role {wanted}.")
        return caller


async def _authenticated(request: Request) -> Caller:
    given = request.headers.getlist("authorization")
    kind, _, key = (given[0] if len(given) == 1 else "").partition(" ")
    if kind.lower() == "bearer":
        authenticator: Authenticator = request.app.state.authenticator
        caller = await authenticator.caller_of(key.strip())
        if caller is not None:
            _check_tenant(request, caller)
            return caller
    raise Problem(
        401,
        "unauthenticated",
        "Give one valid API key: Authorization: Bearer ajk_...",
        headers={"WWW-Authenticate": 'Bearer realm="agentjobs"'},
    )


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
