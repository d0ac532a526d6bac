"""A job array as one job with counts (PHASES 1): any task running, else any waiting, else how they ended.

Never: let one held or failed task hide among healthy ones; the counts say it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from agent.clusters.slurm_parse import Row, by_array, tasks
from agent.clusters.slurm_states import normalise, state_words
from states.observation import Phase

ORDER = (
    Phase.running, Phase.starting, Phase.pending, Phase.unknown, Phase.failed, Phase.lost, Phase.preempted,
    Phase.stopped, Phase.succeeded,
)  # fmt: skip
"""Whose word stands for the array: the first of these that any task shows."""

LIVE = frozenset({Phase.running, Phase.starting, Phase.pending, Phase.unknown})


def one_row_each(rows: Iterable[Row]) -> list[Row]:
    """A row for every job, arrays summed up, in the order of the ids."""
    return sorted((summed(group) for group in by_array(rows)), key=_number)


def summed(group: Sequence[Row]) -> Row:
    """The row that stands for an array; a job alone is its own. A held task speaks last among those that wait."""
    if len(group) == 1 and not group[0].get("ArrayTaskId"):
        return group[0]
    told = min(group, key=_place)
    counts: Counter[str] = Counter()
    for row in group:
        word = (state_words(row.get("JobState", "")) or ("UNKNOWN",))[0]
        counts[word] += tasks(row.get("ArrayTaskId", ""))
    return told | {
        "JobId": told.get("ArrayJobId", "") or told["JobId"],
        "Tasks": ", ".join(f"{count} {word}" for word, count in counts.most_common()),
        "SubmitTime": min(row["SubmitTime"] for row in group),
        "StartTime": min((row["StartTime"] for row in group if row["StartTime"]), default=""),
        "EndTime": max((row["EndTime"] for row in group if row["EndTime"]), default=""),
    }


def is_live(row: Row) -> bool:
    """It may still do something: waits, runs, or says a word nobody knows."""
    return normalise(row)["phase"] in LIVE


def _place(row: Row) -> tuple[int, bool]:
    seen = normalise(row)
    return ORDER.index(seen["phase"]), bool(seen.get("held"))


def _number(row: Row) -> int:
    return int(row["JobId"]) if row["JobId"].isdecimal() else 0
