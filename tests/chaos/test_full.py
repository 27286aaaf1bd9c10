"""Every failpoint with every deed, and every process-level fault: `make chaos`."""

import pytest

from agentjobs.failpoints import NAMES, Deed
from tests.chaos.conftest import Tell
from tests.chaos.faults import PROCESS_FAULTS, AtFailpoint, Fault
from tests.chaos.play import play
from tests.chaos.rig import Rig

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(480)]

FAULTS: tuple[Fault, ...] = (
    *(AtFailpoint(name, deed) for name in sorted(NAMES) for deed in Deed),
    *PROCESS_FAULTS,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.name} {fault.deed}")
async def test_a_fault_breaks_no_promise(fault: Fault, rig: Rig, seed: str, tell: Tell) -> None:
    outcome = await play(rig, fault, seed)

    tell(outcome)
    assert outcome.passed, str(outcome)
