"""What befalls the world of a story at moments that it names: the clock steps, a twin appears, an event comes again.

Never: the work of a process (that is `play`); what people do (that is `person`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from agent.scenarios.faults import AgainStory
from agent.scenarios.world import World
from states.events import parse_event
from states.versions import lift_event


class Stuck(Exception):
    """The story cannot go on; the message says where and why."""


class Happenings:
    """Those of one playing, in order of time."""

    def __init__(self, world: World) -> None:
        self.world = world
        faults = world.story.faults
        self._again = sorted(faults.again, key=lambda again: again.at)
        self._twins = sorted(faults.twins, key=lambda twin: twin.at)
        self._steps = sorted(faults.clock, key=lambda step: step.at)

    def next_at(self) -> Iterator[datetime]:
        """When the next ones come."""
        for first in (self._again[:1], self._twins[:1], self._steps[:1]):
            yield from (self.world.at(one.at) for one in first)

    def step_clocks(self) -> bool:
        """The steps of the machine's clock that are due; True when it stepped."""
        stepped = False
        while self._steps and self._is_due(self._steps[0].at):
            self.world.own_clock.ahead_s += self._steps.pop(0).by
            stepped = True
        return stepped

    def come(self) -> bool:
        """Everything else that is due; True when something came. Raises Stuck for what cannot be, unless the story is
        lenient."""
        came = False
        while self._twins and self._is_due(self._twins[0].at):
            self._add_twin()
            came = True
        while self._again and self._is_due(self._again[0].at):
            self._take_again(self._again.pop(0))
            came = True
        return came

    def _is_due(self, at_s: float) -> bool:
        return self.world.at(at_s) <= self.world.clock.now()

    def _add_twin(self) -> None:
        twin = self._twins.pop(0)
        ours = [job for job in self.world.cluster.jobs if job.spec is not None]
        if not ours and self.world.story.lenient:
            return
        if not ours:
            raise Stuck(f"the twin at {twin.at:g} s has no job to be the twin of")
        first = ours[-1]
        self.world.cluster.add(
            first.name,
            self.world.script(twin),
            owner=first.owner,
            fingerprint=first.fingerprint,
            spec=first.spec,
        )

    def _take_again(self, again: AgainStory) -> None:
        """An event of the past is delivered a second time, under a key of its own, as a lagging replica would."""
        job_id = self.world.run_of(again.run)
        rows = self.world.store.journal(job_id) if job_id else []
        bodies = [row["body"] for row in rows if row["kind"] == again.event]
        if len(bodies) < again.n:
            if self.world.story.lenient:
                return
            raise Stuck(f"there was no {again.event!r} number {again.n} before {again.at:g} s")
        body = {**lift_event(bodies[again.n - 1]), "key": f"again:{again.at:g}:{again.event}:{again.n}"}
        event = parse_event(body).model_copy(update={"at": self.world.own_clock.now()})
        self.world.store.apply(job_id, event)
