"""Fold a recorded history again and find where it parts from what was recorded.

The journal holds what happened and what was asked; the snapshot is the authority for running. Both must agree:
the fold of the events is the snapshot, and every step asks for the effects that were asked then. A scenario
checks it after every step, `wk doctor` before an upgrade (RELIABILITY 6).

Never: repair a history, or decide anything anew for a run that is under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from states.effects import AnyEffect
from states.events import AnyEvent
from states.job import Job, snapshot
from states.machine import Step, step
from states.spec import draft

WORDING = frozenset({"text", "summary", "why", "note", "evidence"})
"""Fields of effects and snapshots that are sentences: another wording is not another decision."""


class Asked(NamedTuple):
    """What one event led to, as recorded: its number, the state after it, the asked effects as JSON-able data."""

    seq: int
    to: str
    effects: tuple[Mapping[str, Any], ...] = ()


class Divergence(NamedTuple):
    """The first place where the recomputed history is not the recorded one.

    what: "state", "effects", "wording" or "snapshot"; recorded and recomputed: that value on both sides.
    """

    seq: int
    event: str
    what: str
    recorded: Any
    recomputed: Any

    def __str__(self) -> str:
        return (
            f"after event {self.seq} ({self.event}) the {self.what} differ: "
            f"recorded {self.recorded!r}, recomputed {self.recomputed!r}"
        )


def origin(job: Job) -> Job:
    """The run as it was when it was delegated, made from what never changes in it."""
    return Job(
        id=job.id,
        request=job.request,
        spec=draft(job.request, workspace=job.spec.workspace),
        created_at=job.created_at,
        request_id=job.request_id,
        owner=job.owner,
        orders=job.orders,
        by_order=job.by_order,
        cluster=job.cluster,
        language=job.language,
        capabilities=job.capabilities,
        policy_set=job.policy_set,
        parent=job.parent,
    )


def advance(job: Job, event: AnyEvent) -> Step:
    """One step with the event's number counted, as the store does it."""
    taken = step(job, event)
    return taken._replace(job=taken.job.but(seq=job.seq + 1))


def fold(job: Job, events: Iterable[AnyEvent]) -> Job:
    """The run after these events. job: before the first of them, as `origin` gives it for a whole history."""
    for event in events:
        job = advance(job, event).job
    return job


def retold(job: Job, events: Sequence[AnyEvent], recorded: Sequence[Asked]) -> tuple[Job, Divergence | None]:
    """The run after these events (or the first that differs), and the first difference between the recorded history
    and the one this machine would make; None: the same.

    events and recorded run in parallel. A difference in decisions wins over one in wording alone.
    """
    reworded: Divergence | None = None
    for event, before in zip(events, recorded, strict=True):
        taken = advance(job, event)
        job = taken.job
        found = _compare(event, before, taken)
        if found is not None and found.what != "wording":
            return job, found
        reworded = reworded or found
    return job, reworded


def apart(folded: Job, stored: Job) -> Divergence | None:
    """Where a folded run differs from the stored one; None when both give the same snapshot."""
    here, there = snapshot(folded), snapshot(stored)
    if here == there and folded.seq == stored.seq:
        return None
    names = [name for name in {**there, **here} if here.get(name) != there.get(name)] or ["seq"]
    recorded = {name: there.get(name) for name in names}
    return Divergence(stored.seq, "fold", "snapshot", recorded, {name: here.get(name) for name in names})


def body(effect: AnyEffect) -> dict[str, Any]:
    """An effect as the journal keeps it."""
    return effect.model_dump(mode="json", exclude_defaults=True) | {"kind": effect.kind}


def _compare(event: AnyEvent, before: Asked, taken: Step) -> Divergence | None:
    def differs(what: str, recorded: Any, recomputed: Any) -> Divergence:
        return Divergence(before.seq, event.kind, what, recorded, recomputed)

    if before.to != taken.job.state:
        return differs("state", before.to, str(taken.job.state))
    effects = tuple(body(effect) for effect in taken.effects)
    if tuple(map(dict, before.effects)) == effects:
        return None
    plain = [_plain(effect) for effect in before.effects], [_plain(effect) for effect in effects]
    if plain[0] != plain[1]:
        return differs("effects", *plain)
    return differs("wording", before.effects, effects)


def _plain(value: Any) -> Any:
    """The value without its sentences."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if key not in WORDING}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
