"""Death, word and redrive of one job: frozen records, people, a relay, an operator who terminates, the desk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from agentjobs.domain.states import FINAL, TRANSITIONS, JobState
from tests.protocol.explorer import Model, Move
from tests.protocol.names import Outside, Place, Step
from tests.protocol.protections import Protection

Moves = Iterator[tuple[Move, "World"]]
REDRIVE, DISCARD, DIED = "redrive", "discard", "job_died"


class Record(NamedTuple):
    """An attempt to record something: a death, a redrive, an end. It may be the workflow's, or a frozen one."""

    what: Step
    generation: int
    state: JobState = JobState.DEAD
    place: Place = Place.BEFORE_RECORD


class Run(NamedTuple):
    """The job's workflow."""

    at: str = "works"
    generation: int = 0
    record: Record | None = None


class World(NamedTuple):
    """Everything."""

    job: JobState = JobState.RUNNING
    generation: int = 0
    letter: str = "none"
    letter_is_of: int = 0
    word_of: int | None = None
    """The generation of which a person said `discard`."""

    words: int = 0
    heard_twice: bool = False
    rows: frozenset[tuple[str, int]] = frozenset()
    untold: int | None = None
    """A death whose row is not stored yet (only without DEATH_WITH_ITS_WORD)."""

    run: Run = Run()
    frozen: Record | None = None
    """A record attempt that Temporal has given up, and that may go on at any time."""

    relay: tuple[str, int] | None = None
    """The word that the relay has in hand, looked up as still wanted."""

    told: frozenset[int] = frozenset()
    alerted: frozenset[int] = frozenset()
    failures: int = 0
    terminated: int = 0
    froze: int = 0
    redriven: int = 0
    redrive_words: int = 0
    died: int = 0
    wrongly_ended: bool = False
    left_its_end: bool = False


@dataclass(frozen=True)
class DeathRules:
    """What is taken away, and how large the model is."""

    without: frozenset[Protection] = frozenset()
    failures: int = 2
    terminations: int = 1
    freezes: int = 1
    dead: bool = False
    """Whether the model begins with a job that has died, and of which everybody was told."""

    @property
    def start(self) -> World:
        """A running job, or a dead one."""
        told = frozenset({1})
        dead = World(JobState.DEAD, 1, "open", 1, run=Run("waits", 1), told=told, alerted=told, failures=1, died=1)
        return dead if self.dead else World()

    def has(self, protection: Protection) -> bool:
        """Whether it is in place."""
        return protection not in self.without


def death_model(rules: DeathRules) -> Model[World]:
    """The model under these rules."""

    def moves(world: World) -> Moves:
        yield from _run_moves(world, rules)
        yield from _record_moves(world, rules)
        yield from _person_moves(world, rules)
        yield from _relay_moves(world, rules)
        yield from _watch_moves(world, rules)

    return Model(rules.start, moves, _broken, _is_good_end)


def _run_moves(world: World, rules: DeathRules) -> Moves:
    run = world.run
    if run.at == "works" and world.job is not JobState.RUNNING:
        yield Move("workflow", Step.BEGIN_EFFECT, "not live"), world._replace(run=Run("closed"))
    elif run.at == "works":
        if world.failures < rules.failures:
            death = run._replace(at="records", record=Record(Step.BURY, run.generation))
            yield Move("workflow", Outside.WORKFLOW_FAILS), world._replace(run=death, failures=world.failures + 1)
        yield Move("workflow", Outside.WORKFLOW_ENDS), world._replace(run=_ends(run, JobState.SUCCEEDED))
    if run.at not in ("closed", "gone") and world.terminated < rules.terminations:
        frozen = world.frozen if run.record is None or world.froze >= rules.freezes else run.record
        froze = world.froze + (frozen is not world.frozen)
        gone = world._replace(run=Run("gone"), terminated=world.terminated + 1, frozen=frozen, froze=froze)
        yield Move("operator", Outside.WORKFLOW_TERMINATED), gone


def _ends(run: Run, state: JobState) -> Run:
    return run._replace(at="records", record=Record(Step.FINISH, run.generation, state))


def _record_moves(world: World, rules: DeathRules) -> Moves:
    record = world.run.record
    if record is not None:
        if record.place is Place.BEFORE_RECORD:
            following = _recorded(world, record, rules)
            after = following.run._replace(record=record._replace(place=Place.AFTER_RECORD))
            yield Move("record", record.what), following._replace(run=after)
            if world.froze < rules.freezes:
                frozen = world._replace(frozen=record, froze=world.froze + 1)
                yield Move("Temporal", Outside.GIVE_ATTEMPT_UP, "the record freezes, another is begun"), frozen
        else:
            yield Move("workflow", Outside.RETURN, record.what), _told(world, record)
            again = world.run._replace(record=record._replace(place=Place.BEFORE_RECORD))
            yield Move("record", Outside.CRASH, "it is begun again"), world._replace(run=again)
    if world.frozen is not None:
        thawed = _recorded(world._replace(frozen=None), world.frozen, rules)
        yield Move("frozen record", world.frozen.what, f"of generation {world.frozen.generation}"), thawed


def _recorded(world: World, record: Record, rules: DeathRules) -> World:
    match record.what:
        case Step.BURY:
            return _buried(world, record.generation, rules)
        case Step.RESUME:
            return _resumed(world, record.generation, rules)
        case _:
            return _finished(world, record, rules)


def _buried(world: World, generation: int, rules: DeathRules) -> World:
    if world.job in FINAL or (generation != world.generation and rules.has(Protection.DEATH_OF_A_GENERATION)):
        return world
    died = world.generation + 1
    rows = world.rows | {(DIED, died)} if rules.has(Protection.DEATH_WITH_ITS_WORD) else world.rows
    untold = None if rules.has(Protection.DEATH_WITH_ITS_WORD) else died
    return world._replace(
        job=JobState.DEAD,
        generation=min(died, 4),
        letter="open",
        letter_is_of=died,
        rows=rows,
        untold=untold,
        died=min(world.died + 1, 4),
    )


def _resumed(world: World, generation: int, rules: DeathRules) -> World:
    fits = generation == world.generation or not rules.has(Protection.REDRIVE_OF_A_GENERATION)
    if world.job is not JobState.DEAD or not fits:
        return world
    return world._replace(job=JobState.RUNNING, letter="redriven", redriven=min(world.redriven + 1, 4))


def _finished(world: World, record: Record, rules: DeathRules) -> World:
    if record.state not in TRANSITIONS[world.job] and rules.has(Protection.FINAL_STAYS):
        return world
    if record.generation != world.generation and rules.has(Protection.END_OF_A_GENERATION):
        return world
    wrongly = record.state is JobState.DISCARDED and world.word_of != world.generation
    wrongly = wrongly or (world.job is JobState.DEAD and record.state is not JobState.DISCARDED)
    left = world.job in FINAL and world.job is not record.state
    return world._replace(job=record.state, wrongly_ended=wrongly, left_its_end=left)


def _told(world: World, record: Record) -> World:
    """The workflow hears that it is recorded, and what holds now."""
    run = world.run
    if world.job in FINAL:
        return world._replace(run=Run("closed"))
    match record.what:
        case Step.BURY:
            return world._replace(run=Run("waits", run.generation + 1))
        case Step.RESUME:
            return world._replace(run=Run("works", run.generation))
        case _:
            return world._replace(run=Run("gone"))  # the end was refused: the workflow fails, and is found


def _person_moves(world: World, rules: DeathRules) -> Moves:
    may = world.letter == "open" or (world.letter in (REDRIVE, DISCARD) and not rules.has(Protection.ONE_WORD))
    if not may or world.words >= 3:
        return
    twice = world.letter != "open"
    given = world._replace(words=world.words + 1, heard_twice=twice)
    for word in (REDRIVE, DISCARD):
        said = given._replace(letter=word, rows=world.rows | {(word, world.letter_is_of)})
        if word == REDRIVE:
            said = said._replace(redrive_words=said.redrive_words + 1)
        else:
            said = said._replace(word_of=world.letter_is_of)
        yield Move("person", Step.REQUEST_RESOLUTION, word), said


def _relay_moves(world: World, rules: DeathRules) -> Moves:
    for topic, generation in sorted(world.rows):
        if topic == DIED:
            told = world._replace(rows=world.rows - {(topic, generation)}, told=world.told | {generation})
            yield Move("relay", Outside.TELL_DESK, f"death {generation}"), told
        elif world.relay is None:
            yield _looked(world, topic, generation, rules)
    if world.relay is not None:
        yield from _given(world, *world.relay, rules)
        yield Move("relay", Outside.CRASH), world._replace(relay=None)
    for generation in sorted(world.told - world.alerted):
        yield (
            Move("desk", Step.MARK_ALERTED, f"death {generation}"),
            world._replace(alerted=world.alerted | {generation}),
        )


def _looked(world: World, word: str, generation: int, rules: DeathRules) -> tuple[Move, World]:
    wanted = world.letter in (REDRIVE, DISCARD) and world.letter_is_of == generation
    if wanted or not rules.has(Protection.STILL_REQUESTED):
        return Move("relay", Step.STILL_REQUESTED, word), world._replace(relay=(word, generation))
    return Move("relay", Step.STILL_REQUESTED, "no"), world._replace(rows=world.rows - {(word, generation)})


def _given(world: World, word: str, generation: int, rules: DeathRules) -> Moves:
    run, done = world.run, world._replace(relay=None, rows=world.rows - {(word, generation)})
    if run.at in ("closed", "gone"):
        begun = done._replace(run=_follows(Run("waits", generation), word, generation))
        yield Move("relay", Outside.START_WORKFLOW, f"with the {word}"), begun
    elif run.at == "waits" and (run.generation == generation or not rules.has(Protection.WORD_OF_A_GENERATION)):
        yield Move("relay", Outside.UPDATE, word), done._replace(run=_follows(run, word, generation))
        # Temporal took it, the relay dies before its mark: it is given again.
        again = world._replace(relay=None, run=_follows(run, word, generation))
        yield Move("relay", Outside.UPDATE, f"{word}, and the relay dies before the mark"), again
    else:
        yield Move("relay", Outside.UPDATE, "not yet: later"), world._replace(relay=None)


def _follows(run: Run, word: str, generation: int) -> Run:
    if word == DISCARD:
        return _ends(run, JobState.DISCARDED)
    return run._replace(at="records", record=Record(Step.RESUME, generation))


def _watch_moves(world: World, rules: DeathRules) -> Moves:
    """The reconciler."""
    if world.run.at not in ("gone", "closed"):
        return
    if world.job is JobState.RUNNING:
        yield Move("reconciler", Step.BURY), _buried(world, world.generation, rules)
    words = {(topic, generation) for topic, generation in world.rows if topic != DIED}
    if (
        world.job is JobState.DEAD
        and world.letter in (REDRIVE, DISCARD)
        and not words
        and rules.has(Protection.LOST_WORDS)
    ):
        yield Move("reconciler", Step.REOPEN_LETTER), world._replace(letter="open")


_BROKEN: tuple[tuple[str, Callable[[World], bool]], ...] = (
    ("I3: a job that was over moved to another end", lambda world: world.left_its_end),
    ("I3: a job ended by a word that nobody gave on this death", lambda world: world.wrongly_ended),
    ("I3: a job died of a death that was over", lambda world: world.died > world.failures + world.terminated),
    ("I2: a job was redriven without a person's word", lambda world: world.redriven > world.redrive_words),
    ("I8: two words on one death were accepted", lambda world: world.heard_twice),
)


def _broken(world: World) -> str | None:
    return next((broken for broken, holds in _BROKEN if holds(world)), None)


def _is_good_end(world: World) -> bool:
    """Over, or dead and open for a word; with everybody told of every death."""
    rests = world.job in FINAL or (world.job is JobState.DEAD and world.letter == "open")
    return rests and world.alerted == frozenset(range(1, world.generation + 1)) and not world.rows
