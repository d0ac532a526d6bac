"""From a job as it is shown to an observation: with the wrapper's record, and its events where only they tell.

Two moments are remembered, for this process alone: since when a job is said to run, and since when it has ended.
Both only bridge a delay (the record that is about to appear, the last lines of a log).

Never: read the events of a job whose word and record settle what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.clusters import brainpp_logs
from agent.clusters.base import NotThere, Unreachable
from agent.clusters.brainpp_notes import Notes, end_of
from agent.clusters.brainpp_parse import Shown
from agent.clusters.brainpp_reads import Reads
from agent.clusters.brainpp_words import MAY_BE_A_PREEMPTION, normalise
from agent.clusters.local_time import monotonic_s, pause
from states.observation import ENDED, Phase

EVENTS_PER_LOOK = 20
"""Ended jobs whose events one look reads to tell a preemption from a failure; the others wait for the next."""
SETTLE_TRIES = 3
SETTLE_WITHIN_S = 120.0
"""How long after an end was seen the last lines of a log may still be on their way (RJOB 3: about a minute)."""
BEGIN_WITHIN_S = 180.0
"""How long `Running` may be said before the wrapper's record appears; after that the word is believed."""
REMEMBERED_MAX = 20_000

Place = tuple[str, str]
"""(namespace, metadata name)"""


class Looks:
    """Observations of shown jobs. settle_s: pause between two reads of a log that has just ended."""

    def __init__(self, reads: Reads, notes: Notes, settle_s: float) -> None:
        self._reads, self._notes, self._settle_s = reads, notes, settle_s
        self._running_since: dict[Place, float] = {}
        self._ended_since: dict[Place, float] = {}

    def fields(self, place: Place, job: Shown, events_left: list[int]) -> dict[str, Any]:
        """Fields of the job's observation (without `taken_at`). events_left[0]: how many more jobs' events may be
        read in this look."""
        note = self._notes.get(*place) or self._notes.get(place[0], job.showname or job.name)
        word = job.word.lower()
        begun = normalise({"word": word})["phase"] not in (Phase.pending, Phase.starting, Phase.unknown)
        end = end_of(note if begun else None)
        native = {**job._asdict(), **end._asdict()}
        fields = normalise(native)
        idle = note is None or note.lane == "idle" or word == "killed"
        if word in MAY_BE_A_PREEMPTION and idle and not end.is_its_own:
            fields = self._ended_by_whom(place, native, events_left)
        expected = note is not None and note.wrapped and end.started_at is None
        if end.started_at is not None:
            self._running_since[place] = -BEGIN_WITHIN_S
        if fields["phase"] is Phase.running and expected and self._is_about_to_begin(place):
            fields["phase"] = Phase.starting
        self._remember(place, fields["phase"])
        return fields

    def tail(self, place: Place, asked: int) -> brainpp_logs.Had | None:
        """The last lines of its log; None while none can exist. Just after its end they are read until they stay
        the same."""
        had = self._reads.tail(*place, asked)
        since = self._ended_since.get(place)
        if since is None or monotonic_s() - since > SETTLE_WITHIN_S:
            return had
        for _ in range(SETTLE_TRIES):
            pause(self._settle_s)
            again = self._reads.tail(*place, asked)
            if again == had:
                break
            had = again
        return had

    def _is_about_to_begin(self, place: Place) -> bool:
        """`Running` is said and the command has not begun: the workspace is still being mounted there."""
        since = self._running_since.setdefault(place, monotonic_s())
        return monotonic_s() - since < BEGIN_WITHIN_S

    def _remember(self, place: Place, phase: Phase) -> None:
        if phase in ENDED or phase is Phase.preempted:
            self._running_since.pop(place, None)
            self._ended_since.setdefault(place, monotonic_s())
        elif phase is Phase.pending:
            self._running_since.pop(place, None)
            self._ended_since.pop(place, None)
        for moments in (self._running_since, self._ended_since):
            if len(moments) > REMEMBERED_MAX:
                moments.clear()

    def _ended_by_whom(self, place: Place, native: Mapping[str, Any], left: list[int]) -> dict[str, Any]:
        """Its events tell whether it was preempted; while they cannot be read it counts as alive (PHASES 4)."""
        doubt = "its events are not read yet"
        if left[0] > 0:
            left[0] -= 1
            try:
                return normalise({**native, "events": self._reads.events(*place)})
            except (Unreachable, NotThere):
                doubt = "its events cannot be read"
        return normalise({**native, "word": "Unknown", "rest": f"({native['word']}; {doubt})"})
