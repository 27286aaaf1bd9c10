"""What a job does next: the same answer for the same progress, and always an end."""

from dataclasses import dataclass, field
from typing import assert_never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.domain import decisions as d
from agentjobs.domain import keys
from agentjobs.domain.decisions import Action, Goal, Progress, WantedTool, decide
from agentjobs.domain.failures import Category
from agentjobs.domain.states import FINAL, JobState

TICKET = WantedTool(tool="create_ticket", fingerprint="a" * 64, undoable=True)
SEARCH = WantedTool(tool="search_tickets", fingerprint="b" * 64)
MAX_STEPS = 6
MODEL_WISHES = st.lists(st.sampled_from([TICKET, SEARCH, None]), max_size=20)
INTERRUPTION = st.none() | st.tuples(
    st.integers(min_value=0, max_value=30), st.sampled_from([Goal.CANCEL, Goal.DISCARD])
)
PROGRESS = st.builds(
    Progress,
    goal=st.sampled_from(Goal),
    planned=st.booleans(),
    step=st.integers(min_value=0, max_value=2 * MAX_STEPS),
    wanted=st.none() | st.sampled_from([TICKET, SEARCH]),
    finished_tools=st.booleans(),
    answered=st.booleans(),
    to_undo=st.lists(st.sampled_from(["step-1.create_ticket", "step-2.create_ticket"]), max_size=2).map(tuple),
)


@dataclass
class Walk:
    """A job carried out without a world: what the model wants is scripted, everything else succeeds."""

    wishes: list[WantedTool | None]
    interruption: tuple[int, Goal] | None = None
    progress: Progress = field(default_factory=Progress)
    taken: list[Action] = field(default_factory=list)

    def to_its_end(self) -> "Walk":
        """Until an action that ends the job; fails the test when there is none within reason."""
        for number in range(100):
            if self.interruption is not None and number == self.interruption[0]:
                self.progress = d.headed_for(self.progress, self.interruption[1])
            action = decide(self.progress, MAX_STEPS)
            self.taken.append(action)
            if isinstance(action, d.Finish | d.GiveUp):
                return self
            self.progress = self._after(action)
        raise AssertionError("the job never ends")

    def _after(self, action: Action) -> Progress:
        match action:
            case d.MakePlan():
                return d.plan_made(self.progress)
            case d.CallModel():
                return d.model_decided(self.progress, self.wishes.pop(0) if self.wishes else None)
            case d.AskApproval():
                return d.approval_given(self.progress)
            case d.RunTool():
                return d.tool_done(self.progress)
            case d.WriteAnswer():
                return d.answer_written(self.progress)
            case d.FindEffects():
                return d.effects_found(self.progress, tuple(self.ran()))
            case d.Undo():
                return d.undone(self.progress)
            case d.Finish() | d.GiveUp():
                raise AssertionError("ended already")
            case _:
                assert_never(action)

    def ran(self) -> list[str]:
        """The tool calls, by activity id."""
        return [keys.tool_step(a.step, a.wanted.tool) for a in self.taken if isinstance(a, d.RunTool)]

    def undone(self) -> list[str]:
        """The compensations, by the activity id of what they undo."""
        return [a.undone for a in self.taken if isinstance(a, d.Undo)]


def test_a_job_is_planned_then_asks_and_acts_then_answers() -> None:
    walk = Walk([SEARCH, TICKET]).to_its_end()

    assert walk.taken == [
        d.MakePlan(),
        d.CallModel(step=1),
        d.RunTool(step=1, wanted=SEARCH),
        d.CallModel(step=2),
        d.RunTool(step=2, wanted=TICKET),
        d.CallModel(step=3),
        d.WriteAnswer(),
        d.Finish(state=JobState.SUCCEEDED),
    ]


@given(PROGRESS)
def test_every_progress_has_one_next_action(progress: Progress) -> None:
    assert decide(progress, MAX_STEPS) == decide(progress.model_copy(deep=True), MAX_STEPS)


@given(MODEL_WISHES, INTERRUPTION)
def test_every_job_ends(wishes: list[WantedTool | None], interruption: tuple[int, Goal] | None) -> None:
    walk = Walk(wishes, interruption).to_its_end()

    end = walk.taken[-1]
    assert isinstance(end, d.GiveUp) or (isinstance(end, d.Finish) and end.state in FINAL)


@given(MODEL_WISHES, INTERRUPTION)
def test_no_action_is_taken_twice(wishes: list[WantedTool | None], interruption: tuple[int, Goal] | None) -> None:
    walk = Walk(wishes, interruption).to_its_end()

    told = [repr(action) for action in walk.taken]
    assert len(set(told)) == len(told)


@given(MODEL_WISHES, st.integers(min_value=0, max_value=30), st.sampled_from([Goal.CANCEL, Goal.DISCARD]))
def test_an_ended_job_undoes_what_it_may_have_done_in_reverse_and_nothing_else(
    wishes: list[WantedTool | None], moment: int, goal: Goal
) -> None:
    walk = Walk(wishes, (moment, goal)).to_its_end()

    if walk.progress.goal is Goal.ANSWER:
        assert walk.undone() == []  # it was over before anybody spoke
        return
    ran = [step for step in walk.ran() if keys.tool_of(step) == TICKET.tool]
    in_flight = [step for step in walk.undone() if step not in ran]
    assert walk.undone() == [*in_flight, *reversed(ran)]
    assert len(in_flight) <= 1


@given(MODEL_WISHES, st.integers(min_value=0, max_value=30))
def test_nothing_new_begins_after_a_cancel(wishes: list[WantedTool | None], moment: int) -> None:
    walk = Walk(wishes, (moment, Goal.CANCEL)).to_its_end()

    after = walk.taken[moment:]
    assert [action for action in after if not isinstance(action, d.Undo | d.Finish | d.GiveUp)] == []


def test_a_job_that_wants_more_steps_than_it_may_is_given_up() -> None:
    walk = Walk([SEARCH] * 50).to_its_end()

    end = walk.taken[-1]
    assert isinstance(end, d.GiveUp)
    assert (end.failure.reason, end.failure.step) == (Category.BUDGET_EXCEEDED, "step-7.model")
    assert len(walk.ran()) == MAX_STEPS


def test_an_undoable_tool_is_noted_before_it_runs() -> None:
    progress = d.model_decided(Progress(planned=True), TICKET)

    cancelled = d.headed_for(progress, Goal.CANCEL)

    assert decide(cancelled, MAX_STEPS) == d.Undo(undone="step-1.create_ticket")


def test_a_tool_without_an_undo_is_not_noted() -> None:
    progress = d.model_decided(Progress(planned=True), SEARCH)

    assert decide(d.headed_for(progress, Goal.CANCEL), MAX_STEPS) == d.Finish(state=JobState.CANCELLED)


@pytest.mark.parametrize("goal", [Goal.CANCEL, Goal.DISCARD])
def test_effects_that_a_workflow_may_have_forgotten_are_found_before_anything_is_undone(goal: Goal) -> None:
    ended = d.headed_for(Progress(), goal, unseen=True)

    found = d.effects_found(ended, ("step-1.create_ticket",))

    assert decide(ended, MAX_STEPS) == d.FindEffects()
    assert Walk([], progress=found).to_its_end().undone() == ["step-1.create_ticket"]


def test_what_was_noted_and_not_begun_is_undone_all_the_same() -> None:
    progress = Progress(to_undo=("step-1.create_ticket", "step-2.create_ticket"), goal=Goal.CANCEL, unseen=True)

    found = d.effects_found(progress, ("step-1.create_ticket",))

    assert Walk([], progress=found).to_its_end().undone() == ["step-2.create_ticket", "step-1.create_ticket"]


def test_a_compensation_that_is_given_up_is_not_found_again() -> None:
    died = Progress(goal=Goal.CANCEL, to_undo=("step-1.create_ticket",))

    assert decide(d.discarded(died, unseen=True), MAX_STEPS) == d.Finish(state=JobState.DISCARDED)


@pytest.mark.parametrize("first", [Goal.CANCEL, Goal.DISCARD])
@pytest.mark.parametrize("second", [Goal.CANCEL, Goal.DISCARD])
def test_the_first_word_holds(first: Goal, second: Goal) -> None:
    progress = d.headed_for(Progress(), first)

    assert d.headed_for(progress, second).goal is first


def test_a_discard_of_a_dead_job_undoes_all_that_it_did() -> None:
    died = Progress(planned=True, step=2, to_undo=("step-1.create_ticket", "step-2.create_ticket"))

    walk = Walk([], progress=d.discarded(died)).to_its_end()

    assert walk.undone() == ["step-2.create_ticket", "step-1.create_ticket"]
    assert walk.taken[-1] == d.Finish(state=JobState.DISCARDED)


def test_a_discard_after_a_failed_compensation_gives_that_one_up_and_undoes_the_rest() -> None:
    died = Progress(goal=Goal.CANCEL, to_undo=("step-1.create_ticket", "step-2.create_ticket"))

    walk = Walk([], progress=d.discarded(died)).to_its_end()

    assert walk.undone() == ["step-1.create_ticket"]
    assert walk.taken[-1] == d.Finish(state=JobState.DISCARDED)


def test_discards_end_however_often_a_compensation_fails() -> None:
    progress = Progress(goal=Goal.CANCEL, to_undo=("step-1.create_ticket", "step-2.create_ticket"))

    for _ in range(3):  # each compensation fails, and each time a reviewer discards
        progress = d.discarded(progress)

    assert decide(progress, MAX_STEPS) == d.Finish(state=JobState.DISCARDED)


def test_a_redrive_goes_on_where_the_job_died() -> None:
    died = d.model_decided(Progress(planned=True), TICKET)

    redriven = Progress.model_validate_json(died.model_dump_json())

    assert decide(redriven, MAX_STEPS) == d.RunTool(step=1, wanted=TICKET)


def test_a_corrected_job_plans_again_and_still_knows_what_to_undo() -> None:
    died = Progress(planned=True, step=2, finished_tools=True, to_undo=("step-1.create_ticket",))

    again = d.started_over(died)

    assert d.decide(again, 6) == d.MakePlan()
    met_again = d.model_decided(d.plan_made(again), TICKET)
    assert met_again.to_undo == ("step-1.create_ticket",)  # noted once


@pytest.mark.parametrize("goal", [Goal.CANCEL, Goal.DISCARD])
def test_a_job_that_is_being_undone_does_not_start_over(goal: Goal) -> None:
    progress = Progress(goal=goal, planned=True, to_undo=("step-1.create_ticket",))

    assert d.started_over(progress) == progress


NEEDS_A_WORD = WantedTool(tool="create_ticket", fingerprint="f" * 64, approval_seconds=60)


def test_a_call_that_needs_an_approval_is_asked_about_before_it_is_made() -> None:
    progress = d.model_decided(Progress(planned=True), NEEDS_A_WORD)

    before, after = d.decide(progress, 5), d.decide(d.approval_given(progress), 5)

    assert (before, after) == (d.AskApproval(step=1, wanted=NEEDS_A_WORD), d.RunTool(step=1, wanted=NEEDS_A_WORD))


def test_an_approval_is_for_one_call_and_the_next_one_asks_again() -> None:
    done = d.tool_done(d.approval_given(d.model_decided(Progress(planned=True), NEEDS_A_WORD)))

    assert d.decide(d.model_decided(done, NEEDS_A_WORD), 5) == d.AskApproval(step=2, wanted=NEEDS_A_WORD)


def test_after_a_redrive_the_ledger_is_asked_whether_the_approval_still_holds() -> None:
    approved = d.approval_given(d.model_decided(Progress(planned=True), NEEDS_A_WORD))

    assert isinstance(d.decide(d.redriven(approved), 5), d.AskApproval)
