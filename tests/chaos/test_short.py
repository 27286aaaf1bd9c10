"""One kill at every boundary, on one warm stack."""

import pytest

from agentjobs.failpoints import NAMES, Deed
from tests.chaos.conftest import Tell
from tests.chaos.faults import AtFailpoint
from tests.chaos.play import play
from tests.chaos.rig import Rig

pytestmark = [pytest.mark.chaos_short, pytest.mark.timeout(300)]


@pytest.mark.parametrize("boundary", sorted(NAMES))
async def test_a_kill_at_a_boundary_breaks_no_promise(boundary: str, rig: Rig, seed: str, tell: Tell) -> None:
    outcome = await play(rig, AtFailpoint(boundary, Deed.KILL), seed)

    tell(outcome)
    assert outcome.passed, str(outcome)
