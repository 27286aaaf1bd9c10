"""Who uses the stack: several tenants, with an admin, a user, and a quota for one of them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agentjobs.commands.dev_tenant import prepare_dev_tenant
from agentjobs.ledger.database import connect
from agentjobs.ledger.identity import Identity, Role
from agentjobs.ledger.quotas import OwnLimits, Quotas
from agentjobs.stack.info import DevKeys
from agentjobs.tools.tickets import TICKETS_CREATE

TENANTS = ("acme", "bolt", "cedar")
LIMITED = "cedar"
"""Its users may have only so many jobs in flight."""

IN_FLIGHT = 6
USER = "ann"
ADMIN = "root"
SECOND = "ben"
"""Another person who decides and redrives."""

PEOPLE: Mapping[str, frozenset[Role]] = {
    ADMIN: frozenset(Role),
    SECOND: frozenset({Role.REVIEW}),
    USER: frozenset({Role.SUBMIT}),
}


@dataclass
class Keys:
    """API keys by (tenant, user)."""

    of: dict[tuple[str, str], str]
    limit: int | None = None
    """Of jobs in flight, for users of LIMITED."""


def preparing(keys: Keys) -> Callable[[str, DevKeys | None], Awaitable[DevKeys]]:
    """What a stack does with its database before its programs start; the keys that it makes go there."""

    async def prepare(dsn: str, kept: DevKeys | None) -> DevKeys:
        dev = await prepare_dev_tenant(dsn, kept)
        keys.limit = IN_FLIGHT
        database = await connect(dsn, size=2, application_name="chaos")
        try:
            identity = Identity(database)
            for tenant in TENANTS:
                await identity.create_tenant(tenant)
                for user, roles in PEOPLE.items():
                    keys.of[tenant, user], _ = await identity.create_key(tenant, user, roles)
                await identity.add_grant(tenant, USER, TICKETS_CREATE, granted_by=ADMIN)
            by = await identity.find_caller(dev.admin_key)
            assert by is not None
            limits = OwnLimits(in_flight=IN_FLIGHT, per_minute=0, queue_length=0, running_cap=200)
            await Quotas(database).set(LIMITED, limits, by=by)
        finally:
            await database.close()
        return dev

    return prepare
