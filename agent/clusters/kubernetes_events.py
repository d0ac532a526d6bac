"""A Job's story as the cluster words it: events of the Job, its pods and its Kueue workload, repeats folded.

Events expire (an hour, by default) and are written by many hands: the newer ones have `eventTime` and `series`, the
older ones first and last times with a count. Where none are left, the Job's conditions tell the story.

Never: take an event for a state; keep one that is another job's of a similar name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from agent.clusters.kubernetes_objects import Object, count, field, items, moment, name_of, text
from states.observation import NativeEvent

MESSAGE_MAX = 500
_OF_A_JOB = re.compile(r"(.+?)(-\d+)?-[a-z0-9]{5}")
_POD_NAME = re.compile(r'(pods? "?[a-z0-9.-]*?-)[a-z0-9]{5}\b')


def when(event: Object) -> datetime | None:
    """When it was last seen."""
    for path in (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",), ("firstTimestamp",)):
        if (found := moment(field(event, *path))) is not None:
            return found
    return moment(field(event, "metadata", "creationTimestamp"))


def in_order(events: Iterable[Object]) -> list[Object]:
    """Oldest first."""
    return sorted(events, key=lambda event: seen.timestamp() if (seen := when(event)) is not None else 0.0)


def of_each(events: Iterable[Object]) -> dict[str, list[Object]]:
    """Events by the name of what they are about; those of pods also by their Job's name and a `~`."""
    found: dict[str, list[Object]] = {}
    for event in events:
        name = text(event, "involvedObject", "name")
        found.setdefault(name, []).append(event)
        if text(event, "involvedObject", "kind") == "Pod" and (made := _OF_A_JOB.fullmatch(name)):
            stems = {made[1], made[1] + (made[2] or "")}
            for stem in stems:
                found.setdefault(f"{stem}~", []).append(event)
    return found


def about(job: Object, by_name: Mapping[str, Sequence[Object]]) -> list[Object]:
    """The events of a Job and its pods, those of pods that are gone included; oldest first.

    A pod's name is its Job's with `-<index>` where it has one and five letters: the index tells two Jobs apart.
    """
    name, uid = name_of(job), text(job, "metadata", "uid")
    indexed = field(job, "spec", "completionMode") == "Indexed"
    of_pods = [event for event in by_name.get(f"{name}~", ()) if _is_its_pod(event, name, indexed)]
    own = [event for event in by_name.get(name, ()) if text(event, "involvedObject", "uid") in ("", uid)]
    return in_order([*own, *of_pods])


def _is_its_pod(event: Object, job: str, indexed: bool) -> bool:
    rest = text(event, "involvedObject", "name").removeprefix(f"{job}-")
    return rest.count("-") == int(indexed)


def story(job: Object, events: Sequence[Object]) -> list[NativeEvent]:
    """Events as they are told: repeats as one with their number, oldest first; conditions where none are left."""
    folded: dict[tuple[str, str], NativeEvent] = {}
    for event in events:
        kind = text(event, "reason") or text(event, "type") or "Event"
        said = text(event, "message")[:MESSAGE_MAX]
        times = count(event, "count") or count(event, "series", "count") or 1
        key = (kind, _POD_NAME.sub(r"\1*", said))
        before = folded.pop(key, None)
        times += before.count if before else 0
        folded[key] = NativeEvent(at=when(event), kind=kind, message=said, count=times)
    return list(folded.values()) or _conditions(job)


def _conditions(job: Object) -> list[NativeEvent]:
    made = NativeEvent(at=moment(field(job, "metadata", "creationTimestamp")), kind="Created", message="")
    told = [
        NativeEvent(
            at=moment(field(one, "lastTransitionTime")),
            kind=text(one, "type") or "Condition",
            message=f"{text(one, 'reason')}: {text(one, 'message')}"[:MESSAGE_MAX],
        )
        for one in items(job, "status", "conditions")
        if one.get("status") == "True"
    ]
    return [made, *sorted(told, key=lambda event: event.at.timestamp() if event.at else 0.0)]
