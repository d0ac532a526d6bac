"""Make a failing story small: take out what is not needed for its fault, then make what is left shorter.

Works on the story as data, so nothing here knows what a field means: a piece whose loss makes the story invalid, or
changes what goes wrong, is put back (delta debugging: Zeller and Hildebrandt 2002).

Never: another fault than the one that was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from agent.simulation.run import run_data
from agent.yamlfile import UserFileError

RUNS_MAX = 250
KEPT = frozenset(
    {"title", "covers", "lenient", "until", "expect", "never", "request", "command", "policy", "poll_s"}
)
"""Fields that are never taken out or shortened. The end of a history is kept as well: every job has one."""

Path = tuple[str | int, ...]


def kind_of_fault(fault: str) -> str:
    """What goes wrong, without its times, numbers and ids."""
    return re.sub(r"[\d.]+|\bj\d+|\[.*", "#", fault.partition(" (at ")[0])


def shrink(seed: int, data: Mapping[str, Any], *, runs_max: int = RUNS_MAX) -> dict[str, Any]:
    """The smallest story found that still goes wrong in one of the ways in which this one does."""
    wanted = {kind_of_fault(fault) for fault in run_data(seed, data).faults}

    def fails(tried: Mapping[str, Any]) -> bool:
        try:
            faults = run_data(seed, tried).faults
        except (ValidationError, UserFileError):
            return False
        return any(kind_of_fault(fault) in wanted for fault in faults)

    return smaller(dict(data), fails, runs_max=runs_max) if wanted else dict(data)


def smaller(
    data: dict[str, Any], fails: Callable[[dict[str, Any]], bool], *, runs_max: int
) -> dict[str, Any]:
    """Take out and shorten as long as it still fails. runs_max: how often `fails` is asked at most."""
    left = runs_max
    for change in (_without, _shorter):
        moved = True
        while moved:
            moved = False
            for path in list(_paths(data)):
                tried = change(data, path)
                if tried is None or left <= 0:
                    continue
                left -= 1
                if fails(tried):
                    data, moved = tried, True
    return data


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in the data, the large pieces first; in a list the last ones first, so that indices hold."""
    inner: Sequence[tuple[str | int, Any]]
    if isinstance(value, dict):
        inner = [(n, value[n]) for n in value if n not in KEPT or n in ("request", "policy")]
    elif isinstance(value, list):
        inner = [*enumerate(value)][::-1]
    else:
        return
    for name, _ in inner:
        yield (*path, name)
    for name, child in inner:
        yield from _paths(child, (*path, name))


def _without(data: dict[str, Any], path: Path) -> dict[str, Any] | None:
    """The data without this place; None where it is gone already or is kept."""
    if path[-1] in KEPT or path[-1] == "history":
        return None  # a job without a history never ends
    changed = deepcopy(data)
    inside = _inside(changed, path[:-1])
    if isinstance(inside, dict) and path[-1] in inside:
        del inside[path[-1]]
        return changed
    if isinstance(inside, list) and isinstance(path[-1], int) and path[-1] < len(inside):
        if path[-2] == "history" and path[-1] == len(inside) - 1:
            return None
        del inside[path[-1]]
        return changed
    return None


def _shorter(data: dict[str, Any], path: Path) -> dict[str, Any] | None:
    """The data with the number at this place halved, to whole numbers; None where there is none to halve."""
    changed = deepcopy(data)
    inside = _inside(changed, path[:-1])
    try:
        value = inside[path[-1]]
    except (KeyError, IndexError, TypeError):
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) < 2:
        return None
    inside[path[-1]] = int(value / 2)
    return changed


def _inside(data: Any, path: Path) -> Any:
    for name in path:
        try:
            data = data[name]
        except (KeyError, IndexError, TypeError):
            return None
    return data
