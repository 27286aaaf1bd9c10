"""Read beside the main thread, so that what a terminal shows can move while nothing arrives."""

from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Final, TypeVar

Item = TypeVar("Item")

AHEAD: Final = 256
"""How far the reader may be ahead of what is shown."""

LOOK_SECONDS: Final = 0.2


class _End:
    def __init__(self, error: Exception | None) -> None:
        self.error = error


def beside(items: Iterator[Item], tick_seconds: float) -> Iterator[Item | None]:
    """The items as they come, and None whenever none came for so long. What reading them raises is raised here."""
    queue: Queue[Item | _End] = Queue(AHEAD)
    given_up = Event()
    Thread(target=_read, args=(items, queue, given_up), name="events", daemon=True).start()
    try:
        while True:
            try:
                item = queue.get(timeout=tick_seconds)
            except Empty:
                yield None
                continue
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        given_up.set()


def _read(items: Iterator[Item], queue: "Queue[Item | _End]", given_up: Event) -> None:
    end = _End(None)
    try:
        for item in items:
            _put(item, queue, given_up)
            if given_up.is_set():
                return
    except Exception as error:
        end = _End(error)
    _put(end, queue, given_up)


def _put(item: "Item | _End", queue: "Queue[Item | _End]", given_up: Event) -> None:
    while not given_up.is_set():
        with suppress(Full):
            queue.put(item, timeout=LOOK_SECONDS)
            return
