"""What holds after every instant of every story, whatever it is about (RULES I, RELIABILITY 5).

One job per run and no twin unnoticed; what ended stays ended; whatever lives has a timer; a question has a default
and closes once; no delete unasked and no stop without a reason that is allowed; the journal has no gap and folds
to the snapshot; no key's value stands in anything stored.

Never: an exception for one story.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from agent.scenarios.wellness import next_milestone_s
from agent.scenarios.world import World
from states.events import parse_event
from states.job import MACHINE_VERSION, WATCHED, Job, State
from states.questions import Question, Status
from states.replay import Asked, apart, origin, retold
from states.versions import lift_event

OWN_STOPS = frozenset({"E5", "E6", "E7", "E8"})
WASTED = OWN_STOPS - {"E8"}
ASKED_STOPS = frozenset({"A2", "G2"})
OVERDUE = timedelta(seconds=400)
"""How long an open question may outlive its deadline: a lease or a wave's claim of a dead process, and a bit."""


class Invariants:
    """The guard of one playing. broken: one line for each rule that did not hold, each told once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.broken: list[str] = []
        self._folded: dict[str, Job] = {}
        self._ended: dict[str, State] = {}
        self._closed: dict[str, Status] = {}
        self._twin_since: dict[str, datetime] = {}
        self._misled: set[str] = set()
        """Runs that ended while the cluster told of the past: their last look may have been of before the submit."""

    def check(self) -> None:
        """Look at every run that took an event. Called after each instant, when nothing is due."""
        touched, self.world.touched = self.world.touched, {}
        if sum(one.spec is not None for one in self.world.cluster.jobs) > len(self.world.seen):
            touched = dict(self.world.seen)
        for job_id in touched:
            self._look(job_id)

    def upgraded(self) -> None:
        """Another release carries the runs on: their whole journal must fold to them once more."""
        self._folded.clear()
        self.world.touched |= self.world.seen
        for job_id in self.world.seen:
            if any(event.v != MACHINE_VERSION for event in self.world.store.history(job_id)):
                self.tell(f"{job_id}: I5: an event of an older form was not lifted")

    def close(self) -> None:
        """The last look: at every run, and at everything that is stored."""
        for fault in self._shared():
            self.tell(fault)
        for job_id in self.world.seen:
            self._look(job_id)
            for fault in self._calls(self.world.store.load(job_id)):
                self.tell(f"{job_id}: {fault}")
        if self.world.secret_values():
            for fault in self._leaks():
                self.tell(fault)

    def _look(self, job_id: str) -> None:
        job = self.world.store.load(job_id)
        before = self._folded.get(job_id)
        for fault in self._of(job, changed=before is None or before.seq != job.seq):
            self.tell(f"{job_id}: {fault}")

    def _of(self, job: Job, *, changed: bool) -> Iterator[str]:
        if job.id not in self._misled:
            yield from self._twins(job)
        if job.is_terminal:
            if job.id in self._ended and not changed:
                return
            if job.id not in self._ended and self._lags():
                self._misled.add(job.id)
            if self._ended.setdefault(job.id, job.state) is not job.state:
                yield f"I1: it was {self._ended[job.id]} and is {job.state} now"
        elif job.wake_at is None:
            yield f"E4: it is {job.state} and has no timer"
        yield from self._questions(job)
        if changed:
            yield from self._journal(job)

    def tell(self, fault: str) -> None:
        """Take a fault down, with its moment; the same one once."""
        if fault not in self.broken:
            at = self.world.offset(self.world.clock.now())
            self.broken.append(
                fault if any(fault in told for told in self.broken) else f"{fault} (at {at:g} s)"
            )

    # --- one by one --------------------------------------------------------------------------------------------

    def _twins(self, job: Job) -> Iterator[str]:
        """Two live jobs of a run are noticed by the first look that can see both; after its end, a send that was
        taken for lost by the look that is taken then."""
        now, own = self.world.clock.now(), self.world.own_clock.now()
        own = max(own, job.seen_at or own)  # after a clock went back, a look of before stands in the future
        names = {attempt.name for attempt in job.attempts}
        live = [one for one in self.world.cluster.jobs if one.name in names and not one.is_over(now)]
        live = [one for one in live if one.is_visible(now) and one.spec is not None]
        if job.is_terminal:
            yield from self._late_jobs(job, self.world.cluster.sent & {one.id for one in live})
            return
        if self._lags() or len(live) < 2 or any(one.stopped_at is not None for one in live):
            self._twin_since.pop(job.id, None)
            return
        since = self._twin_since.setdefault(job.id, own)
        looked = job.seen_at is not None and job.seen_at > since
        looks_later = job.state in (*WATCHED, State.submitting)  # a submit in doubt looks by name
        if (looked or not looks_later) and not self._told_of_twins(job) and not job.is_takeover:
            yield f"I1: {len(live)} live cluster jobs ({', '.join(one.id for one in live)}), and nothing was said"

    def _late_jobs(self, job: Job, live: set[str]) -> Iterator[str]:
        """What was sent and lives on after the end is told of, or a look is still to come. A clock that
        stepped takes that look too early."""
        late = sorted(live - {attempt.cluster_job_id for attempt in job.attempts})
        if not late or self.world.story.faults.clock or self._told_of_twins(job):
            return
        looks = (one for one in self.world.store.effects_of(job.id) if one["kind"] == "find_by_name")
        if all(one["done_at"] for one in looks):
            yield f"I1: it has ended, {', '.join(late)} lives on, and nothing was said"

    def _told_of_twins(self, job: Job) -> bool:
        """Asked for is as good as told: a report that cannot be written now is tried again, and never lost."""
        told = any(one["body"].get("stage") == "twin" for one in self.world.store.effects_of(job.id))
        return told or any(question.kind == "twins" for question in job.questions)

    def _lags(self) -> bool:
        """Whether looks tell of the past now."""
        now = self.world.offset(self.world.clock.now())
        return any(one.since <= now < one.until for one in self.world.story.faults.stale)

    def _shared(self) -> Iterator[str]:
        """No two runs take the same cluster job for theirs."""
        owners: dict[str, str] = {}
        for job_id in self.world.seen:
            for attempt in self.world.store.load(job_id).attempts:
                owner = (
                    owners.setdefault(attempt.cluster_job_id, job_id) if attempt.cluster_job_id else job_id
                )
                if owner != job_id:
                    yield f"I1: {owner} and {job_id} are both of the cluster job {attempt.cluster_job_id}"

    def _questions(self, job: Job) -> Iterator[str]:
        for question in job.questions:
            yield from self._question(job, question)

    def _question(self, job: Job, question: Question) -> Iterator[str]:
        known = self._closed.get(question.id)
        if question.is_open:
            if known is not None:
                yield f"G4: question {question.number} was {known} and is open again"
            due = max(question.answer_by, self.world.booted_at)  # nobody was there before
            late = self.world.own_clock.now() - due
            if late > self._overdue() and not self.world.store.dead:
                yield f"G2: question {question.number} is open long after its deadline"
            if job.is_terminal:
                yield f"G2: the run is over and question {question.number} is still open"
        elif known is None:
            self._closed[question.id] = question.status
        elif known is not question.status:
            yield f"G4: question {question.number} was {known} and then {question.status}"
        if question.default not in question.template.options:
            yield f"G1: question {question.number} has no default"

    def _overdue(self) -> timedelta:
        """A clock that stepped, or a database that took no writes, makes everything later."""
        faults = self.world.story.faults
        stepped_s = sum(abs(one.by) for one in faults.clock)
        waited_s = sum(one.times for one in faults.store) * 120.0
        return OVERDUE + timedelta(seconds=stepped_s + waited_s)

    def _journal(self, job: Job) -> Iterator[str]:
        """No gap, and the fold of what is new is the snapshot, asking for the same effects."""
        before = self._folded.get(job.id) or origin(job)
        rows = self.world.store.journal(job.id, after_seq=before.seq)
        if [row["seq"] for row in rows] != list(range(before.seq + 1, job.seq + 1)):
            yield f"I5: the journal has a gap: {[row['seq'] for row in rows]} up to {job.seq}"
            return
        asked = self._asked(job, before.seq)
        events = [parse_event(lift_event(row["body"])) for row in rows]
        recorded = [Asked(row["seq"], row["to"], tuple(asked.get(row["seq"], ()))) for row in rows]
        self._folded[job.id], found = retold(before, events, recorded)
        if found := found or apart(self._folded[job.id], job):
            yield f"I5: the fold of the journal is not the run: {found}"
        for row in rows:
            if row["outcome"] != "ignored" and not row["rule"]:
                yield f"I5: event {row['seq']} ({row['kind']}) names no rule"

    def _asked(self, job: Job, after_seq: int) -> dict[int, list[dict[str, Any]]]:
        asked: dict[int, list[dict[str, Any]]] = {}
        for row in self.world.store.effects_of(job.id, after_seq=after_seq):
            asked.setdefault(row["seq"], []).append(row["body"])
        return asked

    def _calls(self, job: Job) -> Iterator[str]:
        """A delete was asked for by name; a stop of the run's own job has a reason that is allowed."""
        rows = {row["seq"]: row for row in self.world.store.journal(job.id)}
        for effect in self.world.store.effects_of(job.id):
            cause = rows[effect["seq"]]
            if effect["kind"] == "delete_job" and cause["kind"] != "delete_requested":
                yield f"A7: a delete was asked for by {cause['kind']}"
            if effect["kind"] == "stop_job" and not effect["body"].get("twin"):
                yield from self._stop(job)

    def _stop(self, job: Job) -> Iterator[str]:
        order = job.stop
        if order is None:
            yield "A2: a stop was asked for and the run does not know why"
        elif order.by == "watchkeeper":
            if order.rule not in OWN_STOPS:
                yield f"E7: it was stopped on its own judgment for {order.rule}"
            elif job.is_takeover and not job.may_stop_alone and order.rule != "E8":
                yield "A10: somebody else's job was stopped without leave"
            elif order.rule in WASTED:
                yield from self._healthy(job)
        elif order.rule not in ASKED_STOPS:
            yield f"A2: it was stopped for {order.rule} by {order.by}"

    def _healthy(self, job: Job) -> Iterator[str]:
        """What was stopped as wasted would not have gone on as before. An earlier attempt's job was given up, and
        halted for that."""
        for one in self.world.cluster.jobs:
            if one.name == job.attempt.name and (soon_s := next_milestone_s(one)) is not None:
                yield f"E6: {one.id} was stopped and was well: its next step was {soon_s:g} s away"

    def _leaks(self) -> Iterator[str]:
        text = stored_text(self.world)
        for name, value in self.world.secret_values().items():
            if len(value) >= 6 and value in text:
                yield f"B4: the value of {name} is stored"


def stored_text(world: World) -> str:
    """Everything that the store holds, as one text."""
    store = world.store
    parts: list[Any] = [dict(row) for row in world.library.entries()]
    for job_id in world.seen:
        parts.append(store.load(job_id).model_dump(mode="json"))
        for rows in (store.journal(job_id), store.effects_of(job_id), store.messages(job_id)):
            parts += [dict(row) for row in rows]
    order = list(world.seen)  # the lists go by time, and of one instant by ids that chance drew
    parts += sorted((dict(row) for row in store.boards()), key=lambda row: order.index(row["id"]))
    return json.dumps(parts, default=str, ensure_ascii=False)
