"""Who may do what, over every operation of the document: no key, a missing role, another user, another tenant."""

import pytest

from agentjobs.ledger.identity import Role
from tests.api.front import UNKNOWN, Front, told
from tests.api.matrix import Ids, Operation, operations

OPERATIONS = operations()
WITH_KEY = [operation for operation in OPERATIONS if operation.roles]
OF_ONE_THING = [operation for operation in OPERATIONS if operation.of_one_thing]

OPEN = {"health", "ready", "metrics"}
"""These need no API key, and tell nothing of anybody."""

HOLDERS = {"submit": "ann", "review": "rita", "admin": "adam"}
WRONG_KEYS = [None, "ajk_wrong", "wrong", "ajk_" + "x" * 43, "ajk_" + "x" * 10_000]
MALFORMED = [
    *(
        "%2e%2e",
        "%2e%2e%2fx",
        "a%2fb",
        "a%5cb",
        "%00",
        "a%0a",
        "%0d%0aX:1",
        "x" * 65,
        "x" * 1_001,
        "%c3%a4",
        "%ff",
    ),
    *("a'b", UNKNOWN + "%00", UNKNOWN + "%20", "*", "%25", "%EF%BC%91"),
]


def each(chosen: list[Operation]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("operation", chosen, ids=lambda operation: operation.id)


async def contents(front: Front) -> dict[str, str]:
    """What every table holds, as one hash each."""
    tables = await front.scene.rows("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
    each_one = " UNION ALL ".join(
        f"SELECT '{table['name']}' AS name, md5(coalesce(string_agg(t::text, ' ' ORDER BY t::text), '')) AS hash "
        f'FROM "{table["name"]}" AS t'
        for table in tables
    )
    return {row["name"]: row["hash"] for row in await front.scene.rows(each_one)}


def test_every_operation_but_health_names_its_roles() -> None:
    assert {operation.id for operation in OPERATIONS} - {operation.id for operation in WITH_KEY} == OPEN
    assert all(operation.roles <= set(Role) for operation in OPERATIONS)


@each(WITH_KEY)
async def test_a_missing_key_a_wrong_one_and_a_missing_role_are_refused_before_the_body_is_read(
    front: Front, operation: Operation
) -> None:
    strangers = [HOLDERS[role] for role in HOLDERS.keys() - operation.roles]
    before = await contents(front)

    without = [await operation.ask(front.with_key(key)) for key in WRONG_KEYS]
    missing = [await operation.ask(front.of(name)) for name in strangers]
    unread = [await operation.ask(front.of(name), json={"nonsense": 1}) for name in strangers]

    assert {answer.status_code for answer in without} == {401}
    assert all(answer.headers["www-authenticate"].startswith("Bearer realm=") for answer in without)
    assert {answer.status_code for answer in missing + unread} <= {403}
    for answer in missing:
        assert all(role in answer.json()["detail"] for role in operation.roles)
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert await contents(front) == before


@each([operation for operation in WITH_KEY if not operation.of_one_thing])
async def test_each_role_that_it_names_will_do(front: Front, operation: Operation) -> None:
    answers = [await operation.ask(front.of(HOLDERS[role])) for role in sorted(operation.roles)]

    assert all(answer.status_code < 500 and answer.status_code not in {401, 403} for answer in answers)


@each(OF_ONE_THING)
async def test_another_tenants_thing_is_as_unknown_as_any_to_every_role(
    front: Front, operation: Operation
) -> None:
    ids = await operation.thing(front)
    keys = {}
    for role in Role:
        keys[role], _ = await front.ledger.identity.create_key("globex", "ann", frozenset({role}))
    before = await contents(front)

    for role, key in keys.items():
        stranger = front.with_key(key)
        unknown = told(await operation.ask(stranger))
        assert unknown[0] == (404 if role in operation.roles else 403)
        for tried in (ids, _upper(ids)):
            assert told(await operation.ask(stranger, tried)) == unknown, role
        assert told(await operation.ask(stranger, ids, headers={"X-Tenant-Id": "acme"}))[0] == 403
    assert await contents(front) == before


@each(OF_ONE_THING)
async def test_a_malformed_id_is_as_unknown_as_any(front: Front, operation: Operation) -> None:
    gus = front.of("gus")
    unknown = told(await operation.ask(gus))

    answers = [told(await operation.ask(gus, {"id": malformed})) for malformed in MALFORMED]

    assert unknown[0] == 404
    assert answers == [unknown] * len(MALFORMED)


@each(OF_ONE_THING)
async def test_in_the_tenant_another_users_thing_is_unknown_and_the_named_roles_find_it(
    front: Front, operation: Operation
) -> None:
    ids = await operation.thing(front)

    if "submit" in operation.roles:
        ben = front.of("ben")
        assert told(await operation.ask(ben, ids)) == told(await operation.ask(ben))
    for role in sorted(operation.roles):
        found = await operation.ask(front.of(HOLDERS[role]), ids)
        assert found.status_code < 500, found.text
        assert found.status_code not in {401, 403, 404}, (role, found.text)


def _upper(ids: Ids) -> Ids:
    return {name: value if name == "step" else value.upper() for name, value in ids.items()}
