"""Sessions of people who signed in with a key.

The cookie names the key and is signed with what the ledger keeps of it (its hash). So every process of the API can
check it, also after a restart, there is no secret to make, share or rotate, and the cookie ends with its key. The
key itself is not in it. It is looked up at each request: a revoked key opens nothing from that moment on.
"""

import hashlib
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from itsdangerous import BadSignature, Signer, TimestampSigner

from agentjobs.domain.job import IDENTIFIER_PATTERN
from agentjobs.ledger.identity import Caller, HeldKey, Identity, Role

COOKIE: Final = "agentjobs_console"
IDLE_SECONDS: Final = 8 * 3600
"""A working day: who does nothing for so long signs in again."""

LONGEST_SECONDS: Final = 7 * 24 * 3600
"""Also a session that is used all the time ends, and with it a cookie that somebody copied."""

RENEW_SECONDS: Final = 300
"""Not at each request: a page that refreshes itself would set a cookie every two seconds."""

_SPLIT: Final = "~"
_KEY_ID: Final = re.compile(IDENTIFIER_PATTERN)


@dataclass(frozen=True)
class Session:
    """Somebody who is signed in. `form_token` stands in each form; `fresh_cookie` is to be set, if it is there."""

    caller: Caller
    form_token: str
    is_by_https: bool
    fresh_cookie: str | None = None

    def may(self, *roles: str) -> bool:
        """Whether the key has one of these roles."""
        return not self.caller.roles.isdisjoint(Role(role) for role in roles)


class Sessions:
    """Begins sessions and knows them again."""

    def __init__(self, identity: Identity, clock: Callable[[], datetime]) -> None:
        self._identity = identity
        self._clock = clock

    async def begin(self, caller: Caller, *, is_by_https: bool) -> Session | None:
        """A new session; None when the key was revoked meanwhile."""
        held = await self._identity.held_key(caller.key_id)
        if held is None:
            return None
        scheme = "https" if is_by_https else "http"
        value = _SPLIT.join((caller.key_id, str(self._now()), secrets.token_urlsafe(18), scheme))
        return self._session(held, value, is_fresh=True)

    async def known(self, cookie: str | None) -> Session | None:
        """The session of this cookie, if it still holds."""
        key_id = (cookie or "").partition(_SPLIT)[0]
        if cookie is None or not _KEY_ID.fullmatch(key_id):
            return None
        held = await self._identity.held_key(key_id)
        return None if held is None else self._checked(held, cookie)

    def _checked(self, held: HeldKey, cookie: str) -> Session | None:
        signer = self._signer(held)
        try:
            value, signed_at = signer.unsign(cookie, return_timestamp=True)
        except BadSignature:
            return None
        _, began, _, _ = value.decode().split(_SPLIT)
        idle, age = self._now() - signed_at.timestamp(), self._now() - int(began)
        if idle > IDLE_SECONDS or age > LONGEST_SECONDS:
            return None
        return self._session(held, value.decode(), is_fresh=idle > RENEW_SECONDS)

    def _session(self, held: HeldKey, value: str, *, is_fresh: bool) -> Session:
        fresh = self._signer(held).sign(value).decode() if is_fresh else None
        return Session(held.caller, _form_token(held, value), value.endswith("https"), fresh)

    def _signer(self, held: HeldKey) -> "_ClockedSigner":
        return _ClockedSigner(held, self._now)

    def _now(self) -> int:
        return int(self._clock().timestamp())


class _ClockedSigner(TimestampSigner):
    def __init__(self, held: HeldKey, now: Callable[[], int]) -> None:
        super().__init__(
            held.key_hash, salt="agentjobs.console.session", key_derivation="hmac", digest_method=hashlib.sha256
        )
        self._now = now

    def get_timestamp(self) -> int:
        return self._now()


def _form_token(held: HeldKey, value: str) -> str:
    signer = Signer(
        held.key_hash, salt="agentjobs.console.form", key_derivation="hmac", digest_method=hashlib.sha256
    )
    return signer.get_signature(value).decode()
