"""Every sequence of events, from every state: the events that may come next, and what must hold after each.

Sequences that lead to the same job, times aside, go on as one; so a layer is a set of jobs, not of paths. Where a
promise is about the past (what was submitted, what became of it), a `Ledger` remembers it beside the job.

Never: an event left out because "it cannot come now"; late, double and foreign ones are the point.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pydantic import BaseModel

from states import events as happened
from states.job import Job
from states.machine import step
from states.observation import Phase, Waiting
from states.timers import deadlines
from tests.states import builders as b
from tests.states.promises import Ledger, broken

SECOND_LOOK_S = 130.0
SETTLED_S = 200.0
LONG_S = 7 * 3600.0

QUICK: Mapping[str, tuple[b.Teller, float]] = {
    "delegated": (b.delegated("image"), 1),
    "check fine": (b.check_is("image"), 1),
    "child passed": (b.child_is(True), 1),
    "submitted": (b.submitted(), 1),
    "rejected": (b.rejected(), 1),
    "unclear": (b.unclear(), 1),
    "absent, settled": (b.looked_up(), SETTLED_S),
    "found": (b.looked_up(b.match()), 1),
    "pending": (b.seen(Phase.pending), 1),
    "runs": (b.seen(Phase.running), 1),
    "succeeded": (b.seen(Phase.succeeded, exit_code=0), 1),
    "lost, second look": (b.seen(Phase.lost), SECOND_LOOK_S),
    "away": (b.away(), 1),
    "log moves": (b.log(b.moving()), 1),
    "log network": (b.log(b.trouble("network.timeout", repeats=10)), SECOND_LOOK_S),
    "reading void": (b.interpreted(failed="no model"), 1),
    "answer 1": (b.answered("1"), 1),
    "stop": (b.stop_asked_for(), 1),
    "stop taken": (lambda job, at: happened.StopAsked(at=at, cluster_job_id="41", ok=True), 1),
    "delete by name": (lambda job, at: happened.DeleteRequested(at=at, name=job.id), 1),
    "deleted": (lambda job, at: happened.Deleted(at=at, ok=True), 1),
    "collected": (b.collected(exit_code=0), 1),
    "timer": (b.woken(), 1),
    "check given up": (b.given_up("run_check", "image"), 1),
}
"""At least one of each kind: these go to full depth."""

THOROUGH: Mapping[str, tuple[b.Teller, float]] = {
    "check asks": (b.check_is("image", "ask", "image"), 1),
    "other check asks": (b.check_is("capacity", "ask", "capacity"), 1),
    "check refuses": (b.check_is("image", "refuse"), 1),
    "preview told": (b.check_is("preview", "note"), 1),
    "preview refused": (b.check_is("preview", "ask", "rejected"), 1),
    "check could not": (b.check_is("capacity", "could_not"), 1),
    "child failed": (b.child_is(False), 1),
    "build passed": (b.child_is(True, "build"), 1),
    "build failed": (b.child_is(False, "build"), 1),
    "rejected, may pass": (b.rejected(retryable=True), 1),
    "image rejected": (b.rejected("image.not_found"), 1),
    "absent": (b.looked_up(), 1),
    "absent, long": (b.looked_up(), LONG_S),
    "look-up unreachable": (b.looked_up(reachable=False), 1),
    "look-up unreachable, long": (b.looked_up(reachable=False), LONG_S),
    "name is taken": (b.looked_up(b.match(ours=False)), 1),
    "two found": (b.looked_up(b.match("41"), b.match("42")), 1),
    "starting": (b.seen(Phase.starting), 1),
    "held": (b.seen(Phase.pending, held=True, waiting=Waiting.held, reason="hold"), 1),
    "never fits": (b.seen(Phase.pending, waiting=Waiting.never, reason="too big"), 1),
    "pending, long": (b.seen(Phase.pending), 30 * 3600.0),
    "failed": (b.seen(Phase.failed, exit_code=1), 1),
    "node failed": (b.seen(Phase.failed, exit_code=1, cause="node.fault"), 1),
    "stopped": (b.seen(Phase.stopped), 1),
    "lost": (b.seen(Phase.lost), 1),
    "preempted": (b.seen(Phase.preempted), 1),
    "preempted, second look": (b.seen(Phase.preempted), SECOND_LOOK_S),
    "gone": (b.seen(Phase.gone), 1),
    "gone, second look": (b.seen(Phase.gone), SECOND_LOOK_S),
    "odd word": (b.seen(Phase.unknown, native="WHATEVER"), 1),
    "finishing": (b.seen(Phase.running, finishing=True), 1),
    "finishing, long": (b.seen(Phase.running, finishing=True), 2000),
    "runs, log due": (b.seen(Phase.running), 2000),
    "waiting twin": (b.seen(Phase.running, twins=(b.match("42"),)), 1),
    "running twin": (b.seen(Phase.running, twins=(b.match("42", Phase.running),)), 1),
    "foreign twin": (b.seen(Phase.running, twins=(b.match("42", ours=False),)), 1),
    "another attempt runs": (
        lambda job, at: b.seen(Phase.running)(job.but(attempts=()), at),
        1,
    ),
    "away, long": (b.away(), LONG_S),
    "log nan": (b.log(b.nan_for(50)), 1),
    "log fatal": (b.log(b.trouble("memory.gpu", fatal=True)), SECOND_LOOK_S),
    "log download": (b.log(b.trouble("download.slow")), 1),
    "log puzzles": (b.log(b.puzzling()), 1),
    "log puzzles, all of it": (b.log(b.puzzling(), lines=2000), 1),
    "log unreadable": (b.log(b.moving(), readable=False), 1),
    "final log": (b.log(b.trouble("node.fault", fatal=True), final=True), 1),
    "reading calm": (b.interpreted("slow"), 1),
    "reading grave": (b.interpreted("failing"), 1),
    "answer 2": (b.answered("2"), 1),
    "answer 3": (b.answered("3"), 1),
    "answer with a value": (b.answered("reg/b:2"), 1),
    "answer 2 with a value": (b.answered("2 4"), 1),
    "answer again": (b.answered("again"), 1),
    "answer no option": (b.answered("perhaps"), 1),
    "answer unknown question": (b.answered("1", 39), 1),
    "stop not taken": (lambda job, at: happened.StopAsked(at=at, cluster_job_id="41", ok=False), 1),
    "delete by a wrong name": (lambda job, at: happened.DeleteRequested(at=at, name="digits"), 1),
    "not deleted": (lambda job, at: happened.Deleted(at=at, ok=False), 1),
    "collected, failed": (b.collected(exit_code=1), 1),
    "collected nothing": (lambda job, at: happened.OutputsCollected(at=at, collected=job.collected), 1),
    "output missing": (b.collected(exit_code=0, missing=("best.pt",)), 1),
    "no answer": (b.deadline_passed(), 1),
    "timer, early": (lambda job, at: happened.WakeDue(at=at), 1),
    "timer, very late": (lambda job, at: happened.WakeDue(at=at), 40 * 3600.0),
    "child given up": (b.given_up("delegate", "digits-k3f9-s1"), 1),
    "report given up": (b.given_up("report"), 1),
}
"""What matters in the content of an event."""

EVERYTHING = {**QUICK, **THOROUGH}


def starts() -> Mapping[str, Job]:
    """Every state, most of them in several ways."""
    smoke = {"smoke": "true"}
    ended = b.led(b.in_collecting(), b.collected(exit_code=0), start_s=40)
    asked = b.led(
        b.in_preflight(),
        b.check_is("image", "ask", "image"),
        b.check_is("capacity", "ask", "capacity"),
        start_s=5,
    )
    sought = b.led(b.in_submitting(), b.unclear(), start_s=5)
    unread = b.led(b.in_queued(), b.seen(Phase.running), start_s=20)
    restarted = b.led(b.in_running(), b.seen(Phase.preempted), start_s=40)
    restarted = b.led(restarted, b.seen(Phase.preempted), start_s=40 + SECOND_LOOK_S)
    return {
        "preflight": b.in_preflight(),
        "preflight, smoke": b.led(b.in_preflight(request=smoke), b.check_is("capacity"), start_s=5),
        "preflight, preview": b.led(
            b.new_job(), b.delegated("image", "preview"), b.check_is("image"), start_s=5
        ),
        "submitting": b.in_submitting(),
        "submitting, unclear": sought,
        "submitting, to be sent again": b.led(b.in_submitting(), b.rejected(retryable=True), start_s=5),
        "submitting, restarted": restarted,
        "queued": b.in_queued(),
        "queued, idle child": b.in_queued(parent="digits-p2q4"),
        "running": b.in_running(),
        "running, log not read": unread,
        "running, with a stop condition": b.in_running(request={"stop_when": ({"wall_s": 3600.0},)}),
        "running, somebody else's": b.taken_over(),
        "running, somebody else's, may be stopped": b.taken_over(may_stop=True),
        "blocked before the submit": asked,
        "blocked in the submit": b.led(sought, b.looked_up(reachable=False), start_s=LONG_S),
        "blocked in the queue": b.led(
            b.in_queued(),
            *[b.seen(Phase.pending, held=True, waiting=Waiting.held, reason="hold")] * 2,
            start_s=40,
        ),
        "blocked while it runs": b.led(
            b.in_running(), b.log(b.trouble("network.timeout", repeats=10)), start_s=400
        ),
        "blocked by twins": b.led(
            b.in_running(), b.seen(Phase.running, twins=(b.match("42", Phase.running),)), start_s=40
        ),
        "stopping": b.in_stopping(),
        "collecting": b.in_collecting(),
        "collecting a failure": b.in_collecting(Phase.failed),
        "succeeded": ended,
        "failed": b.led(b.in_collecting(Phase.failed), b.collected(exit_code=1), start_s=40),
        "stopped": b.led(b.in_stopping(), b.seen(Phase.stopped), b.collected(), start_s=40),
        "not submitted": b.led(b.in_preflight(), b.stop_asked_for(), start_s=5),
        "unknown": b.led(
            b.in_running(),
            b.seen(Phase.gone),
            b.seen(Phase.gone, taken_at=b.after(400)),
            b.collected(),
            start_s=40,
            every_s=SECOND_LOOK_S,
        ),
    }


class Node(NamedTuple):
    """A job somewhere on a sequence: what was promised about its past, the moment, how it came here."""

    job: Job
    ledger: Ledger
    at: datetime
    path: tuple[str, ...]


class Walk(NamedTuple):
    """What a search found. reached: one node for each different job. broken: promise -> sequences that break it."""

    steps: int
    reached: tuple[Node, ...]
    broken: Mapping[str, list[tuple[str, ...]]]


def walk(starting: Mapping[str, Job], depth: int, thorough: int) -> Walk:
    """All sequences of up to `depth` events from each job; those behind the first `thorough` come from QUICK."""
    layer = [Node(job, Ledger.of(job), b.at_of(job), (name,)) for name, job in starting.items()]
    known = {_key(node) for node in layer}
    every = list(layer)
    found: dict[str, list[tuple[str, ...]]] = {}
    steps = 0
    for length in range(1, depth + 1):
        following: list[Node] = []
        for node in layer:
            for name, (teller, later_s) in (EVERYTHING if length <= thorough else QUICK).items():
                steps += 1
                reached = _take(node, name, teller, later_s, found)
                if reached is None or length == depth:
                    continue
                key = _key(reached)
                if key not in known:
                    known.add(key)
                    following.append(reached)
        layer = following
        every += following
    return Walk(steps, tuple(every), found)


def _take(
    node: Node, name: str, teller: b.Teller, later_s: float, found: dict[str, list[tuple[str, ...]]]
) -> Node | None:
    """The node after one event; None when the event changed nothing."""
    event = teller(node.job, node.at + timedelta(seconds=later_s))
    path = (*node.path, name)
    try:
        taken = step(node.job, event)
    except Exception as error:
        found.setdefault(f"nothing raises: {type(error).__name__}: {error}", []).append(path)
        return None
    ledger = node.ledger.noting(node.job, event, taken)
    for promise in broken(node.job, event, taken, node.ledger):
        found.setdefault(promise, []).append(path)
    if taken.changed_nothing:
        return None if ledger == node.ledger else Node(node.job, ledger, event.at, path)
    return Node(taken.job.but(seq=node.job.seq + 1), ledger, event.at, path)


# --- which jobs are the same, times aside ------------------------------------------------------------------

_LEFT_OUT = {
    "moments", "notes", "outcome", "next_action", "seq", "looks", "rate_per_s", "eta_s", "eta_spread_s", "cadence_s",
    "output_cadence_s", "cadences", "summary", "closed_why", "facts", "segment", "policy_set", "capabilities",
    "request", "excerpt", "id", "number", "asked_topics", "rate_spread", "created_at", "reported_at",
}  # fmt: skip
"""Words and figures that no guard of these jobs rests on."""

_kept: dict[int, tuple[Any, object]] = {}


def _key(node: Node) -> object:
    due = frozenset(name for name, at in deadlines(node.job).items() if at <= node.at)
    topics = frozenset(re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "", topic) for topic in node.job.asked_topics)
    return (_shape(node.job), node.ledger, due, topics)


def _shape(value: Any) -> object:
    """The value as something hashable, each time as "there is one"."""
    if isinstance(value, BaseModel):
        held = _kept.get(id(value))
        if held is not None and held[0] is value:
            return held[1]
        made = tuple(_shape(one) for name, one in value.__dict__.items() if name not in _LEFT_OUT)
        if not isinstance(value, Job):
            _kept[id(value)] = (value, made)
        return made
    if isinstance(value, datetime):
        return "then"
    if isinstance(value, dict):
        return tuple(sorted((key, _shape(one)) for key, one in value.items()))
    if isinstance(value, (tuple, list)):
        return tuple(_shape(one) for one in value)
    return "nan" if value != value else value


def in_words(found: Walk) -> list[str]:
    """Every broken promise with its shortest sequence, one line each."""
    return [
        f"{promise} ({len(paths)} sequences): {' -> '.join(min(paths, key=len))}"
        for promise, paths in found.broken.items()
    ]


def kinds_of(tellers: Mapping[str, tuple[b.Teller, float]]) -> set[str]:
    job = b.in_running()
    return {teller(job, b.at_of(job)).kind for teller, _ in tellers.values()}
