"""What takes long begins first: begun last, by one of several processes, it would be waited for alone."""

import pytest


def longest_first(items: list[pytest.Item]) -> None:
    """Whole stacks, then what waits for Temporal, then what fills the gaps; otherwise the order stays."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    if any(item.get_closest_marker(name) for name in ("chaos_short", "e2e")):
        return 0
    return 1 if any(name.endswith("world") for name in getattr(item, "fixturenames", ())) else 2
