"""Closed by default: without a session there is nothing but the way in."""

import pytest
from fastapi.routing import APIRoute

from agentjobs.console.app import ROUTERS, mount
from agentjobs.console.route import PageRoute
from agentjobs.ledger.ledger import Ledger
from tests.api.front import UNKNOWN, new_app
from tests.console.visitors import FORM_HEADERS, Console, checked

OPEN = {("GET", "/sign-in"), ("POST", "/sign-in"), ("GET", "/static/{version}/{name}")}


ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
GUARDED = [route for route in ROUTES if isinstance(route, PageRoute)]


async def test_every_route_but_the_way_in_asks_for_a_session(folder_ledger: Ledger) -> None:
    mounted = mount(new_app(folder_ledger))

    unguarded = {
        (method, route.path) for route in ROUTES for method in route.methods or () if route not in GUARDED
    }

    assert unguarded == OPEN
    assert len(mounted.routes) == len(ROUTERS)  # nothing beside them


async def test_a_stranger_is_sent_to_the_sign_in_page_from_every_page(console: Console) -> None:
    stranger = console.stranger().client
    pages = [route.path for route in GUARDED if "GET" in (route.methods or ())]

    answers = {path: await stranger.get(f"/console{path.format(id=UNKNOWN)}") for path in pages}

    assert len(answers) >= 10
    assert {answer.status_code for answer in answers.values()} == {303}
    targets = {answer.headers["location"].partition("?")[0] for answer in answers.values()}
    assert targets == {"/console/sign-in"}


async def test_a_strangers_form_does_nothing(console: Console) -> None:
    stranger = console.stranger().client
    forms = [route.path for route in GUARDED if "POST" in (route.methods or ())]

    answers = [
        await stranger.post(
            f"/console{path.format(id=UNKNOWN, step='step-1.x', delivery=UNKNOWN)}",
            data={"note": "x"},
            headers=FORM_HEADERS,
        )
        for path in forms
    ]

    assert len(answers) >= 9
    assert {answer.status_code for answer in answers} == {401}


async def test_a_key_in_a_header_opens_no_page(console: Console) -> None:
    headers = {"Authorization": f"Bearer {console.keys['rita']}"}

    answer = await console.stranger().client.get("/console/jobs", headers=headers)

    assert answer.status_code == 303


async def test_a_session_opens_nothing_of_the_api(console: Console) -> None:
    rita = await console.visitor("rita")

    answer = await rita.client.get("/v1/jobs")

    assert answer.status_code == 401


async def test_the_cookie_is_for_the_console_only(console: Console) -> None:
    rita = await console.visitor("rita")

    (cookie,) = list(rita.client.cookies.jar)

    assert cookie.path == "/console"


@pytest.mark.parametrize("path", ["nothing", "jobs/", "static/x/../../app.py", "static/x/console.py", "//"])
async def test_what_is_not_there_is_a_page_that_says_so(console: Console, path: str) -> None:
    answer = await console.stranger().client.get(f"/console/{path}")

    assert answer.status_code == 404
    assert "There is nothing here that you may see." in checked(answer).text


async def test_the_address_without_a_slash_leads_in(console: Console) -> None:
    answer = await console.stranger().client.get("/console")

    assert (answer.status_code, answer.headers["location"]) == (308, "/console/")
