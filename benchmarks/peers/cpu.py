"""CPU seconds of processes with all that they start."""

from __future__ import annotations

from collections.abc import Mapping

import psutil


def seconds_of(pid: int) -> float:
    """Used so far by the process, by those of its children that live, and by those that it has waited for."""
    return sum(_own(process) for process in family_of(pid))


def family_of(pid: int) -> list[psutil.Process]:
    """The process and all that it started; none when it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _own(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system + times.children_user + times.children_system


def bytes_of(pid: int) -> int:
    """Resident memory of the process and of its children; pages that they share count for each."""
    return sum(process.memory_info().rss for process in family_of(pid))


def milliseconds_each(before: Mapping[str, float], after: Mapping[str, float], jobs: int) -> dict[str, float]:
    """CPU milliseconds for one job, by process, and of all together.

    before, after: seconds by process. A process that is there only at the end counts from zero.
    """
    each = {name: (seconds - before.get(name, 0.0)) * 1_000 / jobs for name, seconds in after.items()}
    return {**each, "all": sum(each.values())}
