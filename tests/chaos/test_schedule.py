"""A seed is a schedule: the same one, deed by deed, whatever else is asked for beside it."""

from itertools import pairwise

from agentjobs.failpoints import NAMES
from tests.chaos.storm.parts import APIS, RELAYS, WORKERS
from tests.chaos.storm.schedule import GAP_SECONDS, Nemesis, hosts_of, planned

EVERYTHING = tuple(Nemesis)


def test_the_same_seed_is_the_same_schedule() -> None:
    assert planned("a", 120, EVERYTHING) == planned("a", 120, EVERYTHING)
    assert planned("a", 120, EVERYTHING) != planned("b", 120, EVERYTHING)


def test_every_kind_has_its_deeds_in_order_of_time() -> None:
    deeds = planned("a", 600, EVERYTHING)

    assert {deed.nemesis for deed in deeds} == set(Nemesis)
    assert [deed.at_seconds for deed in deeds] == sorted(deed.at_seconds for deed in deeds)


def test_one_kind_moves_no_other() -> None:
    alone = planned("a", 120, [Nemesis.FROZEN])
    beside = planned("a", 120, [Nemesis.FROZEN, Nemesis.RESET])

    assert [deed for deed in beside if deed.nemesis is Nemesis.FROZEN] == alone


def test_postgres_is_stopped_every_two_to_ten_seconds() -> None:
    moments = [deed.at_seconds for deed in planned("a", 300, [Nemesis.POSTGRES_STOPPED])]
    shortest, longest = GAP_SECONDS[Nemesis.POSTGRES_STOPPED]

    assert all(shortest <= after - before <= longest for before, after in pairwise(moments))
    assert len(moments) > 30


def test_every_failpoint_has_its_turn_in_a_process_that_reaches_it() -> None:
    deeds = planned("a", 75, [Nemesis.FAILPOINT])

    assert sorted(deed.how for deed in deeds) == sorted(NAMES)
    assert all(deed.target[0] in hosts_of(deed.how) for deed in deeds)
    assert {deed.target[0] for deed in deeds} == {*APIS, *RELAYS, *WORKERS}
