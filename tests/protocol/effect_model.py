"""The effect protocol: two attempts and a third, a frozen worker, a takeover, a cancel, a redrive, crashes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.effect_attempts import attempt_moves, destination_moves
from tests.protocol.effect_course import course_moves
from tests.protocol.effect_world import Rules, World, broken, is_good_end
from tests.protocol.explorer import Model, Move


def effect_model(rules: Rules) -> Model[World]:
    """The model of one tool call under these rules."""

    def moves(world: World) -> Iterator[tuple[Move, World]]:
        yield from attempt_moves(world, rules)
        yield from destination_moves(world, rules)
        yield from course_moves(world, rules)

    return Model(rules.start, moves, lambda world: broken(world, rules), is_good_end)
