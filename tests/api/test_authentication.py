"""Keys: how they are given, and how long they are remembered."""

import asyncio

import pytest

from agentjobs.api import authentication
from agentjobs.api.authentication import CACHE_SECONDS, Authenticator
from agentjobs.ledger.identity import Caller, Identity, Role
from tests.api.front import Front


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
    answers = [await authenticator.caller_of("ajk_wrong") for _ in range(3)]

    assert answers == [None] * 3
    assert identity.asked == 3


async def test_what_cannot_be_a_key_costs_no_look_up(
    authenticator: Authenticator, identity: CountedIdentity
) -> None:
    assert await authenticator.caller_of("password") is None
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


async def test_many_wrong_keys_at_once_are_as_many_refusals(front: Front) -> None:
    stranger = front.of(None)

    answers = await asyncio.gather(
        *(stranger.get("/v1/jobs", headers={"Authorization": f"Bearer ajk_{n}"}) for n in range(200))
    )

    assert {answer.status_code for answer in answers} == {401}
