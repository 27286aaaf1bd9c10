"""The routes of erasure as typed methods."""

from agentjobs.commands.asking import Asking, in_path
from agentjobs.commands.erase_answers import Erasure


class EraseCalls(Asking):
    """What an admin asks of erasures."""

    def erase_job(self, job_id: str) -> Erasure:
        """Erase one job that has ended, or is dead."""
        return self._read(Erasure, self._ask("DELETE", f"/v1/jobs/{in_path(job_id)}"))

    def erase_user(self, user: str) -> Erasure:
        """Erase all that the user has submitted until now."""
        return self._read(Erasure, self._ask("POST", "/v1/erasures", json={"user": user}))

    def erasure(self, erasure_id: str) -> Erasure:
        """How far an erasure has come."""
        return self._read(Erasure, self._ask("GET", f"/v1/erasures/{in_path(erasure_id)}"))
