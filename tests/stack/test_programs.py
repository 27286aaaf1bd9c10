"""Our own programs as children of the stack."""

from agentjobs.stack.options import StackOptions
from agentjobs.stack.programs import METRICS, agentjobs_programs, metrics_of


def test_each_process_has_its_own_place_for_its_metrics() -> None:
    options = StackOptions(api_port=1080, workers=2)

    programs = agentjobs_programs(options, {"PATH": "/bin"})
    told = metrics_of(programs, options)

    assert [program.name for program in programs] == list(told) == ["api", "relay", "worker-1", "worker-2"]
    assert told["api"] == "http://127.0.0.1:1080/metrics"
    assert len(set(told.values())) == 4
    assert told["worker-2"] == f"http://{programs[3].environment[METRICS]}/metrics"
    assert METRICS not in programs[0].environment
