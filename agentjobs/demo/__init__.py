"""Ten requests that people really wrote, for the demonstration. PROVENANCE.md says whose they are."""

from importlib import resources
from typing import Literal

from agentjobs.domain.job import Frozen


class DemoRequest(Frozen):
    """One request with where it comes from and under which licence it may be passed on."""

    id: str
    lang: str
    text: str
    source: str
    licence: str
    kind: Literal["support", "complaint", "incident"]


def load_requests() -> tuple[DemoRequest, ...]:
    """All of them, in the order in which the demonstration submits them."""
    lines = resources.files(__package__).joinpath("requests.jsonl").read_text("utf-8").splitlines()
    return tuple(map(DemoRequest.model_validate_json, lines))
