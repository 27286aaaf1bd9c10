"""Links into the Temporal UI go to the namespace that the workflows are in."""

import pytest

from agentjobs.api.shown import Links
from agentjobs.settings import load
from tests.api.front import UI


@pytest.mark.parametrize(
    ("given", "part"), [(None, "default"), ("", "default"), ("team-a.x1y2z", "team-a.x1y2z"), ("a/b", "a%2Fb")]
)
def test_links_follow_the_namespace_of_the_temporal_client(
    monkeypatch: pytest.MonkeyPatch, given: str | None, part: str
) -> None:
    monkeypatch.setenv("AGENTJOBS_DATABASE_URL", "postgresql://a@localhost/b")
    monkeypatch.delenv("TEMPORAL_NAMESPACE", raising=False)
    if given is not None:
        monkeypatch.setenv("TEMPORAL_NAMESPACE", given)

    links = Links(UI, load().temporal_namespace)

    assert links.job("j")["temporal_ui"] == f"{UI}/namespaces/{part}/workflows/agent-job-j"
    assert str(links.waiting()["temporal_ui"]).startswith(f"{UI}/namespaces/{part}/workflows?query=")
