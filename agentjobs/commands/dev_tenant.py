"""The dev stack's database: at this version's schema, with one tenant, its keys and its agent's grant."""

from agentjobs.ledger.database import Database, connect
from agentjobs.ledger.identity import Identity, Role
from agentjobs.ledger.migrate import migrate
from agentjobs.stack.info import DevKeys

TENANT = "dev"
USER = "dev"
GRANTED = "tickets:create"


async def prepare_dev_tenant(dsn: str, kept: DevKeys | None) -> DevKeys:
    """Keys that are valid in this database: the kept ones where it knows them."""
    await migrate(dsn)
    database = await connect(dsn, size=2, application_name="agentjobs-dev")
    try:
        return await _keys(database, kept)
    finally:
        await database.close()


async def _keys(database: Database, kept: DevKeys | None) -> DevKeys:
    identity = Identity(database)
    if kept and await identity.find_caller(kept.api_key) and await identity.find_caller(kept.admin_key):
        return kept
    await identity.create_tenant(TENANT)
    # The admin key first: the first of an installation may make other tenants.
    admin_key, _ = await identity.create_key(TENANT, USER, frozenset(Role))
    api_key, _ = await identity.create_key(TENANT, USER, frozenset({Role.SUBMIT}))
    await identity.add_grant(TENANT, USER, GRANTED, granted_by=USER)
    return DevKeys(api_key=api_key, admin_key=admin_key)
