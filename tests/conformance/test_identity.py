"""Who calls: bearer keys, roles, and tenants that do not see each other."""

import pytest

from tests.conformance.deployment import UNKNOWN, Caller, Deployment, problem, same_refusal

OPERATIONS = [
    ("GET", "/v1/jobs"),
    ("POST", "/v1/jobs"),
    ("GET", "/v1/jobs/{id}"),
    ("GET", "/v1/jobs/{id}/attempts"),
    ("GET", "/v1/jobs/{id}/events"),
    ("POST", "/v1/jobs/{id}/cancel"),
    ("GET", "/v1/dead-letters"),
    ("GET", "/v1/dead-letters/{id}"),
    ("POST", "/v1/dead-letters/{id}/redrive"),
    ("POST", "/v1/dead-letters/{id}/discard"),
    ("GET", "/v1/keys"),
    ("POST", "/v1/keys"),
    ("GET", "/v1/audit"),
]
BODIES = {"/v1/dead-letters/{id}/redrive": {"note": "x"}, "/v1/dead-letters/{id}/discard": {"note": "x"}}
MALFORMED = ["..", "%2e%2e%2fx", "a%2fb", "%00", "a%0a", "x" * 1_001, "%c3%a4", "%ff", "a'b", UNKNOWN + "%20", "*"]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_without_a_key_there_is_a_challenge(stranger: Caller, method: str, path: str) -> None:
    """RFC 9110, 15.5.2 and 11.6.1; RFC 6750, 3."""
    answer = await stranger.http.request(method, path.format(id=UNKNOWN), json=BODIES.get(path))

    problem(answer, 401)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("given", ["Bearer ajk_wrong", "Bearer", "Basic dTpw", "Bearer ajk_a ajk_b", "ajk_x"])
async def test_a_wrong_key_is_as_good_as_none(stranger: Caller, given: str) -> None:
    """RFC 6750, 3.1."""
    problem(await stranger.http.get("/v1/jobs", headers={"Authorization": given}), 401)


@pytest.mark.parametrize(("method", "path"), [one for one in OPERATIONS if "{id}" in one[1]])
async def test_anothers_job_is_as_unknown_as_any(caller: Caller, other: Caller, method: str, path: str) -> None:
    """OWASP API1:2023. RFC 9110, 15.5.4: 404 where it is not to be told that there is something."""
    job_id = await caller.accepted()
    body = BODIES.get(path)

    unknown = await other.http.request(method, path.format(id=UNKNOWN), json=body)
    foreign = await other.http.request(method, path.format(id=job_id), json=body)

    assert unknown.status_code in {403, 404}
    assert same_refusal(unknown, foreign)


@pytest.mark.parametrize("thing_id", MALFORMED, ids=lambda value: value[:12])
async def test_a_malformed_id_is_as_unknown_as_any(caller: Caller, thing_id: str) -> None:
    """RFC 9110, 15.5.5."""
    unknown = await caller.http.get(f"/v1/jobs/{UNKNOWN}")

    malformed = await caller.http.get(f"/v1/jobs/{thing_id}")

    problem(malformed, 404)
    assert same_refusal(unknown, malformed)


async def test_a_list_holds_nothing_of_another_tenant(caller: Caller, other: Caller) -> None:
    """OWASP API1:2023."""
    job_id = await caller.accepted()

    seen = (await other.http.get("/v1/jobs", params={"limit": 200})).json()["items"]

    assert job_id not in {job["id"] for job in seen}


@pytest.mark.parametrize("header", ["X-Tenant-Id", "x-tenant-id", "X_Tenant_Id"])
async def test_a_header_cannot_name_another_tenant(caller: Caller, header: str) -> None:
    """OWASP API1:2023: the tenant is the key's."""
    problem(await caller.http.get("/v1/jobs", headers={header: "somebody-else"}), 403)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/dead-letters"), ("GET", "/v1/keys"), ("GET", "/v1/grants"), ("GET", "/v1/audit")],
)
async def test_a_missing_role_is_forbidden(newcomer: Caller, method: str, path: str) -> None:
    """OWASP API5:2023; RFC 9110, 15.5.4."""
    problem(await newcomer.http.request(method, path), 403)


async def test_a_key_is_shown_once_and_ends_when_it_is_revoked(deployment: Deployment, admin: Caller) -> None:
    """OWASP API2:2023."""
    wanted = {"user": "conformance-short", "roles": ["submit"], "expires_in_seconds": 3600}
    made = await admin.post("/v1/keys", wanted)
    key = made.json()
    short = await deployment.caller(key["key"])

    before = await short.http.get("/v1/jobs")
    listed = await admin.http.get(f"/v1/keys/{key['id']}")
    await admin.http.delete(f"/v1/keys/{key['id']}")
    after = await short.http.get("/v1/jobs")

    assert (made.status_code, before.status_code, listed.status_code) == (201, 200, 200)
    assert key["key"] not in listed.text
    # Another process may take it for seconds more; a deployment of one stops at once.
    assert after.status_code in {200, 401}
