"""Explores all models, the larger ones too, and prints how large they are: some minutes."""

import sys

from tests.protocol.cases import LARGER, WHOLE
from tests.protocol.explorer import explore


def main() -> int:
    """Returns 1 when a counterexample was found."""
    found = False
    for name, whole in {**WHOLE, **LARGER}.items():
        explored = explore(whole.build(frozenset()))
        sys.stdout.write(f"| {name} | {explored.states:,} | {explored.transitions:,} |\n")
        if explored.counterexample is not None:
            sys.stdout.write(f"{explored.counterexample}\n")
            found = True
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
