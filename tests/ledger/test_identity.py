"""Keys are shown once and kept as hashes; a key that does not hold finds nobody."""

from datetime import timedelta

import asyncpg
import pytest

from agentjobs.ledger.identity import KEY_PREFIX, Caller, Role
from tests.ledger.scene import Scene

SUBMIT = frozenset({Role.SUBMIT})


async def test_a_key_says_who_calls(scene: Scene) -> None:
    plain, record = await scene.ledger.identity.create_key("acme", "ann", frozenset({Role.SUBMIT, Role.REVIEW}))

    caller = await scene.ledger.identity.find_caller(plain)

    assert caller == Caller(
        key_id=record.id, tenant="acme", user="ann", roles=frozenset({Role.SUBMIT, Role.REVIEW})
    )


async def test_a_key_is_nowhere_in_its_row_in_plain(scene: Scene) -> None:
    plain, record = await scene.ledger.identity.create_key("acme", "ann", SUBMIT)

    rows = await scene.rows("SELECT api_keys.*, api_keys::text AS whole, encode(key_hash, 'escape') FROM api_keys")

    secret = plain.removeprefix(KEY_PREFIX)
    assert plain.startswith(KEY_PREFIX)
    assert len(secret) >= 43  # 256 bits
    assert secret not in str(rows)
    assert secret.encode().hex() not in str(rows)
    assert secret not in str(record)


async def test_no_two_keys_are_the_same(scene: Scene) -> None:
    made = [await scene.ledger.identity.create_key("acme", "ann", SUBMIT) for _ in range(20)]

    assert len({plain for plain, _ in made}) == len({record.id for _, record in made}) == 20


@pytest.mark.parametrize(
    "expires_in", [timedelta(seconds=-1), timedelta(days=-400), timedelta(0)], ids=["just", "long ago", "now"]
)
async def test_an_expired_key_finds_nobody(scene: Scene, expires_in: timedelta) -> None:
    plain, _ = await scene.ledger.identity.create_key("acme", "ann", SUBMIT, lifetime=expires_in)

    assert await scene.ledger.identity.find_caller(plain) is None


async def test_a_key_holds_until_it_expires(scene: Scene) -> None:
    plain, _ = await scene.ledger.identity.create_key("acme", "ann", SUBMIT, lifetime=timedelta(minutes=1))

    assert await scene.ledger.identity.find_caller(plain) is not None


async def test_a_revoked_key_finds_nobody_and_stays_listed(scene: Scene) -> None:
    identity = scene.ledger.identity
    plain, record = await identity.create_key("acme", "ann", SUBMIT)

    first = await identity.revoke_key("acme", record.id)
    second = await identity.revoke_key("acme", record.id)

    assert await identity.find_caller(plain) is None
    assert first == second == (await identity.keys("acme"))[0]
    assert first is not None
    assert first.revoked_at is not None


@pytest.mark.parametrize("wrong", ["", "ajk_", "ajk_wrong", "\x00", "\ud800", "x" * 10_000, "' OR true --"])
async def test_what_is_no_key_finds_nobody(scene: Scene, wrong: str) -> None:
    await scene.ledger.identity.create_key("acme", "ann", SUBMIT)

    assert await scene.ledger.identity.find_caller(wrong) is None


async def test_a_tenant_sees_and_revokes_only_its_own_keys(scene: Scene) -> None:
    identity = scene.ledger.identity
    await identity.create_tenant("other")
    plain, record = await identity.create_key("acme", "ann", SUBMIT)

    assert await identity.keys("other") == []
    assert await identity.key("other", record.id) is None
    assert await identity.revoke_key("other", record.id) is None
    assert await identity.find_caller(plain) is not None
    assert await identity.key("acme", record.id) == record


async def test_a_key_of_a_tenant_that_does_not_exist_is_refused(scene: Scene) -> None:
    with pytest.raises(asyncpg.ForeignKeyViolationError, match="api_keys_tenant_fkey"):
        await scene.ledger.identity.create_key("nobody", "ann", SUBMIT)


async def test_a_tenant_is_made_once(scene: Scene) -> None:
    identity = scene.ledger.identity

    assert [await identity.create_tenant("new"), await identity.create_tenant("new")] == [True, False]
    assert (await identity.tenant_exists("new"), await identity.tenant_exists("newer")) == (True, False)


async def test_only_the_first_admin_key_may_make_tenants(scene: Scene) -> None:
    identity = scene.ledger.identity
    _, submit = await identity.create_key("acme", "ann", SUBMIT)
    _, first = await identity.create_key("acme", "root", frozenset({Role.ADMIN}))
    _, second = await identity.create_key("acme", "root", frozenset({Role.ADMIN}))

    may = [await identity.may_make_tenants(record.id) for record in (submit, first, second)]

    assert may == [False, True, False]


async def test_a_grant_is_given_once_and_taken_back(scene: Scene) -> None:
    identity = scene.ledger.identity
    first = await identity.add_grant("acme", "ann", "tickets:create", granted_by="rita")
    second = await identity.add_grant("acme", "ann", "tickets:create", granted_by="mallory")

    listed = await identity.grants("acme")
    taken = [await identity.revoke_grant("acme", "ann", "tickets:create") for _ in range(2)]

    assert listed == [first] == [second]
    assert first.granted_by == "rita"
    assert (taken, await identity.grants("acme")) == ([True, False], [])


async def test_grants_are_listed_by_tenant_and_user(scene: Scene) -> None:
    identity = scene.ledger.identity
    await identity.create_tenant("other")
    for tenant, user in (("acme", "bob"), ("acme", "ann"), ("other", "ann")):
        await identity.add_grant(tenant, user, "tickets:create", granted_by="rita")

    assert [grant.user for grant in await identity.grants("acme")] == ["ann", "bob"]
    assert [grant.tenant for grant in await identity.grants("acme", "ann")] == ["acme"]


async def test_who_did_what_is_in_the_audit_log(scene: Scene) -> None:
    identity = scene.ledger.identity
    rita = Caller(key_id="key", tenant="acme", user="rita", roles=frozenset({Role.ADMIN}))

    await identity.create_tenant("other", by=rita)
    _, key = await identity.create_key("other", "ann", SUBMIT, by=rita)
    await identity.revoke_key("other", key.id, by=rita)
    await identity.add_grant("acme", "ann", "tickets:create", granted_by="rita", by=rita)
    await identity.revoke_grant("acme", "ann", "tickets:create", by=rita)
    await identity.revoke_grant("acme", "ann", "tickets:create", by=rita)  # there is none any more

    rows = await scene.rows("SELECT tenant, actor, action, target FROM audit_log ORDER BY id")
    assert [(row["tenant"], row["actor"], row["action"], row["target"]) for row in rows] == [
        ("acme", "rita", "create_tenant", "other"),
        ("acme", "rita", "create_key", key.id),
        ("acme", "rita", "revoke_key", key.id),
        ("acme", "rita", "add_grant", "ann tickets:create"),
        ("acme", "rita", "revoke_grant", "ann tickets:create"),
    ]
