"""One look at any number of Jobs: what is read of the API for it, and what of it belongs to which Job.

A namespace costs one list of Jobs, one of pods and one of events (or what changed of them), whatever the number of
Jobs; nodes and Kueue workloads are read only where something hangs on them. Jobs of somebody else's making, which do
not have our label, cost one more list of each kind together.

Never: one call for each job; a record that could not be read taken for one that is missing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.clusters import kubernetes_events
from agent.clusters.kubernetes_api import Api, Said
from agent.clusters.kubernetes_capacity import allowed
from agent.clusters.kubernetes_manifest import SELECTOR
from agent.clusters.kubernetes_objects import (
    JOB_NAME,
    OLD_JOB_NAME,
    Object,
    condition,
    field,
    job_of,
    labels_of,
    name_of,
    text,
)
from agent.clusters.kubernetes_options import Options
from agent.clusters.kubernetes_states import QUEUE, normalise
from agent.clusters.kubernetes_waits import workload_of
from agent.clusters.kubernetes_watch import Mirror

NAMES_PER_CALL = 100
ORDINARY = (
    "Pulling", "Pulled", "Created", "Started", "Scheduled", "SuccessfulCreate", "SuccessfulDelete", "Completed",
)  # fmt: skip
"""Reasons of events that say nothing which the objects do not say themselves; they are most of all events."""
EVENT_SELECTOR = ",".join(f"reason!={reason}" for reason in ORDINARY)
_OF_AN_ATTEMPT = re.compile(r".*-a\d+-[0-9a-f]{8}")
"""A name that only a submit of ours gives (naming.attempt_name); such a Job has our label."""


def jobs_path(namespace: str, name: str = "") -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


def path_of(kind: str, namespace: str, name: str = "") -> str:
    """A path of the core API below a namespace."""
    return f"/api/v1/namespaces/{namespace}/{kind}" + (f"/{name}" if name else "")


class Looks:
    """What one client keeps at hand of the API's objects, for one process."""

    def __init__(self, api: Api, options: Options) -> None:
        self._api, self._options = api, options
        self._mirrors: dict[tuple[str, str], Mirror] = {}
        self._lock = threading.Lock()
        self._kueue: str | None = None

    def fields(self, namespace: str, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Fields of an observation for each name; `gone` for one without a Job. Raises Refused and as Api."""
        wanted = set(names)
        try:
            jobs = {name_of(job): job for job in self._mirror(namespace, "jobs").read()}
            pods = list(self._mirror(namespace, "pods").read())
            foreign = [name for name in sorted(wanted - jobs.keys()) if not _OF_AN_ATTEMPT.fullmatch(name)]
            if foreign:
                there = self._api.list(jobs_path(namespace))
                jobs |= {name_of(job): job for job in there if name_of(job) in foreign}
                pods += self.pods_of(namespace, [name for name in foreign if name in jobs])
            return self.judged(namespace, {name: jobs.get(name) for name in wanted}, pods)
        except Said as error:
            raise error.refused() from None

    def judged(
        self, namespace: str, jobs: Mapping[str, Object | None], pods: Sequence[Object]
    ) -> dict[str, dict[str, Any]]:
        """The same for Jobs and pods that were read already."""
        of_job: dict[str, list[Object]] = {}
        for pod in pods:
            of_job.setdefault(job_of(pod), []).append(pod)
        events = self._events(namespace)
        nodes = self._nodes([pod for name in jobs for pod in of_job.get(name, ())])
        workloads = self._workloads(namespace, [job for job in jobs.values() if job is not None])
        told = {}
        for name, job in jobs.items():
            native: dict[str, Any] = {"job": job, "pods": _its_own(job, of_job.get(name, ()))}
            if job is not None:
                native["events"] = kubernetes_events.about(job, events)
                native["workload"] = workload_of(job, workloads)
            if nodes is not None:
                native["nodes"] = nodes
            told[name] = normalise(native)
        return told

    def pods_of(self, namespace: str, names: Sequence[str]) -> list[Object]:
        """The pods of these Jobs, by the label that the Job controller gives them."""
        found: list[Object] = []
        for start in range(0, len(names), NAMES_PER_CALL):
            some = ",".join(names[start : start + NAMES_PER_CALL])
            pods = self._api.list(path_of("pods", namespace), labelSelector=f"{JOB_NAME} in ({some})")
            found += pods or self._api.list(
                path_of("pods", namespace), labelSelector=f"{OLD_JOB_NAME} in ({some})"
            )
        return found

    def workload(self, namespace: str, job: Object) -> tuple[str, Object | None]:
        """The path of Kueue's workloads ("" without Kueue) and the one that stands for a Job."""
        if QUEUE not in labels_of(job):
            return "", None
        path = self._workloads_path(namespace)
        return path, workload_of(job, allowed(self._api, path) or ()) if path else None

    # --- what is read --------------------------------------------------------------------------------------

    def _mirror(self, namespace: str, kind: str) -> Mirror:
        with self._lock:
            found = self._mirrors.get((namespace, kind))
            if found is None:
                path = jobs_path(namespace) if kind == "jobs" else path_of(kind, namespace)
                query = {"fieldSelector": EVENT_SELECTOR} if kind == "events" else {"labelSelector": SELECTOR}
                found = Mirror(self._api, path, watch_from=self._options.watch_from, **query)
                self._mirrors[namespace, kind] = found
            return found

    def _events(self, namespace: str) -> dict[str, list[Object]]:
        """Events by what they are about; none when they may not be read, since they are hints only."""
        try:
            return kubernetes_events.of_each(self._mirror(namespace, "events").read())
        except Said as error:
            if error.code == 403:
                return {}
            raise

    def _nodes(self, pods: Iterable[Object]) -> Sequence[Object] | None:
        """All nodes, when the judgement of one of these pods needs them; None when not, or not allowed."""
        return allowed(self._api, "/api/v1/nodes") if any(map(_asks_for_nodes, pods)) else None

    def _workloads(self, namespace: str, jobs: Iterable[Object]) -> Sequence[Object]:
        if not any(QUEUE in labels_of(job) for job in jobs):
            return ()
        path = self._workloads_path(namespace)
        return (allowed(self._api, path) or ()) if path else ()

    def _workloads_path(self, namespace: str) -> str:
        if self._kueue is None:
            try:
                group = self._api.get("/apis/kueue.x-k8s.io")
                self._kueue = text(group, "preferredVersion", "version")
            except Said:
                return ""
        return f"/apis/kueue.x-k8s.io/{self._kueue}/namespaces/{namespace}/workloads"


def _asks_for_nodes(pod: Object) -> bool:
    """One that is to go and is not gone, that fell silent, or that found no node large enough."""
    told = condition(pod, "PodScheduled", "False")
    if told is not None:
        return "Insufficient" in text(told, "message")
    phase = text(pod, "status", "phase")
    going = bool(field(pod, "metadata", "deletionTimestamp")) and phase in ("Running", "Pending")
    return going or (phase == "Running" and condition(pod, "Ready", "False") is not None)


def _its_own(job: Object | None, pods: Sequence[Object]) -> list[Object]:
    """The pods of this very Job: an earlier one of its name may have left some."""
    uid = text(job, "metadata", "uid")
    found = []
    for pod in pods:
        owners = field(pod, "metadata", "ownerReferences") or ()
        known = {text(owner, "uid") for owner in owners if text(owner, "kind") == "Job"}
        if not uid or not known or uid in known:
            found.append(pod)
    return found
