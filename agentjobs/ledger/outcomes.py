"""The ends and the turns of a job: dead, resumed, succeeded, cancelled, discarded. Each is one statement."""

from datetime import datetime

from agentjobs.domain.failures import Failure
from agentjobs.domain.states import TRANSITIONS, JobState
from agentjobs.ledger.database import Database


class Outcomes:
    """Changes of state that end an attempt to get through. All may be repeated without a second consequence."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def bury(self, job_id: str, *, generation: int, failure: Failure, worker: str) -> JobState:
        """The job dies: state, dead letter and the word to the desk in one transaction.

        generation: how often it had died before. Returns the state afterwards: a job that was finished in
        the meantime stays so.
        """
        async with self._database.transaction() as connection:
            await self._database.run.lock_job(connection, id=job_id)
            row = await self._database.run.bury(
                connection,
                job_id=job_id,
                generation=generation,
                failure=failure.model_dump(mode="json"),
                worker=worker,
            )
        return JobState(row["state"])

    async def finish(self, job_id: str, state: JobState, *, generation: int | None = None) -> JobState:
        """Record the final state, and return the one that holds.

        generation: how often the job had died when its run came to this end; None: whatever it is now.
        """
        row = await self._database.run.finish(
            self._database.pool,
            job_id=job_id,
            state=state,
            from_states=_states_before(state),
            generation=generation,
        )
        return JobState(row["state"])

    async def resume(
        self, job_id: str, *, generation: int, policy_version: str, again: bool = False
    ) -> tuple[JobState, datetime]:
        """The redrive of this generation takes effect. Returns the state and the new deadline.

        `again`: effects in doubt are to be had once more, under a new key.
        """
        row = await self._database.run.resume(
            self._database.pool, job_id=job_id, generation=generation, policy_version=policy_version, again=again
        )
        return JobState(row["state"]), row["deadline_at"]


def _states_before(state: JobState) -> list[str]:
    return [before for before, following in TRANSITIONS.items() if state in following]
