"""From a Job, its pods, their events and nodes and its Kueue workload to one observation (PHASES 2).

Read in this order, the first that decides wins: Job conditions; suspension (ours, Kueue's, somebody's); the newest
pod of each place; the node it is on; events, which expire and are hints only.

Never: read a clock or the API; make an outcome of a record that is missing; take `active` for running.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.clusters.kubernetes_ends import disruption, end_of
from agent.clusters.kubernetes_native import Native, attempt, began, is_lost, is_over, part, went_well, where
from agent.clusters.kubernetes_objects import (
    Object,
    annotation,
    by_index,
    condition,
    count,
    field,
    items,
    labels_of,
    main_container,
    moment,
    runs,
    terminated,
    text,
)
from agent.clusters.kubernetes_pods import running
from agent.clusters.kubernetes_waits import queued_by_kueue, without_pods
from states.observation import Phase, Waiting

STOPPED = "watchkeeper/stopped"
"""Annotation with the time at which Watchkeeper was told to stop the Job."""
STARTED = "watchkeeper/started"
"""Annotation beside it: when the work had begun, since that goes with the pods."""
QUEUE = "kueue.x-k8s.io/queue-name"

TEXT_MAX = 400
STOP_CODES = (137, 143)
LIVE = (Phase.pending, Phase.starting, Phase.running)
_EXIT = re.compile(r"with exit code (\d+)")


def normalise(native: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an `Observation` (all but taken_at, confirmed, twins) from native objects.

    native: `job` (None: no record), `pods`, `events` (oldest first), `nodes` (left out: they may not be read),
    `workload`; the objects as the API server sends them, times as text or as YAML reads them.
    """
    job = native.get("job")
    if not isinstance(job, Mapping):
        return {"phase": Phase.gone, "native": "", "reason": "no record of this Job"}
    pods = items(native, "pods")
    nodes = native.get("nodes")
    found = Native(
        job,
        by_index(pods, count(job, "spec", "parallelism")),
        items(native, "events"),
        None if nodes is None else items(native, "nodes"),
        native.get("workload"),
    )
    fields = _judged(found)
    if fields["phase"] in LIVE or fields.get("finishing"):
        fields.pop("ended_at", None)
    fields["reason"] = str(fields.get("reason", ""))[:TEXT_MAX]
    told = {**_counts(found, fields), **fields, "native": _words(found)[:TEXT_MAX]}
    return {name: value for name, value in told.items() if value is not None}


def _judged(found: Native) -> dict[str, Any]:
    job = found.job
    if condition(job, "Complete"):
        return {"phase": Phase.succeeded, **_span(found), "exit_code": 0}
    if condition(job, "SuccessCriteriaMet"):
        return {"phase": Phase.succeeded, "finishing": True, **_span(found)}
    for kind in ("Failed", "FailureTarget"):
        if (told := condition(job, kind)) is not None:
            return _failed(found, told) | ({} if kind == "Failed" else {"finishing": True})
    if field(job, "spec", "suspend") is True:
        return _suspended(found)
    if not found.places:
        queued = QUEUE in labels_of(job) and found.workload is not None
        told_by_kueue = queued_by_kueue(found.workload) if queued else {}
        fields = without_pods(
            [event for event in found.events if text(event, "involvedObject", "kind") != "Pod"]
        )
        return fields if fields["reason"] or not told_by_kueue else told_by_kueue
    return running(found)


# --- an end that the Job's conditions tell -----------------------------------------------------------------


def _failed(found: Native, told: Object) -> dict[str, Any]:
    why, said = text(told, "reason"), text(told, "message")
    ended = _first_failure(found)
    fields = {"phase": Phase.failed, "reason": f"{why}: {said}", **_span(found, told)}
    if why == "DeadlineExceeded":
        ran = fields.get("started_at") is not None
        note = "" if ran else " (no container of it is known to have run: waiting and pulling count too)"
        return fields | {"cause": "scheduling.time_limit", "reason": f"{why}: {said}{note}"}
    if why == "PodFailurePolicy" and "DisruptionTarget" in said and ended.get("phase") is not Phase.lost:
        return (
            fields
            | {"phase": Phase.preempted, "cause": "scheduling.preempted"}
            | part(ended, "reason", "node")
        )
    if why == "PodFailurePolicy" and (code := _EXIT.search(said)) and "exit_code" not in ended:
        ended |= {"exit_code": int(code[1])}
    if not found.places and (gone := _gone_with(found.events)):
        return fields | gone
    fields |= part(ended, "phase", "cause", "exit_code", "signal", "node")
    if detail := ended.get("reason"):
        fields["reason"] = f"{detail} ({why})"
    if count(found.job, "status", "succeeded"):
        succeeded = count(found.job, "status", "succeeded")
        fields["reason"] = f"{fields['reason']}; yet {succeeded} of its pods succeeded"
    if annotation(found.job, STOPPED) and _is_a_kill(fields, found):
        return fields | {"phase": Phase.stopped, "cause": "", "reason": "stopped on request"}
    return fields


def _first_failure(found: Native) -> dict[str, Any]:
    """The end of the newest pod of the place that failed first; what others did then is a cascade."""
    failures = [place[-1] for place in found.places if is_over(place[-1]) and not went_well(place[-1])]
    if not failures:
        return {}
    own = [pod for pod in failures if field(terminated(pod), "exitCode") not in STOP_CODES or disruption(pod)]
    first = min(own or failures, key=lambda pod: text(terminated(pod), "finishedAt") or "9")
    return {**end_of(first), "node": text(first, "spec", "nodeName")}


def _gone_with(events: Sequence[Object]) -> dict[str, Any]:
    """What events still say of a pod that is gone together with how it ended."""
    for event in reversed(events):
        if event.get("reason") == "Preempted":
            return {
                "phase": Phase.preempted,
                "cause": "scheduling.preempted",
                "reason": text(event, "message"),
            }
        if event.get("reason") == "TaintManagerEviction" and "Cancelling" not in text(event, "message"):
            return {"phase": Phase.lost, "reason": text(event, "message")}
    return {}


def _is_a_kill(fields: Mapping[str, Any], found: Native) -> bool:
    return fields.get("exit_code") in STOP_CODES or not found.places


# --- suspension --------------------------------------------------------------------------------------------


def _suspended(found: Native) -> dict[str, Any]:
    live = [place[-1] for place in found.places if not is_over(place[-1])]
    asked = annotation(found.job, STOPPED)
    told = condition(found.job, "Suspended")
    if not asked and (QUEUE in labels_of(found.job) or found.workload is not None):
        fields = queued_by_kueue(found.workload)
        left = "; its earlier pods are still going down" if live else ""
        return fields | {"reason": f"{fields['reason']}{left}"}
    if not asked:
        said = "suspended by somebody; `kubectl patch` it with spec.suspend=false to let it go on"
        return {"phase": Phase.pending, "held": True, "waiting": Waiting.held, "reason": said}
    if not live and told is not None:
        return {
            "phase": Phase.stopped,
            "reason": "stopped on request",
            "started_at": began(found) or moment(annotation(found.job, STARTED)),
            "ended_at": moment(field(told, "lastTransitionTime")),
        }
    if any(is_lost(pod, found.nodes) for pod in live):
        return {
            "phase": Phase.lost,
            "reason": "stopped on request, but its node no longer answers",
            **where(live),
        }
    phase = Phase.running if any(map(runs, live)) else Phase.pending
    return {"phase": phase, "reason": "stopping on request", "started_at": began(found), **where(live)}


# --- what is told beside the phase -------------------------------------------------------------------------


def _counts(found: Native, fields: Mapping[str, Any]) -> dict[str, Any]:
    parallelism = field(found.job, "spec", "parallelism")
    wanted = 1 if parallelism is None else count(found.job, "spec", "parallelism")
    newest = [place[-1] for place in found.places]
    ready = sum(map(runs, newest))
    extra = {"replicas": wanted, "replicas_ready": ready} if fields["phase"] in LIVE else {"replicas": wanted}
    return {"attempt": attempt(found), **where(newest), **extra}


def _span(found: Native, told: Object | None = None) -> dict[str, Any]:
    ends = [moment(field(terminated(place[-1]), "finishedAt")) for place in found.places]
    known = [end for end in ends if end is not None]
    said = moment(field(found.job, "status", "completionTime")) or moment(field(told, "lastTransitionTime"))
    since = began(found)
    if since is None and count(found.job, "status", "succeeded"):
        since = moment(field(found.job, "status", "startTime"))
    return {"started_at": since, "ended_at": max(known, default=said)}


def _words(found: Native) -> str:
    """The native words that decided, in short: conditions, then the newest pods' own."""
    told = [
        f"{one.get('type')} {text(one, 'reason')}".strip()
        for one in items(found.job, "status", "conditions")
        if one.get("status") == "True"
    ]
    words = [" ".join(told) or ("suspended" if field(found.job, "spec", "suspend") else "no condition")]
    if field(found.job, "metadata", "deletionTimestamp"):
        words.append("being deleted")
    for place in found.places[:3]:
        pod = place[-1]
        state = field(main_container(pod), "state") or {}
        inside = next((text(one, "reason") for one in state.values() if text(one, "reason")), "")
        going = "deleting" if field(pod, "metadata", "deletionTimestamp") else ""
        said = (text(pod, "status", "phase"), text(pod, "status", "reason"), inside, going)
        words.append("pod " + " ".join(filter(None, said)))
    return "; ".join(words)
