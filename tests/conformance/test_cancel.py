"""Cancel: a wish that may be repeated, and that a job which is over does not take."""

from tests.conformance.deployment import REQUEST, UNKNOWN, Caller, problem


async def test_a_cancel_is_accepted_and_may_be_repeated(caller: Caller) -> None:
    """RFC 9110, 15.3.3."""
    job_id = await caller.accepted({**REQUEST, "priority": 5})

    answers = [await caller.post(f"/v1/jobs/{job_id}/cancel", None) for _ in range(2)]
    job = await caller.until(job_id)

    # It may have been over already: then both say so.
    assert {answer.status_code for answer in answers} <= {202, 409}
    if answers[0].status_code == 202:
        assert job["cancel_requested_at"] is not None
        assert job["state"] in {"cancelled", "succeeded"}
    if job["state"] == "cancelled":
        assert (await caller.post(f"/v1/jobs/{job_id}/cancel", None)).status_code == 202


async def test_a_job_that_is_over_cannot_be_cancelled(caller: Caller) -> None:
    """RFC 9110, 15.5.10."""
    job_id = await caller.accepted()
    before = await caller.until(job_id)

    problem(await caller.post(f"/v1/jobs/{job_id}/cancel", None), 409)

    assert (await caller.job(job_id))["state"] == before["state"]


async def test_an_unknown_job_cannot_be_cancelled(caller: Caller) -> None:
    """RFC 9110, 15.5.5."""
    problem(await caller.post(f"/v1/jobs/{UNKNOWN}/cancel", None), 404)
