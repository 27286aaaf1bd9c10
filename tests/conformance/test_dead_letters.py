"""Dead letters: what cannot go on waits for a reviewer, who redrives it or gives it up. Needs an admin key."""

from tests.conformance.deployment import UNKNOWN, Caller, problem


async def dead(newcomer: Caller) -> str:
    """A job that died for want of a grant."""
    job_id = await newcomer.accepted()
    job = await newcomer.until(job_id)
    assert (job["state"], job["failure"]["category"]) == ("dead", "access_denied")
    return job_id


async def test_a_death_is_told_with_its_reason(newcomer: Caller, admin: Caller) -> None:
    job_id = await dead(newcomer)

    letter = (await admin.http.get(f"/v1/dead-letters/{job_id}")).json()
    listed = (await admin.http.get("/v1/dead-letters", params={"reason": "access_denied", "limit": 200})).json()

    assert (letter["state"], letter["reason"], letter["generation"]) == ("open", "access_denied", 1)
    assert job_id in {one["id"] for one in listed["items"]}
    assert all("input" not in one for one in listed["items"])
    await admin.post(f"/v1/dead-letters/{job_id}/discard", {"note": "conformance"})


async def test_a_redrive_is_accepted_once_and_runs_the_same_job_again(newcomer: Caller, admin: Caller) -> None:
    """RFC 9110, 15.3.3 and 15.5.10."""
    job_id = await dead(newcomer)

    first = await admin.post(f"/v1/dead-letters/{job_id}/redrive", {"note": "conformance"})
    second = await admin.post(f"/v1/dead-letters/{job_id}/redrive", {"note": "conformance"})

    assert first.status_code == 202
    assert second.status_code in {202, 409}  # 202 if it has died again already
    async with admin.stream(job_id, "0") as answer:
        told = (await answer.aread()).decode()
    assert "event: redriven" in told
    assert (await admin.until(job_id, "dead"))["generation"] >= 1
    await admin.post(f"/v1/dead-letters/{job_id}/discard", {"note": "conformance"})


async def test_a_letter_that_was_given_up_takes_no_further_word(newcomer: Caller, admin: Caller) -> None:
    """RFC 9110, 15.5.10."""
    job_id = await dead(newcomer)

    discarded = await admin.post(f"/v1/dead-letters/{job_id}/discard", {"note": "conformance"})
    job = await newcomer.until(job_id, "discarded")

    assert discarded.status_code == 202
    assert job["finalized_at"] is not None
    problem(await admin.post(f"/v1/dead-letters/{job_id}/redrive", {"note": "x"}), 409)
    problem(await newcomer.post(f"/v1/jobs/{job_id}/cancel", None), 409)


async def test_a_word_needs_a_reason_and_a_letter(admin: Caller) -> None:
    """RFC 9110, 15.5.21 and 15.5.5."""
    problem(await admin.post(f"/v1/dead-letters/{UNKNOWN}/redrive", {}), 422)
    problem(await admin.post(f"/v1/dead-letters/{UNKNOWN}/redrive", {"note": " "}), 422)
    problem(await admin.post(f"/v1/dead-letters/{UNKNOWN}/redrive", {"note": "x"}), 404)
