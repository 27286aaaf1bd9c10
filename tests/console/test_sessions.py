"""Sessions: begun with a key, ended with it."""

from datetime import timedelta

import pytest

from agentjobs.api import guesses
from agentjobs.console.app import mount
from agentjobs.console.sessions import COOKIE, IDLE_SECONDS, LONGEST_SECONDS, RENEW_SECONDS
from agentjobs.ledger.identity import Role
from tests.api.front import new_app
from tests.console.visitors import ORIGIN, Clock, Console, checked, sign_in


async def test_a_key_signs_in_and_is_not_in_the_cookie(console: Console) -> None:
    visitor = console.stranger()

    answer = await sign_in(visitor, console.keys["rita"])

    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/")
    assert console.keys["rita"][4:12] not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/console" in cookie
    assert "Secure" not in cookie
    assert "rita@acme" in (await visitor.see("")).text.replace(" ", "")


async def test_by_tls_the_cookie_never_goes_back_without(console: Console, clock: Clock) -> None:
    visitor = console.stranger("https://console.test")

    answer = await sign_in(visitor, console.keys["rita"], origin="https://console.test")
    clock.move(timedelta(seconds=RENEW_SECONDS + 1))
    renewed = await visitor.client.get("/console/")

    assert "Secure" in answer.headers["set-cookie"]
    assert "Secure" in renewed.headers["set-cookie"]


@pytest.mark.parametrize("key", ["", "ajk_wrong", "nonsense", "ajk_" + "x" * 190, "\0"])
async def test_a_wrong_key_is_told_and_opens_nothing(console: Console, key: str) -> None:
    visitor = console.stranger()

    answer = await sign_in(visitor, key)

    assert answer.status_code in {400, 401}
    assert "set-cookie" not in answer.headers
    assert key == "" or key not in answer.text
    await visitor.see("sign-in")


async def test_signing_in_from_another_page_is_refused(console: Console) -> None:
    answer = await sign_in(console.stranger(), console.keys["rita"], origin="https://evil.test")

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("next", "target"),
    [
        ("/console/dead", "/console/dead"),
        ("https://evil.test/", "/console/"),
        ("//evil.test/console/", "/console/"),
        ("/console/../v1/jobs", "/console/"),
        ("/console/\\evil", "/console/"),
        ("/console//evil.test", "/console/"),
        ("javascript:alert(1)", "/console/"),
    ],
)
async def test_after_signing_in_one_is_sent_to_pages_of_ours_only(
    console: Console, next: str, target: str
) -> None:
    answer = await sign_in(console.stranger(), console.keys["rita"], next=next)

    assert answer.headers["location"] == target


async def test_signing_out_ends_it_in_this_browser(console: Console) -> None:
    rita = await console.visitor("rita")

    answer = await rita.send("sign-out")

    assert answer.headers["location"] == "/console/sign-in"
    assert (await rita.client.get("/console/jobs")).status_code == 303


async def test_a_revoked_key_ends_its_session_at_once(console: Console) -> None:
    rita = await console.visitor("rita")

    await console.ledger.identity.revoke_key("acme", console.key_ids["rita"])

    assert (await rita.client.get("/console/jobs")).status_code == 303


async def test_an_expired_key_ends_its_session(console: Console) -> None:
    rita = await console.visitor("rita")

    await console.scene.execute(
        "UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1", console.key_ids["rita"]
    )

    assert (await rita.client.get("/console/jobs")).status_code == 303


async def test_roles_are_those_that_the_key_has_now(console: Console) -> None:
    rita = await console.visitor("rita")

    await console.scene.execute("UPDATE api_keys SET roles = '{submit}' WHERE id = $1", console.key_ids["rita"])

    await rita.see("dead", status=403)


async def test_who_does_nothing_for_a_working_day_signs_in_again(console: Console, clock: Clock) -> None:
    rita = await console.visitor("rita")

    clock.move(timedelta(seconds=IDLE_SECONDS + 2))

    assert (await rita.client.get("/console/jobs")).status_code == 303


async def test_who_does_something_now_and_then_stays_for_a_week(console: Console, clock: Clock) -> None:
    rita = await console.visitor("rita")
    seen = []

    for _ in range(LONGEST_SECONDS // IDLE_SECONDS + 1):
        clock.move(timedelta(seconds=IDLE_SECONDS - 2))
        seen.append((await rita.client.get("/console/usage")).status_code)

    assert set(seen[:-1]) == {200}
    assert seen[-1] == 303


async def test_the_cookie_is_not_set_anew_at_each_request(console: Console) -> None:
    rita = await console.visitor("rita")

    answer = await rita.client.get("/console/")

    assert "set-cookie" not in answer.headers


async def test_another_process_knows_the_session(console: Console, clock: Clock) -> None:
    rita = await console.visitor("rita")
    other = new_app(console.ledger)
    mount(other, clock)
    there = Console(other, console.ledger).stranger()
    there.client.cookies = rita.client.cookies

    page = await there.see("jobs")

    assert "Jobs" in page.text


@pytest.mark.parametrize("part", range(6))
async def test_a_cookie_that_was_changed_opens_nothing(console: Console, part: int) -> None:
    rita = await console.visitor("rita")
    cookie = rita.client.cookies[COOKIE]
    place = part * (len(cookie) - 1) // 5
    changed = cookie[:place] + ("A" if cookie[place] != "A" else "B") + cookie[place + 1 :]

    answer = await console.stranger().client.get("/console/", headers={"Cookie": f"{COOKIE}={changed}"})

    assert answer.status_code == 303


async def test_a_session_of_one_key_cannot_be_made_one_of_another(console: Console) -> None:
    ann = await console.visitor("ann")
    cookie = ann.client.cookies[COOKIE].replace(console.key_ids["ann"], console.key_ids["adam"])

    answer = await console.stranger().client.get("/console/", headers={"Cookie": f"{COOKIE}={cookie}"})

    assert answer.status_code == 303


async def test_a_key_made_a_moment_ago_signs_in(console: Console) -> None:
    key, _ = await console.ledger.identity.create_key("acme", "nina", frozenset({Role.REVIEW}))
    visitor = console.stranger()

    answer = await sign_in(visitor, f"  {key}\n", origin=ORIGIN)

    assert answer.status_code == 303
    checked(await visitor.client.get("/console/dead"))


async def test_who_guesses_keys_is_held_up(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "AT_ONCE", 1)
    monkeypatch.setattr(guesses, "A_SECOND", 0.001)
    visitor = console.stranger()
    wrong = [f"ajk_{number:043d}" for number in range(2)]

    answers = [await sign_in(visitor, key) for key in wrong]

    assert answers[0].status_code == 401
    assert answers[-1].status_code == 429
    assert answers[-1].headers["retry-after"]
    checked(answers[-1])
