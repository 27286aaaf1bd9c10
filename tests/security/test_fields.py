"""S4, S7: no client sets an internal field, no answer shows one, and no row is without its tenant."""

from httpx import AsyncClient

from tests.api.front import REQUEST, Front

KEPT_INSIDE = """
SELECT encode(key_hash, 'hex') AS secret FROM api_keys
UNION ALL SELECT fingerprint FROM idempotency_keys
UNION ALL SELECT fingerprint FROM effects WHERE fingerprint IS NOT NULL
"""
COLUMNS = "SELECT DISTINCT column_name FROM information_schema.columns WHERE table_schema = 'public'"
WITHOUT_TENANT = """
SELECT table_name FROM information_schema.columns
 WHERE table_schema = 'public' AND column_name = 'tenant' AND is_nullable = 'YES'
"""


async def test_no_column_of_the_ledger_can_be_set_by_a_request(front: Front, ann: AsyncClient) -> None:
    columns = {row["column_name"] for row in await front.scene.rows(COLUMNS)}
    schemas = front.app.openapi()["components"]["schemas"]
    names = sorted(columns - {*schemas["NewJob"]["properties"]})

    answers = [await ann.post("/v1/jobs", json={**REQUEST, name: "x"}) for name in names]

    assert len(names) > 100
    assert {answer.status_code for answer in answers} == {422}
    assert await front.scene.count("jobs") == 0


async def test_no_answer_shows_what_is_kept_inside(front: Front) -> None:
    await front.of("ann").post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": "k1"})
    job_id = await front.scene.running()
    await front.scene.bury(job_id)
    secrets = [row["secret"] for row in await front.scene.rows(KEPT_INSIDE)]
    gets = [path for path, operations in front.app.openapi()["paths"].items() if "get" in operations]

    answers = [
        await front.of(name).get(path.replace("{id}", job_id))
        for path in gets
        if "{" not in path.replace("{id}", "") and not path.endswith("/events")
        for name in ("ann", "rita", "adam")
    ]

    said = "".join(answer.text for answer in answers)
    assert len(secrets) > 6
    assert job_id in said
    assert not [secret for secret in secrets if secret in said]
    assert not [key for key in front.keys.values() if key in said]


async def test_no_row_can_be_without_its_tenant(front: Front) -> None:
    assert await front.scene.rows(WITHOUT_TENANT) == []
