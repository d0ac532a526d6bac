"""Kubernetes: batch/v1 Jobs behind the `Cluster` protocol, over the official client (extra `kubernetes`).

A job's id is `<namespace>/<name>`; its name is unique there, so the API server itself refuses a double: a submit that
meets a Job with our name, fingerprint and owner has been made before, and is taken over. A stop suspends the Job
(its pods go, its record stays) and marks it with the time; Kubernetes itself restarts nothing.

Options: `kubernetes_options.Options`. What the words mean: `kubernetes_states.normalise` (PHASES 2).

Never: one call for each job; read "no answer" or "not allowed" as "no such job"; delete of its own accord; take a
suspended Job that nobody here stopped for one that ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from agent.clusters import kubernetes_events, kubernetes_logs, kubernetes_manifest, kubernetes_service
from agent.clusters.base import (
    ClusterError,
    JobLine,
    LogPiece,
    NotThere,
    Ref,
    Refused,
    Submission,
    Submitted,
    Unreachable,
)
from agent.clusters.kubernetes_api import Api, Said
from agent.clusters.kubernetes_capacity import allowed, capacity, left_on, takes_pods
from agent.clusters.kubernetes_doctor import Finding, examine
from agent.clusters.kubernetes_kept import Kept
from agent.clusters.kubernetes_looks import Looks, jobs_path, path_of
from agent.clusters.kubernetes_manifest import ATTEMPT, FINGERPRINT, MANAGED_BY, MANAGER, OWNER, SELECTOR
from agent.clusters.kubernetes_objects import (
    Object,
    annotation,
    condition,
    count,
    field,
    labels_of,
    moment,
    name_of,
    started,
    text,
)
from agent.clusters.kubernetes_options import Options
from agent.clusters.kubernetes_places import Place, places_of, the_pod_that_tells
from agent.clusters.kubernetes_states import QUEUE, STARTED, STOPPED, normalise
from agent.clusters.kubernetes_waits import lacking, wanted
from agent.clusters.local_time import now
from agent.redaction import Redactor
from states.observation import ENDED, Capabilities, Capacity, Match, NativeEvent, Observation, Phase

__all__ = ["KubernetesCluster", "normalise"]

EVENT_PAGES_MAX = 40
CALLS_OF_A_SUBMIT = 4
"""Service, Job, a look at the one that is there, and the tie between them; each has to connect and to answer."""


class KubernetesCluster:
    """The `Cluster` protocol over one API server. Holds copies for speed, and nothing that is lost with them.

    options: see `Options`; `redact`: text -> text without credentials, given by the composition root, for the lines
    that are kept. Without it they go by what looks like one.
    """

    kind: ClassVar[str] = "kubernetes"

    def __init__(self, name: str = "kubernetes", options: Mapping[str, Any] | None = None) -> None:
        given = dict(options or {})
        redact: Callable[[str], str] = given.pop("redact", Redactor(()).text)
        self.name = name
        self.options = Options.model_validate(given)
        self.capabilities = Capabilities(
            name_is_unique=True,
            visible_within_s=5.0,
            submit_timeout_s=CALLS_OF_A_SUBMIT * 2 * self.options.timeout_s,
            lanes=("normal", "idle") if self.options.idle_priority_class else ("normal",),
            keeps_ended_s=self.options.keep_s,
            tells_log_time=True,
            needs_image=True,
            needs_group=False,
            own_defaults=True,
        )
        self._api = Api(self.options, name)
        self._looks = Looks(self._api, self.options)
        self._kept = Kept(self.options.root, name, redact)

    # --- asking about jobs ---------------------------------------------------------------------------------

    def find(self, name: str, *, fingerprint: str = "", owner: str = "") -> Sequence[Match]:
        """The Job of that name in each of the namespaces; empty when the API server says there is none."""
        found = []
        for place in places_of(Ref(name), self._namespaces()):
            with _answered():
                job = self._get(place)
                if job is None:
                    continue
                pods = self._looks.pods_of(place.namespace, [name])
                fields = self._looks.judged(place.namespace, {name: job}, pods)[name]
            found.append(_match(job, place, fields["phase"], _ours(job, fingerprint, owner)))
        return found

    def observe(self, refs: Sequence[Ref]) -> Mapping[str, Observation]:
        """Three lists for a namespace, whatever the number of jobs in it."""
        at, namespaces = now(), self._namespaces()
        places = {ref: places_of(ref, namespaces) for ref in refs}
        asked: dict[str, set[str]] = {}
        for place in (place for several in places.values() for place in several):
            asked.setdefault(place.namespace, set()).add(place.name)
        told = {namespace: self._looks.fields(namespace, names) for namespace, names in asked.items()}
        seen = {}
        for ref, several in places.items():
            each = [told[place.namespace][place.name] for place in several]
            there = [fields for fields in each if fields["phase"] is not Phase.gone]
            gone = {"phase": Phase.gone, "reason": "no record of this Job"}
            seen[ref.name] = Observation(taken_at=at, **(there or each or [gone])[0])
        return seen

    def list(self, *, everyone: bool = False) -> Sequence[JobLine]:
        """Watchkeeper's Jobs (those of `owner`, where the settings name one), or all Jobs of the namespaces."""
        lines = []
        mine = SELECTOR + (
            f",{OWNER}={kubernetes_manifest.label(self.options.owner)}" if self.options.owner else ""
        )
        selector = None if everyone else mine
        at = now()
        for namespace in self._namespaces():
            with _answered():
                jobs = {
                    name_of(job): job for job in self._api.list(jobs_path(namespace), labelSelector=selector)
                }
                pods = self._api.list(path_of("pods", namespace), labelSelector=selector)
                told = self._looks.judged(namespace, jobs, pods)
            lines += [
                JobLine(
                    cluster_job_id=f"{namespace}/{name}",
                    name=name,
                    observation=Observation(taken_at=at, **told[name]),
                    ours=labels_of(job).get(MANAGED_BY) == MANAGER,
                )
                for name, job in jobs.items()
            ]
        return lines

    def logs(self, ref: Ref, *, lines: int = 200, cursor: str = "", head: bool = False) -> LogPiece:
        """Of the pod that failed first, else of rank 0: its newest run that has a log. Of a stopped job what was
        kept. Raises NotThere when the log went with its pod."""
        place, job = self._job(ref)
        with _answered():
            pod = the_pod_that_tells(job, self._looks.pods_of(place.namespace, [place.name]))
        kept = self._kept.read(place)
        if pod is not None:
            path = path_of("pods", place.namespace, name_of(pod))
            try:
                return kubernetes_logs.read(self._api, path, pod, lines=lines, cursor=cursor, head=head)
            except NotThere:
                if kept is None:
                    raise
        if kept is not None:
            return kubernetes_logs.kept(kept, where=str(place), lines=lines, cursor=cursor, head=head)
        if count(job, "status", "failed") or count(job, "status", "succeeded") or annotation(job, STARTED):
            raise NotThere(f"the pods of {place} are gone, and the log with them")
        return LogPiece(text="", cursor=cursor, ready=False, path=str(place))

    def events(self, ref: Ref) -> Sequence[NativeEvent]:
        """Events of the Job and its pods, repeats folded; its conditions once the events have expired."""
        place, job = self._job(ref)
        with _answered():
            path = path_of("events", place.namespace)
            found = kubernetes_events.of_each(self._api.list(path, pages_max=EVENT_PAGES_MAX))
        return kubernetes_events.story(job, kubernetes_events.about(job, found))

    def capacity(self, group: str | None = None) -> Capacity:
        """Of the nodes within the namespace's quota, or of the quota alone; `group` as in the settings."""
        namespace = self.options.groups[group].namespace if group in self.options.groups else ""
        if group and group not in self.options.groups:
            raise Refused("that group is not configured for this cluster; add it to `groups` in its options")
        with _answered():
            where = namespace or self._api.namespace
            return capacity(self._api, where, group or where, self.options.gpu_resource, self._tolerated())

    # --- acting on jobs ------------------------------------------------------------------------------------

    def submit(self, submission: Submission) -> Submitted:
        """One create (after the Service of several replicas). A Job with our name, fingerprint and owner is ours."""
        job = kubernetes_manifest.job(submission, self.options)
        service = kubernetes_manifest.service(submission)
        place = self._place(submission)
        if service is not None:
            kubernetes_service.serve(self._api, place, service)
        note = ""
        try:
            made: Object = self._api.post(jobs_path(place.namespace), job, fieldValidation="Strict")
        except Said as error:
            if error.code != 409:
                if service is not None:
                    kubernetes_service.withdraw(self._api, place)
                raise error.refused() from None
            made, note = self._adopted(place, submission), "it was there already, and is ours"
        if service is not None:
            kubernetes_service.tie(self._api, place, made)
        return Submitted(str(place), note)

    def stop(self, ref: Ref) -> None:
        """Suspend it: its pods go after their grace, its record stays. Of an ended Job nothing changes."""
        place, job = self._job(ref)
        if condition(job, "Complete") or condition(job, "Failed"):
            return
        with _answered():
            pod = the_pod_that_tells(job, self._looks.pods_of(place.namespace, [place.name]))
            self._keep(place, pod)
            path, workload = self._looks.workload(place.namespace, job)
            labels: dict[str, None] = {}
            if workload is not None:  # Kueue lets an admitted Job go on whatever the Job says
                self._api.patch(f"{path}/{name_of(workload)}", {"spec": {"active": False}})
            elif QUEUE in labels_of(job) and field(job, "spec", "suspend") is True:
                labels = {QUEUE: None}  # Kueue has not seen it yet, and now has no reason to
            began = started(pod) if pod is not None else None
            marks = {STOPPED: annotation(job, STOPPED) or now().isoformat(timespec="seconds")}
            if began is not None:
                marks[STARTED] = began.isoformat()
            change = {"metadata": {"annotations": marks, "labels": labels}, "spec": {"suspend": True}}
            self._api.patch(jobs_path(place.namespace, place.name), change)

    def delete(self, ref: Ref) -> None:
        """Remove the record with its pods and Service. Refused while the job lives."""
        place, job = self._job(ref)
        with _answered():
            pods = self._looks.pods_of(place.namespace, [place.name])
            fields = self._looks.judged(place.namespace, {place.name: job}, pods)[place.name]
            over = fields["phase"] in ENDED and not fields.get("finishing")
            if not over and condition(job, "Failed") is None:
                raise Refused(f"job {place} has not ended; stop it first", retryable=True)
            how = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Background",
                "preconditions": {"uid": text(job, "metadata", "uid")},
            }
            self._api.delete(jobs_path(place.namespace, place.name), how)
            if field(job, "spec", "completionMode") == "Indexed" and ATTEMPT in labels_of(job):
                kubernetes_service.withdraw(self._api, place)
        self._kept.forget(place)

    # --- before a job --------------------------------------------------------------------------------------

    def predict(self, submission: Submission) -> str:
        """The API server's own dry run, and whether a node has that much, in all and just now."""
        job = kubernetes_manifest.job(submission, self.options)
        place = self._place(submission)
        with _answered():
            self._api.post(jobs_path(place.namespace), job, dryRun="All", fieldValidation="Strict")
            nodes = allowed(self._api, "/api/v1/nodes")
            pods = allowed(self._api, "/api/v1/pods") if nodes is not None else None
        pod = {"spec": job["spec"]["template"]["spec"]}
        said = f"{place} is accepted by a dry run"
        if nodes is None:
            return f"{said}; the nodes may not be read with this account, so when it would start is not known"
        if short := lacking(pod, nodes):
            return f"{said}, but no node has as much {', '.join(short)} as it asks for: it would never start"
        usable = [node for node in nodes if takes_pods(node, self._tolerated())]
        left = left_on(usable, pods).values() if pods is not None else ()
        wants = wanted(pod["spec"])
        fits = any(all(room.get(kind, 0.0) >= amount for kind, amount in wants.items()) for room in left)
        return f"{said}; " + (
            "a node has room for it now" if fits else "no node has room for it now: it would wait"
        )

    def render(self, submission: Submission) -> str:
        """The manifests as YAML, credentials in variables hidden."""
        made = [kubernetes_manifest.service(submission), kubernetes_manifest.job(submission, self.options)]
        return kubernetes_manifest.rendered([one for one in made if one is not None], submission.spec)

    def doctor(self) -> Sequence[Finding]:
        """Client, kubeconfig, server, clock, rights, classes, queue: what is fine, and how to mend the rest."""
        return examine(self._api, self.options)

    # --- parts ---------------------------------------------------------------------------------------------

    def _namespaces(self) -> Sequence[str]:
        groups = (group.namespace for group in self.options.groups.values())
        return tuple(dict.fromkeys([self._api.namespace, *filter(None, groups)]))

    def _place(self, submission: Submission) -> Place:
        group = kubernetes_manifest.group_of(submission.spec, self.options)
        return Place(group.namespace or self._api.namespace, submission.name)

    def _get(self, place: Place) -> Object | None:
        try:
            return self._api.get(jobs_path(place.namespace, place.name))
        except Said as error:
            if error.code == 404:
                return None
            raise

    def _job(self, ref: Ref) -> tuple[Place, Object]:
        """The Job of a ref and where it is. Raises NotThere."""
        for place in places_of(ref, self._namespaces()):
            with _answered():
                job = self._get(place)
            if job is not None:
                return place, job
        raise NotThere(f"no job {ref.cluster_job_id or ref.name} on {self.name}")

    def _tolerated(self) -> frozenset[str]:
        """Keys of taints that our pods tolerate."""
        given = self.options.pod.get("tolerations") or ()
        return frozenset({self.options.gpu_resource, *(str(one.get("key", "")) for one in given)})

    def _adopted(self, place: Place, submission: Submission) -> Object:
        """The Job that has our name, if it is this very submission. Raises Refused."""
        with _answered():
            job = self._get(place)
        if job is None:
            raise Unreachable(f"{place} was there a moment ago and is gone; look again")
        if not _ours(job, submission.fingerprint, submission.owner):
            raise Refused(f"a Job {place} is there already and is another one; choose another name")
        return job

    def _keep(self, place: Place, pod: Object | None) -> None:
        """The last lines of a job that is about to be stopped; a log that cannot be had does not hold a stop up."""
        if pod is None or not text(pod, "spec", "nodeName"):
            return
        path = path_of("pods", place.namespace, name_of(pod))
        with contextlib.suppress(ClusterError, Said, OSError):
            self._kept.write(place, kubernetes_logs.keep(self._api, path, pod))


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """An error status that has no meaning of its own here, as a cluster's refusal."""
    try:
        yield
    except Said as error:
        if error.code == 404:
            raise NotThere(error.message) from None
        raise error.refused() from None


def _ours(job: Object, fingerprint: str, owner: str) -> bool:
    """Whether the labels agree; what is left out agrees with any."""
    labels = labels_of(job)
    known = annotation(job, OWNER) or labels.get(OWNER)
    return (not fingerprint or labels.get(FINGERPRINT) == kubernetes_manifest.label(fingerprint)) and (
        not owner or known == owner
    )


def _match(job: Object, place: Place, phase: Phase, ours: bool) -> Match:
    at = moment(field(job, "metadata", "creationTimestamp"))
    return Match(cluster_job_id=str(place), name=place.name, phase=phase, ours=ours, submitted_at=at)
