"""Tenants, API keys and grants."""

import hashlib
import secrets
import uuid
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from agentjobs.ledger.database import Database
from agentjobs.ledger.records import GrantRecord, KeyRecord

KEY_PREFIX = "ajk_"
"""Lets people and secret scanners recognise one of our keys."""


class Role(StrEnum):
    """What a key may do. Roles do not include each other: a key lists all that it has."""

    SUBMIT = "submit"
    REVIEW = "review"
    ADMIN = "admin"


class Caller(BaseModel):
    """Who a request comes from, as its key says; nothing else in the request can change it."""

    model_config = ConfigDict(frozen=True)

    key_id: str
    tenant: str
    user: str
    roles: frozenset[Role]
    seconds_left: float | None = None
    """How long the key still held when it was looked up, by the database's clock; None: it has no end."""


class HeldKey(NamedTuple):
    """A key that holds, and what is kept of it: enough to sign with, and not to get in with."""

    caller: Caller
    key_hash: bytes


class Identity:
    """Keys are shown once and stored as hashes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_tenant(self, tenant: str, *, by: Caller | None = None) -> bool:
        """Make the tenant; False when it was there."""
        return bool(await self._database.run.create_tenant(self._database.pool, id=tenant, **_by(by)))

    async def tenant_exists(self, tenant: str) -> bool:
        """Whether there is such a tenant."""
        return bool(await self._database.run.tenant_exists(self._database.pool, id=tenant))

    async def any_key_exists(self) -> bool:
        """Whether the installation has begun."""
        return bool(await self._database.run.any_key_exists(self._database.pool))

    async def create_key(
        self,
        tenant: str,
        user: str,
        roles: frozenset[Role],
        *,
        lifetime: timedelta | None = None,
        by: Caller | None = None,
    ) -> tuple[str, KeyRecord]:
        """A new key (its plain text, which is not stored, and its record), for so long. The tenant must exist."""
        plain = KEY_PREFIX + secrets.token_urlsafe(32)
        row = await self._database.run.create_key(
            self._database.pool,
            id=str(uuid.uuid4()),
            tenant=tenant,
            user=user,
            roles=sorted(roles),
            key_hash=_hash(plain),
            seconds=None if lifetime is None else lifetime.total_seconds(),
            **_by(by),
        )
        return plain, KeyRecord.model_validate(dict(row))

    async def find_caller(self, plain: str) -> Caller | None:
        """Whose key this is, if it is one and still holds."""
        row = await self._database.run.find_key(self._database.pool, key_hash=_hash(plain))
        return None if row is None else _caller(row)

    async def held_key(self, key_id: str) -> HeldKey | None:
        """The key of this id, if it still holds."""
        row = await self._database.run.find_key_by_id(self._database.pool, id=key_id)
        return None if row is None else HeldKey(_caller(row), row["key_hash"])

    async def may_make_tenants(self, key_id: str) -> bool:
        """Whether this is the admin key that the installation began with."""
        return bool(await self._database.run.is_first_admin_key(self._database.pool, id=key_id))

    async def keys(self, tenant: str) -> list[KeyRecord]:
        """All keys of the tenant, also the revoked ones."""
        rows = self._database.run.list_keys(self._database.pool, tenant=tenant)
        return [KeyRecord.model_validate(dict(row)) async for row in rows]

    async def key(self, tenant: str, key_id: str) -> KeyRecord | None:
        """One key of the tenant."""
        row = await self._database.run.read_key(self._database.pool, tenant=tenant, id=key_id)
        return None if row is None else KeyRecord.model_validate(dict(row))

    async def revoke_key(self, tenant: str, key_id: str, *, by: Caller | None = None) -> KeyRecord | None:
        """Revoke a key; repeating it changes nothing."""
        row = await self._database.run.revoke_key(self._database.pool, tenant=tenant, id=key_id, **_by(by))
        return None if row is None else KeyRecord.model_validate(dict(row))

    async def add_grant(
        self, tenant: str, user: str, action: str, *, granted_by: str, by: Caller | None = None
    ) -> GrantRecord:
        """Allow the user the action; repeating it changes nothing."""
        row = await self._database.run.add_grant(
            self._database.pool, tenant=tenant, user=user, action=action, granted_by=granted_by, **_by(by)
        )
        return GrantRecord.model_validate(dict(row))

    async def revoke_grant(self, tenant: str, user: str, action: str, *, by: Caller | None = None) -> bool:
        """Take the permission back; False when there was none."""
        return bool(
            await self._database.run.revoke_grant(
                self._database.pool, tenant=tenant, user=user, action=action, **_by(by)
            )
        )

    async def grants(self, tenant: str, user: str | None = None) -> list[GrantRecord]:
        """Grants of the tenant, or of one user."""
        rows = self._database.run.list_grants(self._database.pool, tenant=tenant, user=user)
        return [GrantRecord.model_validate(dict(row)) async for row in rows]


def _caller(row: Mapping[str, Any]) -> Caller:
    roles = frozenset(Role(role) for role in row["roles"])
    return Caller(
        key_id=row["id"], tenant=row["tenant"], user=row["user"], roles=roles, seconds_left=row["seconds_left"]
    )


def _by(caller: Caller | None) -> dict[str, str | None]:
    return {"by_tenant": caller.tenant if caller else None, "by_user": caller.user if caller else None}


def _hash(plain: str) -> bytes:
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).digest()
