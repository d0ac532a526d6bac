"""What every controller of the emulator stands on: conditions, events, the way of a pod out.

Never: sleep; decide what becomes of a Job.
"""

from __future__ import annotations

from datetime import timedelta

from agent.clusters.kubernetes_objects import quantity
from agent.clusters.local_time import now
from tests.clusters.kubernetes.store import Object, Store, micro, stamp

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
UID = "batch.kubernetes.io/controller-uid"


def condition(item: Object, kind: str) -> Object | None:
    return next((one for one in item.get("status", {}).get("conditions", []) if one["type"] == kind), None)


def is_true(item: Object, kind: str) -> bool:
    return (condition(item, kind) or {}).get("status") == "True"


def set_condition(item: Object, kind: str, status: str, reason: str, message: str) -> bool:
    """Whether that changed anything."""
    told = {"type": kind, "status": status, "reason": reason, "message": message}
    conditions = item.setdefault("status", {}).setdefault("conditions", [])
    before = next((one for one in conditions if one["type"] == kind), None)
    if before is not None and told.items() <= before.items():
        return False
    if before is not None:
        conditions.remove(before)
    conditions.append({**told, "lastTransitionTime": stamp()})
    return True


def owners_of(item: Object) -> list[str]:
    return [owner["uid"] for owner in item["metadata"].get("ownerReferences", [])]


def is_over(pod: Object) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def is_going(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def requests_of(pod: Object) -> dict[str, float]:
    """What a pod's containers ask for, summed up."""
    total: dict[str, float] = {}
    for container in pod["spec"]["containers"]:
        for kind, value in container.get("resources", {}).get("requests", {}).items():
            total[kind] = total.get(kind, 0.0) + (quantity(value) or 0.0)
    return total


class Plane:
    """One store, and what is written to it by more than one controller."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def pods_of(self, job: Object) -> list[Object]:
        uid = job["metadata"]["uid"]
        pods = self.store.all("pods", job["metadata"]["namespace"])
        return [pod for pod in pods if uid in owners_of(pod)]

    def event(self, about: Object, kind: str, reason: str, message: str, *, warning: bool = False) -> None:
        """Written by a controller: with times and a count."""
        times = {"firstTimestamp": stamp(), "lastTimestamp": stamp(), "count": 1}
        self._event(about, kind, reason, message, warning, times)

    def event_of_scheduler(self, about: Object, reason: str, message: str, *, warning: bool = False) -> None:
        """Written by the scheduler: with one time, and no count."""
        self._event(about, "Pod", reason, message, warning, {"eventTime": micro(), "action": "Scheduling"})

    def _event(
        self, about: Object, kind: str, reason: str, message: str, warning: bool, more: Object
    ) -> None:
        metadata = about["metadata"]
        item = {
            "metadata": {"name": f"{metadata['name']}.{self.store.letters()}{self.store.version:x}"},
            "involvedObject": {key: metadata.get(key, "") for key in ("name", "namespace", "uid")}
            | {"kind": kind},
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            **more,
        }
        self.store.create("events", item, metadata.get("namespace", "default"))

    def remove(self, pod: Object) -> None:
        """Deletion begins: after the grace the kubelet ends it. A pod without a node goes at once."""
        if is_going(pod):
            return
        grace_s = pod["spec"].get("terminationGracePeriodSeconds", 30)
        placed = bool(pod["spec"].get("nodeName"))
        pod["metadata"]["deletionTimestamp"] = stamp(now() + timedelta(seconds=grace_s))
        pod["metadata"]["deletionGracePeriodSeconds"] = grace_s if placed else 0
        self.store.changed("pods", pod)
        if not placed or is_over(pod):
            self.vanish(pod)

    def vanish(self, pod: Object) -> None:
        """The last step: the pod leaves once nobody holds it."""
        if not pod["metadata"].get("finalizers"):
            self.store.remove("pods", pod)

    def release(self, pod: Object) -> None:
        if pod["metadata"].pop("finalizers", None):
            self.store.changed("pods", pod)

    def free_on(self, node: Object) -> dict[str, float]:
        free = {kind: quantity(value) or 0.0 for kind, value in node["status"]["allocatable"].items()}
        for pod in self.store.all("pods"):
            if pod["spec"].get("nodeName") == node["metadata"]["name"] and not is_over(pod):
                for kind, amount in requests_of(pod).items():
                    free[kind] = free.get(kind, 0.0) - amount
        return free
