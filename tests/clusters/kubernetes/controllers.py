"""The control plane behind the emulated API: Job controller, scheduler, garbage collector, a little of Kueue.

Written after recordings of a real 1.36 control plane: a Job over its quota is accepted and stays empty, with
FailedCreate events; at a deadline FailureTarget comes before Failed; a preempted pod gets DisruptionTarget before it
goes; a suspended Job loses its start time; the log of a pod goes with the pod.

Never: sleep; do a kubelet's work.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from agent.clusters.kubernetes_objects import index_of, moment, quantity
from agent.clusters.local_time import now
from tests.clusters.kubernetes.plane import (
    FINALIZER,
    INDEX,
    condition,
    is_going,
    is_over,
    is_true,
    owners_of,
    requests_of,
    set_condition,
)
from tests.clusters.kubernetes.scheduler import Scheduler
from tests.clusters.kubernetes.store import Object, Store, copy, stamp

RETRY = timedelta(milliseconds=200)
"""First pause after a pod could not be made; the real one is a second, and both double."""


class ControlPlane(Scheduler):
    """All controllers over one store. `settle` lets each do what it can; call it after every change."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.kueue = False
        self._retry: dict[str, tuple[Any, timedelta]] = {}

    def settle(self) -> None:
        with self.store.lock:
            for _ in range(5):
                before = self.store.version
                self._collect()
                self._let_go()
                for job in self.store.all("jobs"):
                    self._sync(job)
                self.schedule()
                if self.store.version == before:
                    return

    # --- jobs ----------------------------------------------------------------------------------------------

    def _sync(self, job: Object) -> None:
        status = job.setdefault("status", {})
        if is_true(job, "Complete") or is_true(job, "Failed"):
            self._expire(job)
            for pod in self.pods_of(job):
                self.release(pod)
            return
        before = copy(status)
        pods = self.pods_of(job)
        if job["spec"]["suspend"]:
            self._suspend(job, pods)
        else:
            self._run(job, pods)
        self._count(job, self.pods_of(job))
        if status != before:
            self.store.changed("jobs", job)

    def _suspend(self, job: Object, pods: list[Object]) -> None:
        if set_condition(job, "Suspended", "True", "JobSuspended", "Job suspended"):
            self.event(job, "Job", "Suspended", "Job suspended")
        job["status"].pop("startTime", None)
        for pod in pods:
            if not is_over(pod):
                self.release(pod)
                self.remove(pod)

    def _run(self, job: Object, pods: list[Object]) -> None:
        spec, status = job["spec"], job["status"]
        if is_true(job, "Suspended"):
            set_condition(job, "Suspended", "False", "JobResumed", "Job resumed")
        status.setdefault("startTime", stamp())
        target = condition(job, "FailureTarget")
        _, verdict = self._failures(job, pods)
        if target is None and (verdict or self._is_late(job)):
            reason, message = verdict or ("DeadlineExceeded", "Job was active longer than specified deadline")
            set_condition(job, "FailureTarget", "True", reason, message)
            target = condition(job, "FailureTarget")
        if target is not None:
            self._fail(job, pods, target)
            return
        done = sum(pod["status"]["phase"] == "Succeeded" for pod in pods)
        if done >= spec["completions"]:
            for kind in ("SuccessCriteriaMet", "Complete"):
                set_condition(
                    job, kind, "True", "CompletionsReached", "Reached expected number of succeeded pods"
                )
            status["completionTime"] = stamp()
            self.event(job, "Job", "Completed", "Job completed")
            return
        self._make_pods(job, pods)

    def _failures(self, job: Object, pods: list[Object]) -> tuple[int, tuple[str, str] | None]:
        """How many failures count, and the verdict they make."""
        spec, failed = job["spec"], 0
        where = job["metadata"]["namespace"]
        only_failed = spec["podReplacementPolicy"] == "Failed"
        for pod in pods:
            ended = pod["status"]["phase"] == "Failed" or (
                is_going(pod) and not only_failed and not is_over(pod)
            )
            if not ended:
                continue
            rule = self._rule(spec.get("podFailurePolicy", {}).get("rules", []), pod)
            if rule is not None and rule[1] == "FailJob":
                name = f"{where}/{pod['metadata']['name']}"
                return failed + 1, ("PodFailurePolicy", rule[2].format(pod=name, place=rule[0]))
            failed += rule is None or rule[1] != "Ignore"
        if failed > spec["backoffLimit"]:
            return failed, ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        return failed, None

    @staticmethod
    def _rule(rules: list[Object], pod: Object) -> tuple[int, str, str] | None:
        for place, rule in enumerate(rules):
            for one in rule.get("onPodConditions", []):
                if is_true(pod, one["type"]):
                    said = f"Pod {{pod}} has condition {one['type']} matching {rule['action']} rule at index "
                    return place, rule["action"], said + "{place}"
            codes = rule.get("onExitCodes")
            for status in pod["status"].get("containerStatuses", []):
                code = status["state"].get("terminated", {}).get("exitCode", 0)
                if codes and code and (code in codes["values"]) == (codes["operator"] == "In"):
                    said = (
                        f"Container {status['name']} for pod {{pod}} failed with exit code {code} matching "
                    )
                    return place, rule["action"], f"{said}{rule['action']} rule at index {{place}}"
        return None

    @staticmethod
    def _is_late(job: Object) -> bool:
        limit, began = job["spec"].get("activeDeadlineSeconds"), moment(job["status"].get("startTime"))
        return limit is not None and began is not None and (now() - began).total_seconds() >= limit

    def _fail(self, job: Object, pods: list[Object], target: Object) -> None:
        """Its pods go; once they have, the Job is Failed."""
        for pod in pods:
            if not is_over(pod):
                if not is_going(pod):
                    self.event(job, "Job", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
                self.release(pod)
                self.remove(pod)
        if all(is_over(pod) for pod in self.pods_of(job)):
            set_condition(job, "Failed", "True", target["reason"], target["message"])
            self.event(job, "Job", target["reason"], target["message"], warning=True)

    def _make_pods(self, job: Object, pods: list[Object]) -> None:
        spec = job["spec"]
        going_counts = spec["podReplacementPolicy"] == "Failed"
        alive = [pod for pod in pods if not is_over(pod) and (going_counts or not is_going(pod))]
        done = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
        indexed = spec["completionMode"] == "Indexed"
        if indexed:
            taken = {index_of(pod) for pod in [*alive, *done]}
            wanted = [str(index) for index in range(spec["completions"]) if str(index) not in taken]
        else:
            wanted = [""] * (min(spec["parallelism"], spec["completions"] - len(done)) - len(alive))
        due, pause = self._retry.get(job["metadata"]["uid"], (None, RETRY))
        if due is not None and now() < due:
            return
        for index in wanted[: spec["parallelism"] - len(alive)]:
            if not self._make_pod(job, index):
                self._retry[job["metadata"]["uid"]] = (now() + pause, pause * 2)
                return

    def _make_pod(self, job: Object, index: str) -> bool:
        template = copy(job["spec"]["template"])
        name = f"{job['metadata']['name']}-{index + '-' if index else ''}{self.store.letters()}"
        metadata = template.get("metadata", {})
        owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True, "blockOwnerDeletion": True}
        pod: Object = {
            "metadata": {
                "name": name,
                "labels": {**metadata.get("labels", {}), **({INDEX: index} if index else {})},
                "annotations": {**metadata.get("annotations", {}), **({INDEX: index} if index else {})},
                "ownerReferences": [
                    {**owner, "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
                ],
                "finalizers": [FINALIZER],
            },
            "spec": template["spec"],
            "status": {"phase": "Pending", "qosClass": "Guaranteed"},
        }
        for container in pod["spec"]["containers"]:
            resources = container.setdefault("resources", {})
            resources["requests"] = {**resources.get("limits", {}), **resources.get("requests", {})}
        if refusal := self._over_quota(pod, job["metadata"]["namespace"]):
            said = f'Error creating: pods "{name}" is forbidden: {refusal}'
            self.event(job, "Job", "FailedCreate", said, warning=True)
            return False
        chosen = self.store.get("priorityclasses", pod["spec"].get("priorityClassName", ""))
        pod["spec"]["priority"] = chosen["value"] if chosen else 0
        self.store.create("pods", pod, job["metadata"]["namespace"])
        self.event(job, "Job", "SuccessfulCreate", f"Created pod: {name}")
        return True

    def _over_quota(self, pod: Object, namespace: str) -> str:
        asks = requests_of(pod)
        for quota in self.store.all("resourcequotas", namespace):
            hard = quota["spec"]["hard"]
            lacking = [key for key in hard if key.startswith("limits.") and not _limits_of(pod).get(key[7:])]
            if lacking:
                return (
                    f"failed quota: {quota['metadata']['name']}: must specify {','.join(lacking)} for: main"
                )
            used = self.used(namespace)
            for key, limit in hard.items():
                kind = key.removeprefix("requests.")
                amount = 1.0 if kind == "pods" else asks.get(kind, 0.0)
                if amount and used.get(kind, 0.0) + amount > (quantity(limit) or 0.0):
                    taken = f"{used.get(kind, 0.0):g}"
                    told = f"requested: {key}={amount:g}, used: {key}={taken}, limited: {key}={limit}"
                    return f"exceeded quota: {quota['metadata']['name']}, {told}"
        return ""

    def used(self, namespace: str) -> dict[str, float]:
        """What the live pods of a namespace ask for."""
        total: dict[str, float] = {"pods": 0.0}
        for pod in self.store.all("pods", namespace):
            if not is_over(pod):
                total["pods"] += 1
                for kind, amount in requests_of(pod).items():
                    total[kind] = total.get(kind, 0.0) + amount
        return total

    def _count(self, job: Object, pods: list[Object]) -> None:
        status = job["status"]
        finished = is_true(job, "Complete") or is_true(job, "Failed")
        alive = [pod for pod in pods if not is_over(pod)]
        numbers = {
            "active": 0 if finished else sum(not is_going(pod) for pod in alive),
            "succeeded": sum(pod["status"]["phase"] == "Succeeded" for pod in pods),
            "failed": max(
                status.get("failed", 0), self._failures(job, pods)[0] if not job["spec"]["suspend"] else 0
            ),
        }
        for key, number in numbers.items():
            status.pop(key, None)
            if number:
                status[key] = number
        status["ready"] = sum(is_true(pod, "Ready") for pod in alive if not is_going(pod))
        status["terminating"] = sum(is_going(pod) for pod in alive)
        status["uncountedTerminatedPods"] = {}

    def _expire(self, job: Object) -> None:
        keep_s = job["spec"].get("ttlSecondsAfterFinished")
        end = condition(job, "Complete") or condition(job, "Failed") or {}
        ended = moment(end.get("lastTransitionTime"))
        if keep_s is not None and ended is not None and (now() - ended).total_seconds() >= keep_s:
            self.store.remove("jobs", job)

    def _collect(self) -> None:
        """Pods and Services whose Job is no more go too."""
        uids = {job["metadata"]["uid"] for job in self.store.all("jobs")}
        for kind in ("pods", "services"):
            for item in self.store.all(kind):
                owners = owners_of(item)
                if owners and not uids.intersection(owners):
                    if kind == "services":
                        self.store.remove(kind, item)
                    else:
                        self.release(item)
                        self.remove(item)
        for pod in self.store.all("pods"):
            if is_going(pod) and is_over(pod):
                job = next((job for job in self.store.all("jobs") if pod in self.pods_of(job)), None)
                if job is None or self._is_counted(job, pod):
                    self.release(pod)
                self.vanish(pod)

    def _is_counted(self, job: Object, pod: Object) -> bool:
        """Whether the Job controller needs this pod no more."""
        rule = self._rule(job["spec"].get("podFailurePolicy", {}).get("rules", []), pod)
        ignored = rule is not None and rule[1] == "Ignore"
        return is_true(job, "Failed") or is_true(job, "Complete") or ignored

    # --- Kueue ---------------------------------------------------------------------------------------------

    def _let_go(self) -> None:
        """A workload for each queued Job; an admitted one lets its Job go, a deactivated one suspends it."""
        if not self.kueue:
            return
        for job in self.store.all("jobs"):
            if "kueue.x-k8s.io/queue-name" not in job["metadata"].get("labels", {}) or is_true(job, "Failed"):
                continue
            name, namespace = f"job-{job['metadata']['name']}", job["metadata"]["namespace"]
            workload = self.store.get("workloads", name, namespace)
            if workload is None:
                owner = {"kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
                metadata = {"name": name, "ownerReferences": [owner]}
                made: Object = {"metadata": metadata, "spec": {"active": True}, "status": {}}
                workload = self.store.create("workloads", made, namespace)
            runs = is_true(workload, "Admitted") and workload["spec"]["active"]
            if job["spec"]["suspend"] == runs and not is_true(job, "Complete"):
                job["spec"]["suspend"] = not runs
                self.store.changed("jobs", job)


def _limits_of(pod: Object) -> dict[str, Any]:
    limits: dict[str, Any] = pod["spec"]["containers"][0].get("resources", {}).get("limits", {})
    return limits
