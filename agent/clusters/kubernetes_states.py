"""From a Job, its pods, their events and nodes and its Kueue workload to one observation (PHASES 2).

Read in this order, the first that decides wins: Job conditions; suspension (ours, Kueue's, somebody's); the newest
pod of each place; the node it is on; events, which expire and are hints only.

Never: read a clock or the API; make an outcome of a record that is missing; take `active` for running.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agent.clusters.kubernetes_ends import disruption, end_of
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
    name_of,
    started,
    terminated,
    text,
)
from agent.clusters.kubernetes_waits import crash_loop, queued_by_kueue, starting, unscheduled, without_pods
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


class Native(NamedTuple):
    """What is known of one Job. events: oldest first. nodes, workload: None when not read or not there."""

    job: Object
    places: Sequence[Sequence[Object]]
    events: Sequence[Object]
    nodes: Sequence[Object] | None
    workload: Object | None


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
    return {**_counts(found, fields), **fields, "native": _words(found)[:TEXT_MAX]}


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
        fields = without_pods([event for event in found.events if text(event, "involvedObject", "kind") != "Pod"])
        return fields if fields["reason"] or not told_by_kueue else told_by_kueue
    return _running(found)


# --- an end that the Job's conditions tell -----------------------------------------------------------------


def _failed(found: Native, told: Object) -> dict[str, Any]:
    why, said = text(told, "reason"), text(told, "message")
    ended = _first_failure(found)
    fields = {"phase": Phase.failed, "reason": f"{why}: {said}", **_span(found, told)}
    if why == "DeadlineExceeded":
        began = fields.get("started_at") is not None
        note = "" if began else " (no container of it is known to have run: waiting and pulling count too)"
        return fields | {"cause": "scheduling.time_limit", "reason": f"{why}: {said}{note}"}
    if why == "PodFailurePolicy" and "DisruptionTarget" in said and ended.get("phase") is not Phase.lost:
        return fields | {"phase": Phase.preempted, "cause": "scheduling.preempted"} | _part(ended, "reason")
    if why == "PodFailurePolicy" and (code := _EXIT.search(said)) and "exit_code" not in ended:
        ended |= {"exit_code": int(code[1])}
    if not found.places and (gone := _gone_with(found.events)):
        return fields | gone
    fields |= _part(ended, "phase", "cause", "exit_code", "signal")
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
    failures = [place[-1] for place in found.places if _is_over(place[-1]) and not _went_well(place[-1])]
    if not failures:
        return {}
    own = [pod for pod in failures if field(terminated(pod), "exitCode") not in STOP_CODES or disruption(pod)]
    first = min(own or failures, key=lambda pod: text(terminated(pod), "finishedAt") or "9")
    return {**end_of(first), "node": text(first, "spec", "nodeName")}


def _gone_with(events: Sequence[Object]) -> dict[str, Any]:
    """What events still say of a pod that is gone together with how it ended."""
    for event in reversed(events):
        if event.get("reason") == "Preempted":
            return {"phase": Phase.preempted, "cause": "scheduling.preempted", "reason": text(event, "message")}
        if event.get("reason") == "TaintManagerEviction" and "Cancelling" not in text(event, "message"):
            return {"phase": Phase.lost, "reason": text(event, "message")}
    return {}


def _is_a_kill(fields: Mapping[str, Any], found: Native) -> bool:
    return fields.get("exit_code") in STOP_CODES or not found.places


# --- suspension --------------------------------------------------------------------------------------------


def _suspended(found: Native) -> dict[str, Any]:
    live = [place[-1] for place in found.places if not _is_over(place[-1])]
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
            "started_at": _began(found) or moment(annotation(found.job, STARTED)),
            "ended_at": moment(field(told, "lastTransitionTime")),
        }
    if any(_is_lost(pod, found.nodes) for pod in live):
        return {"phase": Phase.lost, "reason": "stopped on request, but its node no longer answers", **_where(live)}
    runs = any(field(main_container(pod), "state", "running") for pod in live)
    phase = Phase.running if runs else Phase.pending
    return {"phase": phase, "reason": "stopping on request", "started_at": _began(found), **_where(live)}


# --- pods --------------------------------------------------------------------------------------------------


def _running(found: Native) -> dict[str, Any]:
    """The state of a Job that has pods and no condition: that of its newest pods, the worst one first."""
    judged = [_pod(place[-1], found) for place in found.places]
    worst = min(judged, key=_urgency)
    fields = {**worst, "started_at": _began(found)}
    if worst["phase"] is Phase.succeeded:
        return _nearly_over(fields, "its pods succeeded")
    if worst["phase"] in (Phase.failed, Phase.preempted, Phase.lost) and _is_replaced(found, worst["phase"]):
        said = f"a new pod follows, since: {worst.get('reason') or 'a pod failed'}"
        return {"phase": Phase.pending, "reason": said, "attempt": _attempt(found) + 1}
    if worst["phase"] is Phase.failed:
        return _nearly_over(fields, f"a pod failed: {worst.get('reason', '')}".rstrip(": "))
    waits = worst["phase"] in (Phase.pending, Phase.starting)
    if waits and _attempt(found) and any(one["phase"] is Phase.running for one in judged):
        return fields | {"phase": Phase.running, "reason": f"not all of it runs: {worst.get('reason', '')}"}
    mixed = len({one["phase"] for one in judged}) > 1
    return fields | ({"phase": Phase.starting} if waits and mixed else {})


def _nearly_over(fields: Mapping[str, Any], said: str) -> dict[str, Any]:
    """The work is over; what it comes to is the Job's to say."""
    told = {"phase": Phase.running, "finishing": True, "reason": f"{said}; the Job has not said so yet"}
    return {**_part(fields, "node", "started_at"), **told}


ORDER = (Phase.lost, Phase.preempted, Phase.failed, Phase.pending, Phase.starting, Phase.running, Phase.succeeded)


def _urgency(fields: Mapping[str, Any]) -> tuple[int, bool, bool]:
    return ORDER.index(fields["phase"]), not fields.get("held", False), not fields.get("finishing", False)


def _pod(pod: Object, found: Native) -> dict[str, Any]:
    """One pod as fields; the phase of a pod whose node is gone says Running for ever."""
    events = [event for event in found.events if text(event, "involvedObject", "name") == name_of(pod)]
    where = {"node": text(pod, "spec", "nodeName")}
    if _is_lost(pod, found.nodes):
        said = f"the pod is to go and its node {where['node']} no longer answers"
        return {"phase": Phase.lost, "reason": said, **where}
    phase, why = text(pod, "status", "phase"), text(pod, "status", "reason")
    if phase in ("Failed", "Succeeded", "Unknown") or why == "NodeLost":
        return {**end_of(pod), **where}
    if field(pod, "metadata", "deletionTimestamp"):
        return {**_going(pod), **where}
    if not where["node"]:
        return {**unscheduled(pod, events, found.nodes), **where}
    if loop := crash_loop(pod):
        return {"phase": Phase.running, "reason": loop, **where}
    if not field(main_container(pod), "state", "running") and not field(main_container(pod), "state", "terminated"):
        return {**starting(pod, events), **where}
    away = found.nodes is not None and _is_away(where["node"], found.nodes)
    return {"phase": Phase.running, "reason": f"the node {where['node']} is not ready" if away else "", **where}


def _going(pod: Object) -> dict[str, Any]:
    """A pod that is being deleted: by a disruption, or by somebody (nothing tells whom)."""
    target = disruption(pod)
    if target is None:
        if field(main_container(pod), "state", "running"):
            return {"phase": Phase.running, "reason": "its pod is being deleted"}
        return {"phase": Phase.pending, "reason": "its pod is being deleted"}
    fields = end_of({**pod, "status": {**(field(pod, "status") or {}), "phase": "Failed"}})
    if _is_over(pod) or not field(main_container(pod), "state", "running"):
        return fields
    return {"phase": Phase.running, "finishing": True, "reason": f"its pod is going down: {fields['reason']}"}


def _is_over(pod: Object) -> bool:
    """Whether nothing of this pod runs any more, as far as the API server knows."""
    phase = text(pod, "status", "phase")
    forced = field(pod, "metadata", "deletionTimestamp") and field(pod, "metadata", "deletionGracePeriodSeconds") == 0
    return phase in ("Succeeded", "Failed") or bool(forced)


def _went_well(pod: Object) -> bool:
    return text(pod, "status", "phase") == "Succeeded"


def _is_lost(pod: Object, nodes: Sequence[Object] | None) -> bool:
    """To be deleted, and its node does not answer: nobody will ever update it (PHASES 2)."""
    node = text(pod, "spec", "nodeName")
    return bool(node and nodes is not None and field(pod, "metadata", "deletionTimestamp") and _is_away(node, nodes))


def _is_away(name: str, nodes: Sequence[Object]) -> bool:
    """Not Ready, or no longer among the nodes."""
    found = [node for node in nodes if name_of(node) == name]
    return not found or condition(found[0], "Ready") is None


def _is_replaced(found: Native, phase: Phase) -> bool:
    """Whether the Job controller makes another pod by itself: retries are left, or the policy ignores this end.

    One that waits for a dead node to say that the pod failed waits for ever.
    """
    stuck = any(_is_lost(place[-1], found.nodes) for place in found.places)
    if stuck and field(found.job, "spec", "podReplacementPolicy") == "Failed":
        return False
    if phase is not Phase.failed:
        for rule in items(found.job, "spec", "podFailurePolicy", "rules"):
            if any(one.get("type") == "DisruptionTarget" for one in items(rule, "onPodConditions")):
                return rule.get("action") in ("Ignore", "Count")
    limit = field(found.job, "spec", "backoffLimit")
    seen = sum(text(pod, "status", "phase") == "Failed" for place in found.places for pod in place)
    return max(count(found.job, "status", "failed"), seen, 1) <= (6 if limit is None else int(limit))


# --- what is told beside the phase -------------------------------------------------------------------------


def _counts(found: Native, fields: Mapping[str, Any]) -> dict[str, Any]:
    parallelism = field(found.job, "spec", "parallelism")
    wanted = 1 if parallelism is None else count(found.job, "spec", "parallelism")
    newest = [place[-1] for place in found.places]
    ready = sum(bool(field(main_container(pod), "state", "running")) for pod in newest)
    extra = {"replicas": wanted, "replicas_ready": ready} if fields["phase"] in LIVE else {"replicas": wanted}
    return {"attempt": _attempt(found), **_where(newest), **extra}


def _attempt(found: Native) -> int:
    """Pods made after the first of a place, failures the Job counts, and restarts in the pod."""
    replaced = max((len(place) - 1 for place in found.places), default=0)
    restarts = max((count(main_container(place[-1]), "restartCount") for place in found.places), default=0)
    if len(found.places) == 1 and not condition(found.job, "Failed") and not condition(found.job, "FailureTarget"):
        newest_failed = text(found.places[0][-1], "status", "phase") == "Failed"
        replaced = max(replaced, count(found.job, "status", "failed") - newest_failed)
    return replaced + restarts


def _span(found: Native, told: Object | None = None) -> dict[str, Any]:
    ends = [moment(field(terminated(place[-1]), "finishedAt")) for place in found.places]
    known = [end for end in ends if end is not None]
    said = moment(field(found.job, "status", "completionTime")) or moment(field(told, "lastTransitionTime"))
    began = _began(found)
    if began is None and count(found.job, "status", "succeeded"):
        began = moment(field(found.job, "status", "startTime"))
    return {"started_at": began, "ended_at": max(known, default=said)}


def _began(found: Native) -> Any:
    begins = [when for place in found.places if (when := started(place[-1])) is not None]
    return min(begins, default=None)


def _where(pods: Sequence[Object]) -> dict[str, Any]:
    return {"node": next((node for pod in pods if (node := text(pod, "spec", "nodeName"))), "")}


def _part(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}


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
