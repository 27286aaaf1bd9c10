"""Keys: how they are given, and how long they are remembered."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from httpx import AsyncClient

from agentjobs.api import authentication
from agentjobs.api.authentication import CACHE_SECONDS, Authenticator
from agentjobs.api.guesses import AT_ONCE
from agentjobs.api.problems import Problem
from agentjobs.ledger.identity import Caller, Identity, Role
from tests.api.front import Front

WRONG = "ajk_" + "x" * 43


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class CountedIdentity(Identity):
    """Counts how often the ledger is asked."""

    asked = 0

    async def find_caller(self, plain: str) -> Caller | None:
        self.asked += 1
        return await super().find_caller(plain)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def identity(front: Front) -> CountedIdentity:
    return CountedIdentity(front.ledger.database)


@pytest.fixture
def authenticator(identity: CountedIdentity, clock: Clock) -> Authenticator:
    return Authenticator(identity, clock)


async def test_a_key_is_looked_up_once_in_five_seconds(
    front: Front, authenticator: Authenticator, identity: CountedIdentity, clock: Clock
) -> None:
    key = front.keys["ann"]

    first = await authenticator.caller_of(key)
    clock.now += CACHE_SECONDS - 0.1
    second = await authenticator.caller_of(key)

    assert first is not None
    assert second == first
    assert (first.tenant, first.user, first.roles) == ("acme", "ann", frozenset({Role.SUBMIT}))
    assert identity.asked == 1


async def test_a_key_that_another_process_revokes_is_taken_no_longer_than_that(
    front: Front, authenticator: Authenticator, clock: Clock
) -> None:
    key = front.keys["ann"]
    caller = await authenticator.caller_of(key)
    assert caller is not None
    await front.ledger.identity.revoke_key("acme", caller.key_id)

    clock.now += CACHE_SECONDS

    assert await authenticator.caller_of(key) is None


async def test_a_key_that_is_forgotten_is_looked_up_again(
    front: Front, authenticator: Authenticator, identity: CountedIdentity
) -> None:
    ann = await authenticator.caller_of(front.keys["ann"])
    await authenticator.caller_of(front.keys["ben"])
    assert ann is not None

    authenticator.forget(ann.key_id)
    for name in ("ann", "ben"):
        await authenticator.caller_of(front.keys[name])

    assert identity.asked == 3


async def test_a_wrong_key_is_not_remembered(authenticator: Authenticator, identity: CountedIdentity) -> None:
    answers = [await authenticator.caller_of(WRONG) for _ in range(3)]

    assert answers == [None] * 3
    assert identity.asked == 3


async def test_what_cannot_be_a_key_costs_no_look_up(
    authenticator: Authenticator, identity: CountedIdentity
) -> None:
    unlike = [
        "password",
        "ajk_wrong",
        WRONG + "x",
        WRONG[:-1] + "!",
        WRONG[:-1] + "\u00e4",
        "",
        "ajk_" + "x" * 10_000,
    ]

    answers = [await authenticator.caller_at("10.0.0.1", key) for key in unlike * 20]

    assert set(answers) == {None}
    assert identity.asked == 0


async def test_no_more_than_a_bounded_number_is_remembered(
    front: Front, authenticator: Authenticator, identity: CountedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "CACHE_SIZE", 2)

    for name in ("ann", "ben", "rita", "rita"):
        assert await authenticator.caller_of(front.keys[name]) is not None

    assert identity.asked == 3


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER  {} "])
async def test_the_scheme_is_written_as_one_likes(front: Front, form: str) -> None:
    header = {"Authorization": form.format(front.keys["ann"])}

    assert (await front.of(None).get("/v1/jobs", headers=header)).status_code == 200


@pytest.mark.parametrize(
    "form",
    ["{}", "Basic {}", "Token {}", "Bearer", "Bearer ", "Bearer {} x", "Bearer {},", "Bearer\xa0{}", "Bearer ä"],
)
async def test_another_form_is_refused(front: Front, form: str) -> None:
    header = [(b"Authorization", form.format(front.keys["ann"]).encode("latin-1"))]

    assert (await front.of(None).get("/v1/jobs", headers=header)).status_code == 401


async def test_two_authorizations_are_refused(front: Front) -> None:
    both = [("Authorization", f"Bearer {front.keys[name]}") for name in ("ann", "gus")]

    assert (await front.of(None).get("/v1/jobs", headers=both)).status_code == 401


@pytest.mark.parametrize("where", ["query", "cookie", "header"])
async def test_a_key_counts_nowhere_else(front: Front, where: str) -> None:
    key = front.keys["ann"]
    stranger = front.of(None)

    match where:
        case "query":
            response = await stranger.get("/v1/jobs", params={"access_token": key})
        case "cookie":
            response = await stranger.get("/v1/jobs", headers={"Cookie": f"Authorization=Bearer {key}"})
        case _:
            headers = {"X-Api-Key": key, "Proxy-Authorization": f"Bearer {key}"}
            response = await stranger.get("/v1/jobs", headers=headers)

    assert response.status_code == 401


async def test_a_key_is_stored_as_a_hash_only(front: Front) -> None:
    stored = str(await front.scene.rows("SELECT * FROM api_keys"))

    assert all(key not in stored for key in front.keys.values())


async def test_a_thousand_wrong_keys_from_one_address_cost_few_look_ups(
    front: Front, authenticator: Authenticator, identity: CountedIdentity
) -> None:
    async def guess(number: int) -> str:
        try:
            await authenticator.caller_at("10.0.0.1", f"ajk_{number:043}")
        except Problem as refused:
            return f"{refused.status_code} {refused.headers}"
        return "wrong"

    heard = Counter(await asyncio.gather(*(guess(number) for number in range(1_000))))

    assert heard == {"wrong": AT_ONCE, "429 {'Retry-After': '1'}": 1_000 - AT_ONCE}
    assert identity.asked == AT_ONCE


async def test_after_too_many_wrong_keys_only_newcomers_of_that_address_wait(
    front: Front, authenticator: Authenticator, clock: Clock
) -> None:
    for name in ("ann", "ben"):
        await authenticator.caller_at("10.0.0.1", front.keys[name])
    for _ in range(AT_ONCE):
        await authenticator.caller_at("10.0.0.1", WRONG)

    with pytest.raises(Problem):
        await authenticator.caller_at("10.0.0.1", front.keys["rita"])
    elsewhere = await authenticator.caller_at("10.0.0.2", front.keys["gus"])
    clock.now += CACHE_SECONDS * 1.01 / 5
    soon = await authenticator.caller_at("10.0.0.1", front.keys["rita"])
    known = [await authenticator.caller_at("10.0.0.1", front.keys[name]) for name in ("ann", "ben")]

    assert elsewhere is not None
    assert soon is not None
    assert all(known)


async def test_right_keys_use_up_nothing(front: Front, authenticator: Authenticator) -> None:
    caller = await authenticator.caller_at("10.0.0.1", front.keys["ann"])
    assert caller is not None

    for _ in range(AT_ONCE * 2):
        authenticator.forget(caller.key_id)
        assert await authenticator.caller_at("10.0.0.1", front.keys["ann"]) == caller


async def test_a_key_that_expires_is_not_remembered_beyond_its_end(
    front: Front, authenticator: Authenticator, identity: CountedIdentity, clock: Clock
) -> None:
    minute = timedelta(seconds=60)
    key, _ = await front.ledger.identity.create_key("acme", "tim", frozenset({Role.SUBMIT}), lifetime=minute)
    shorter = "UPDATE api_keys SET expires_at = now() + make_interval(secs => $1) WHERE \"user\" = 'tim'"
    await front.scene.execute(shorter, 2.0)

    assert await authenticator.caller_of(key) is not None
    clock.now += CACHE_SECONDS / 2
    await front.scene.execute(shorter, 0.0)

    assert await authenticator.caller_of(key) is None
    assert identity.asked == 2


async def test_many_requests_at_once_with_a_key_that_is_not_known_yet_are_one_look_up(
    front: Front, authenticator: Authenticator, identity: CountedIdentity
) -> None:
    callers = await asyncio.gather(
        *(authenticator.caller_at("10.0.0.1", front.keys["ann"]) for _ in range(AT_ONCE * 4))
    )

    assert {caller.user for caller in callers if caller} == {"ann"}
    assert all(callers)
    assert identity.asked == 1


async def test_a_request_that_is_given_up_takes_no_look_up_from_the_others(
    front: Front, authenticator: Authenticator
) -> None:
    first, second = (asyncio.create_task(authenticator.caller_at("", front.keys["ann"])) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()

    assert await second is not None


async def test_addresses_of_one_network_are_one_guesser(authenticator: Authenticator) -> None:
    for number in range(AT_ONCE):
        await authenticator.caller_at(f"2001:db8:0:1::{number:x}", WRONG)

    with pytest.raises(Problem):
        await authenticator.caller_at("2001:db8:0:1:ffff::1", WRONG)
    assert await authenticator.caller_at("2001:db8:0:2::1", WRONG) is None


async def test_the_challenge_says_what_is_wrong(front: Front, ann: AsyncClient) -> None:
    nothing = await front.of(None).get("/v1/jobs")
    wrong = await front.with_key(WRONG).get("/v1/jobs")
    too_little = await ann.get("/v1/keys")

    assert [answer.status_code for answer in (nothing, wrong, too_little)] == [401, 401, 403]
    assert [answer.headers["www-authenticate"] for answer in (nothing, wrong, too_little)] == [
        'Bearer realm="agentjobs"',
        'Bearer realm="agentjobs", error="invalid_token"',
        'Bearer realm="agentjobs", error="insufficient_scope", scope="admin"',
    ]
