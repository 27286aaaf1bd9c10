"""Requests that people wrote, played once on the small real model; each test asks something else of the record."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import pytest

from agentjobs.demo import load_requests
from agentjobs.domain.budget import Usage
from tests.model.play import OnRecord, Play, playing

# More tokens than the model's context holds, whatever a token is worth in each of the languages.
_TOO_LONG: Final = 30_000


@dataclass(frozen=True)
class Played:
    """All jobs of the play, over, and what the model's server says that it did for them."""

    play: Play
    jobs: dict[str, OnRecord]
    too_long: OnRecord
    served: Usage

    @property
    def everything(self) -> list[OnRecord]:
        """The ordinary jobs and the one that is too long."""
        return [*self.jobs.values(), self.too_long]


@pytest.fixture(scope="session")
async def played(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Played]:
    """Ten requests in eight languages, one that joins them all, and one that no context of this model holds."""
    texts = {request.id: request.text for request in load_requests()}
    everything = "\n\n".join(texts.values())
    texts["all-in-one"] = everything
    async with playing(tmp_path_factory.mktemp("played")) as play:
        ids = {name: await play.submit(text, key=name) for name, text in texts.items()}
        too_long = await play.submit((everything * 20)[:_TOO_LONG], key="too-long")
        jobs = {name: await play.over(job_id) for name, job_id in ids.items()}
        yield Played(play, jobs, await play.over(too_long), await play.model.served())
