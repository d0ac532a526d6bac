"""Why a pod or a Job that does not run yet waits, as fields of an observation (PHASES 2).

Scheduler messages (`0/2 nodes are available: ...`), pull and mount trouble, quota refusals, Kueue. The counts
of a scheduler's message do not sum up to the nodes; "Insufficient" is a wait if some node is large enough.

Never: say "never" of what another node, a scale-up or somebody's end could change; hold a pull that is slow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.clusters.kubernetes_objects import (
    Object,
    condition,
    count,
    field,
    items,
    main_container,
    name_of,
    quantity,
    text,
)
from states.observation import Phase, Waiting

HELD_REASONS = ("InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError")
"""Waiting reasons of a container that need a person."""
PULL_FAILS = ("ErrImagePull", "ImagePullBackOff")
"""Two words that take turns while a pull fails again and again."""
PULL_REASONS = (*PULL_FAILS, "ImageInspectError", "RegistryUnavailable", *HELD_REASONS[:2])
MOUNT_EVENTS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
NOT_TROUBLE = re.compile(r"Multi-Attach")
"""A volume that is being taken off its old node: five to fifteen minutes, and no error."""

_PULL = (
    (
        re.compile(r"unauthorized|denied|authentication required|forbidden|\b401\b|\b403\b", re.I),
        "image.auth",
    ),
    (
        re.compile(r"not found|manifest unknown|not exist|\b404\b|InvalidImageName|NeverPull", re.I),
        "image.not_found",
    ),
    (re.compile(r"no match for platform|exec format", re.I), "image.incompatible"),
    (
        re.compile(r"timeout|timed out|refused|no such host|unreachable|TLS|EOF|toomany", re.I),
        "image.unreachable",
    ),
)
_BACK_OFF = re.compile(r'^(?:Back-off pulling image "[^"]*"(?:: )?)?(?:ErrImagePull: )?')
_NODES = re.compile(r"\d+/\d+ nodes are available: (.*?)(?:\. preemption:|\.? ?no new claims|$)", re.DOTALL)
_ITEM = re.compile(r"(\d+) ([^,]*?(?:\{[^}]*\})?[^,]*)(?:, |$|\.)")
_PASSES = re.compile(r"node\.kubernetes\.io/|unschedulable|not ready|Too many pods|ports", re.I)
_NEVER = re.compile(r"didn't match|did not match|had taint|untolerated taint \{", re.I)
_VOLUME = re.compile(
    r"persistentvolumeclaim \"[^\"]*\" (?:not found|is being deleted)|unbound immediate", re.I
)
_QUOTA = re.compile(r"exceeded quota: ([^,]+), requested: (.*), used: (.*), limited: (.*)")
_LIMITS = re.compile(r"must specify|failed quota", re.I)
_RANGE = re.compile(r"(?:maximum|minimum) \S+ (?:usage )?per (?:Container|Pod)", re.I)


# --- the scheduler -----------------------------------------------------------------------------------------


def unscheduled(pod: Object, events: Sequence[Object], nodes: Sequence[Object] | None) -> dict[str, Any]:
    """A pod that no node was found for. nodes: None when they may not be read."""
    told = condition(pod, "PodScheduled", "False") or {}
    said = text(told, "message") or _newest(events, "FailedScheduling")
    fields = {"phase": Phase.pending, "reason": _steady(said)}
    if text(told, "reason") == "SchedulingGated":
        return fields | {"waiting": Waiting.wait}
    if _VOLUME.search(said):
        lost = "not found" in said
        return fields | {
            "waiting": Waiting.held if lost else Waiting.unclear,
            "held": lost,
            "cause": "mount.missing",
        }
    if any(event.get("reason") == "TriggeredScaleUp" for event in events):
        return fields | {"waiting": Waiting.wait}
    if said and nodes is not None and (short := lacking(pod, nodes)):
        reason = f"no node has as much {', '.join(short)} as its pod asks for"
        return fields | {"waiting": Waiting.never, "reason": reason}
    return fields | {"waiting": _class(_reasons(said)) if said else Waiting.wait}


def _reasons(said: str) -> list[str]:
    """Why each kind of node does not do, without how many there are of it."""
    found = _NODES.search(said)
    return [match[2].strip(" .") for match in _ITEM.finditer(f"{found[1]}.")] if found else []


def _steady(said: str) -> str:
    """The message without its counts, which change from look to look while nothing happens."""
    reasons = _reasons(said)
    return f"no node fits: {', '.join(sorted(set(reasons)))}" if reasons else said


def _class(reasons: Sequence[str]) -> Waiting:
    if any(reason.startswith("Insufficient") or _PASSES.search(reason) for reason in reasons):
        return Waiting.wait
    if reasons and all(_NEVER.search(reason) for reason in reasons):
        return Waiting.never
    return Waiting.unclear if reasons else Waiting.wait


def lacking(pod: Object, nodes: Sequence[Object]) -> tuple[str, ...]:
    """The resources of which no single node has as many in all as this pod asks for."""
    wants = wanted(field(pod, "spec"))
    offers = [field(node, "status", "allocatable") or {} for node in nodes]
    return tuple(
        kind
        for kind, amount in wants.items()
        if amount and offers and all((quantity(offer.get(kind)) or 0.0) < amount for offer in offers)
    )


def wanted(spec: object) -> Mapping[str, float]:
    """What a pod asks for in all: the sum of its containers, or its largest init container where that is more."""
    together: dict[str, float] = {}
    for container in items(spec, "containers"):
        for kind, amount in asked(container).items():
            together[kind] = together.get(kind, 0.0) + amount
    for container in items(spec, "initContainers"):
        for kind, amount in asked(container).items():
            together[kind] = max(together.get(kind, 0.0), amount)
    return together


def asked(container: Object) -> dict[str, float]:
    """Requests of a container; where there is none its limit counts."""
    given = {
        **(field(container, "resources", "limits") or {}),
        **(field(container, "resources", "requests") or {}),
    }
    return {kind: amount for kind, value in given.items() if (amount := quantity(value)) is not None}


# --- the start on a node -----------------------------------------------------------------------------------


def starting(pod: Object, events: Sequence[Object]) -> dict[str, Any]:
    """A pod with a node whose container does not run yet. Nothing here ever fails by itself."""
    statuses = [*items(pod, "status", "initContainerStatuses"), *items(pod, "status", "containerStatuses")]
    waits = [field(status, "state", "waiting") for status in statuses]
    told: Object = next(
        (wait for wait in waits if wait and wait.get("reason") not in ("PodInitializing", None)), {}
    )
    why, said = text(told, "reason"), text(told, "message")
    fields: dict[str, Any] = {"phase": Phase.starting, "reason": f"{why}: {said}".rstrip(": ")}
    if why in PULL_REASONS:
        words = _pull_words(said, events) if why in PULL_FAILS else said
        fields["cause"] = _pull_cause(f"{why} {words}")
        fields["reason"] = f"{PULL_FAILS[0] if why in PULL_FAILS else why}: {words}"
    elif trouble := [event for event in events if event.get("reason") in MOUNT_EVENTS]:
        said = text(trouble[-1], "message")
        fields["reason"] = f"{trouble[-1].get('reason')}: {said}"
        fields["cause"] = "" if NOT_TROUBLE.search(said) else "mount.missing"
    if why in HELD_REASONS:
        fields |= {"held": True, "waiting": Waiting.held}
    return fields


def crash_loop(pod: Object) -> str:
    """Words for a container that is started again and again, "" for another."""
    loops = text(main_container(pod), "state", "waiting", "reason") == "CrashLoopBackOff"
    return "CrashLoopBackOff: it ends and is started again" if loops else ""


def _pull_words(said: str, events: Sequence[Object]) -> str:
    """Why a pull fails, the same words while it fails, whichever of the two reasons is shown just now."""
    told = [text(event, "message") for event in events if "pull image" in text(event, "message")]
    words = _BACK_OFF.sub("", said) or (told[-1] if told else "")
    return re.sub(r'^(?:F|f)ailed to pull image "[^"]*": ', "", words) or "the image cannot be pulled"


def _pull_cause(said: str) -> str:
    return next((cause for pattern, cause in _PULL if pattern.search(said)), "")


# --- a Job without pods ------------------------------------------------------------------------------------


def without_pods(events: Sequence[Object]) -> dict[str, Any]:
    """A Job that has no pod: not yet, or the API server refuses to make one (FailedCreate)."""
    refusals = [event for event in events if event.get("reason") == "FailedCreate"]
    if not refusals:
        return {"phase": Phase.pending, "reason": ""}
    said = text(refusals[-1], "message")
    steady = re.sub(r", used: .*?(?=, limited)", "", re.sub(r'pods "[^"]*" is', "the pod is", said))
    fields: dict[str, Any] = {"phase": Phase.pending, "reason": steady}
    if (quota := _QUOTA.search(said)) is not None:
        waiting = Waiting.never if _above(quota[2], quota[4]) else Waiting.wait
        return fields | {"waiting": waiting, "cause": "scheduling.quota"}
    if _LIMITS.search(said):
        return fields | {"waiting": Waiting.never, "cause": "scheduling.quota"}
    if _RANGE.search(said):
        return fields | {"waiting": Waiting.never, "cause": "scheduling.unsatisfiable"}
    return fields | {"waiting": Waiting.held, "held": True}


def _above(requested: str, limited: str) -> bool:
    """Whether the request alone is more than the quota's hard limit."""
    ask, limit = _amounts(requested), _amounts(limited)
    return any(kind in limit and amount > limit[kind] for kind, amount in ask.items())


def _amounts(words: str) -> dict[str, float]:
    pairs = (pair.partition("=") for pair in words.split(","))
    return {kind: amount for kind, _, value in pairs if (amount := quantity(value.strip())) is not None}


# --- Kueue -------------------------------------------------------------------------------------------------

_NEVER_QUOTA = re.compile(
    r"maximum capacity|insufficient quota for|ExceedsMaxQuota|NoMatchingFlavor|untolerated taint", re.I
)
_UNUSED_QUOTA = re.compile(r"insufficient unused quota", re.I)


def queued_by_kueue(workload: Object | None) -> dict[str, Any]:
    """A suspended Job that Kueue has charge of. workload: None when it may not be read or is not there yet."""
    fields: dict[str, Any] = {"phase": Phase.pending, "waiting": Waiting.wait}
    if workload is None:
        return fields | {"reason": "suspended; Kueue has not said why"}
    if field(workload, "spec", "active") is False:
        return fields | {
            "held": True,
            "waiting": Waiting.held,
            "reason": "its Kueue workload was deactivated",
        }
    if condition(workload, "Admitted"):
        return fields | {"phase": Phase.starting, "reason": "admitted by Kueue, not yet unsuspended"}
    if condition(workload, "QuotaReserved"):
        checks = items(workload, "status", "admissionChecks")
        left = ", ".join(text(check, "name") for check in checks if check.get("state") != "Ready")
        return fields | {"reason": f"quota reserved; admission checks pending: {left or 'unknown'}"}
    told = condition(workload, "QuotaReserved", "False") or {}
    evicted = condition(workload, "Evicted")
    why, said = text(told, "reason"), text(told, "message")
    said = said or (f"evicted: {text(evicted, 'reason')}: {text(evicted, 'message')}" if evicted else "")
    return fields | {"reason": said or "in Kueue's queue"} | _kueue_class(why, said)


def evictions(workload: object) -> int:
    """How often Kueue took a workload back, as far as it tells: older versions count only some kinds, and all leave
    the condition, which says False once the workload was let go again."""
    counted = sum(count(one, "count") for one in items(workload, "status", "schedulingStats", "evictions"))
    known = any(one.get("type") == "Evicted" for one in items(workload, "status", "conditions"))
    return max(counted, count(workload, "status", "requeueState", "count"), int(known))


def _kueue_class(why: str, said: str) -> dict[str, Any]:
    if why in ("Inadmissible", "Misconfigured"):
        return {"held": True, "waiting": Waiting.held}
    if _UNUSED_QUOTA.search(said) and "maximum capacity" not in said:
        return {}
    if _NEVER_QUOTA.search(f"{why} {said}"):
        return {"waiting": Waiting.never, "cause": "scheduling.quota"}
    return {}


def workload_of(job: Object, workloads: Sequence[Object]) -> Object | None:
    """The Kueue workload that stands for a Job."""
    uid, name = text(job, "metadata", "uid"), name_of(job)
    for one in workloads:
        for owner in items(one, "metadata", "ownerReferences"):
            if owner.get("kind") == "Job" and (owner.get("uid") == uid if uid else owner.get("name") == name):
                return one
    return None


def _newest(events: Sequence[Object], reason: str) -> str:
    found = [text(event, "message") for event in events if event.get("reason") == reason]
    return found[-1] if found else ""
