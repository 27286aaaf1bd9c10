from agentjobs.commands.dev_tenant import prepare_dev_tenant
from agentjobs.ledger.database import connect
from agentjobs.ledger.identity import Identity, Role
from agentjobs.stack.info import DevKeys


async def test_keys_are_valid_and_stay_the_same(database_url: str) -> None:
    first = await prepare_dev_tenant(database_url, None)

    assert await prepare_dev_tenant(database_url, first) == first
    database = await connect(database_url, size=2, application_name="tests")
    identity = Identity(database)
    submitter, admin = await identity.find_caller(first.api_key), await identity.find_caller(first.admin_key)
    grants = [(grant.user, grant.action) for grant in await identity.grants("dev")]
    assert submitter is not None
    assert admin is not None
    assert (submitter.tenant, submitter.user, submitter.roles) == ("dev", "dev", frozenset({Role.SUBMIT}))
    assert (admin.tenant, admin.roles) == ("dev", frozenset(Role))
    assert await identity.may_make_tenants(admin.key_id)
    assert grants == [("dev", "tickets:create")]
    await database.close()


async def test_kept_keys_of_another_database_are_replaced(database_url: str) -> None:
    kept = DevKeys(api_key="ajk_old", admin_key="ajk_older")

    keys = await prepare_dev_tenant(database_url, kept)

    assert keys != kept
    assert await prepare_dev_tenant(database_url, keys) == keys
