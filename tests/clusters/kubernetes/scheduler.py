"""The emulated scheduler: the first node that fits, the real one's words when none does, preemption by priority.

Never: move a pod that has a node.
"""

from __future__ import annotations

from tests.clusters.kubernetes.plane import Plane, is_going, is_over, is_true, requests_of, set_condition
from tests.clusters.kubernetes.store import Object


class Scheduler(Plane):
    """Finds nodes for the pods of a store."""

    def schedule(self) -> None:
        waiting = [
            pod for pod in self.store.all("pods") if not pod["spec"].get("nodeName") and not is_going(pod)
        ]
        waiting.sort(key=lambda pod: (-pod["spec"].get("priority", 0), pod["metadata"]["creationTimestamp"]))
        for pod in waiting:
            if not is_over(pod):
                self._place(pod)

    def _place(self, pod: Object) -> None:
        wants, reasons = requests_of(pod), []
        for node in self.store.all("nodes"):
            if why := self._unfit(pod, wants, node):
                reasons.append(why)
                continue
            name = node["metadata"]["name"]
            pod["spec"]["nodeName"] = name
            set_condition(pod, "PodScheduled", "True", "", "")
            self.event_of_scheduler(
                pod, "Scheduled", f"Successfully assigned {pod['metadata']['name']} to {name}"
            )
            self.store.changed("pods", pod)
            return
        nodes = self.store.all("nodes")
        told = ", ".join(f"{reasons.count(why)} {why}" for why in dict.fromkeys(reasons))
        said = f"0/{len(nodes)} nodes are available: {told}."
        helped = self._preempt(pod, wants)
        if not helped and "nominatedNodeName" not in pod["status"]:
            said += f" no new claims to deallocate, preemption: 0/{len(nodes)} nodes are available: "
            said += f"{len(nodes)} Preemption is not helpful for scheduling."
        if set_condition(pod, "PodScheduled", "False", "Unschedulable", said):
            self.event_of_scheduler(pod, "FailedScheduling", said, warning=True)
            self.store.changed("pods", pod)

    def _unfit(self, pod: Object, wants: dict[str, float], node: Object) -> str:
        metadata, spec = node["metadata"], node.get("spec", {})
        affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get(
            "nodeSelectorTerms", []
        ):
            if any(metadata["name"] in one["values"] for one in term.get("matchFields", [])):
                return "node(s) didn't match Pod's node affinity/selector"
        if spec.get("taints") or not is_true(node, "Ready"):
            return "node(s) had untolerated taint(s)"
        free = self.free_on(node)
        lacking = [kind for kind, amount in wants.items() if amount > free.get(kind, 0.0)]
        return f"Insufficient {lacking[0]}" if lacking else ""

    def _preempt(self, pod: Object, wants: dict[str, float]) -> bool:
        mine = pod["spec"].get("priority", 0)
        for node in self.store.all("nodes"):
            free, name = self.free_on(node), node["metadata"]["name"]
            alive = [one for one in self.store.all("pods") if not is_over(one)]
            there = [one for one in alive if one["spec"].get("nodeName") == name]
            weaker = [one for one in there if one["spec"].get("priority", 0) < mine]
            weaker.sort(key=lambda one: one["spec"].get("priority", 0))
            chosen = []
            for victim in weaker:
                if all(free.get(kind, 0.0) >= amount for kind, amount in wants.items()):
                    break
                chosen.append(victim)
                for kind, amount in requests_of(victim).items():
                    free[kind] = free.get(kind, 0.0) + amount
            if chosen and all(free.get(kind, 0.0) >= amount for kind, amount in wants.items()):
                pod["status"]["nominatedNodeName"] = name
                for victim in chosen:
                    self._take_down(victim, pod, name)
                return True
        return False

    def _take_down(self, victim: Object, pod: Object, node: str) -> None:
        if is_going(victim):
            return
        said = "default-scheduler: preempting to accommodate a higher priority pod"
        set_condition(victim, "DisruptionTarget", "True", "PreemptionByScheduler", said)
        self.event_of_scheduler(
            victim, "Preempted", f"Preempted by pod {pod['metadata']['uid']} on node {node}"
        )
        self.remove(victim)
