"""The audit log, for reading: who looked, decided, allowed and changed. It is written together with the deeds."""

from datetime import datetime
from typing import Any

from pydantic import field_validator

from agentjobs.ledger.database import Database
from agentjobs.ledger.records import Record


class AuditRecord(Record):
    """One deed. `details` holds ids, choices and amounts, and no content of a request."""

    id: str
    at: datetime
    actor: str
    action: str
    target: str
    note: str | None
    details: dict[str, Any]

    @field_validator("id", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> str:
        return str(value)


class Audit:
    """The audit log of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        tenant: str,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[AuditRecord]:
        """Latest first; `before` is the id of the last one of the page before."""
        rows = self._database.run.list_audit(
            self._database.pool,
            tenant=tenant,
            actor=actor,
            action=action,
            target=target,
            before=before,
            limit=limit,
        )
        return [AuditRecord.model_validate(dict(row)) async for row in rows]
