"""A Kubernetes Job manifest as a request: what has a field becomes that, the rest is laid over the Job we make.

What is laid over goes as JSON objects in `extra_args`, as the Kubernetes cluster takes them; its container is called
`main` there. Names, the labels that say whose it is, and what Watchkeeper does itself (restarts, keeping the ended
Job) are left out, and noted.

Never: an object other than the Job (it has to be there already); the value of a Secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent.native.converted import Building, Converted
from agent.native.kubernetes_pod import put_pod
from agent.yamlfile import UserFileError, read_document

IS_ONE = re.compile(r"^kind:[ \t]*[\"']?[A-Z]\w+", re.M)
HAS_VERSION = re.compile(r"^apiVersion:[ \t]*\S", re.M)
DOCUMENT = re.compile(r"^---(?:[ \t].*)?$", re.M)
MANAGED_BY = "app.kubernetes.io/managed-by"
QUEUE = "kueue.x-k8s.io/queue-name"
OURS: Mapping[str, str] = {
    "ttlSecondsAfterFinished": "`keep_s` of the cluster says how long an ended Job is kept",
    "podFailurePolicy": "Watchkeeper's own tells a lost node from a failure",
    "selector": "Kubernetes sets it",
    "manualSelector": "Kubernetes sets it",
    "completionMode": "several replicas are indexed",
}
"""Fields of a Job's spec that Watchkeeper sets itself, and why."""
TAKEN = frozenset(
    {"backoffLimit", "completions", "parallelism", "activeDeadlineSeconds", "template", "suspend"}
)


def recognised(text: str) -> bool:
    """A manifest of anything."""
    return IS_ONE.search(text) is not None and HAS_VERSION.search(text) is not None


def from_manifest(text: str, *, where: str) -> Converted:
    """The request of the one Job in a manifest. Raises UserFileError where there is none, or several."""
    found = list(_documents(text, where))
    jobs = [one for one in found if one.get("kind") == "Job"]
    others = [f"{one.get('kind')} {_name(one) or '?'}" for one in found if one.get("kind") != "Job"]
    if len(jobs) != 1:
        held = ", ".join(others) or "nothing"
        said = f"{len(jobs)} Jobs; one run is one Job" if jobs else f"no Job (it holds {held})"
        raise UserFileError(f"{where}: there is {said}. A request can be made of one manifest of kind Job.")
    built = Building("kubernetes")
    if others:
        built.note(f"{', '.join(others)}: not made by a run; `kubectl apply` it first")
    job = jobs[0]
    if not str(job.get("apiVersion", "")).startswith("batch/"):
        raise UserFileError(
            f"{where}: a Job of {job.get('apiVersion')!r} is another kind of thing; batch/v1 is read"
        )
    _job(built, job, where)
    return built.done()


def _documents(text: str, where: str) -> Iterator[dict[str, Any]]:
    """Each document's data; faults are told with the lines of the whole file."""
    starts = [0, *(match.end() for match in DOCUMENT.finditer(text))]
    ends = [*(match.start() for match in DOCUMENT.finditer(text)), len(text)]
    for start, end in zip(starts, ends, strict=True):
        lines = "\n" * text.count("\n", 0, start)
        data = read_document(lines + text[start:end], what=where).data
        if data:
            yield data


def _job(built: Building, job: dict[str, Any], where: str) -> None:
    metadata, spec = mapping(job.get("metadata")), mapping(job.get("spec"))
    template = mapping(spec.get("template"))
    if name := _name(job):
        built.name(name)
    if namespace := metadata.get("namespace"):
        said = "the cluster's own, or that of the `group` in its settings"
        built.note(f"namespace {namespace} is left out: the Job goes into {said}")
    over: dict[str, Any] = {}
    _replicas(built, spec, over)
    if "backoffLimit" in spec:
        built.request["max_restarts"] = spec["backoffLimit"]
        built.note("backoffLimit became `max_restarts`: Watchkeeper restarts, and not Kubernetes")
    for field, why in OURS.items():
        if field in spec:
            built.note(f"{field} is left out: {why}")
    over |= {field: value for field, value in spec.items() if field not in TAKEN | OURS.keys()}
    labels = _labels(built, metadata)
    if spec.get("suspend") and QUEUE in labels.get("labels", {}):
        over["suspend"] = True  # Kueue lets it go
    elif spec.get("suspend"):
        built.note("suspend is left out: a run is submitted to start")
    pod = mapping(template.get("spec"))
    _time_limit(built, pod.pop("activeDeadlineSeconds", None), spec.get("activeDeadlineSeconds"))
    inside = _labels(built, mapping(template.get("metadata")))
    if not pod.get("containers"):
        raise UserFileError(f"{where}: the Job has no container")
    for fragment in (
        {"metadata": labels} if labels else {},
        {"spec": over} if over else {},
        {"spec": {"template": {"metadata": inside}}} if inside else {},
    ):
        if fragment:
            built.keep(json.dumps(fragment, ensure_ascii=False))
    put_pod(built, pod, where)


def _replicas(built: Building, spec: dict[str, Any], over: dict[str, Any]) -> None:
    """As many pods as are to complete; where fewer run at a time, that is laid over."""
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    replicas = completions or parallelism or 1
    if replicas != 1:
        built.request["replicas"] = replicas
    if parallelism is not None and parallelism != replicas:
        over["parallelism"] = parallelism
        built.note(f"{parallelism} of {replicas} pods run at a time: they are no gang that starts together")
    if completions is None and replicas != 1:
        built.note("a queue of work without `completions` is watched as a gang: every pod must succeed")


def _time_limit(built: Building, of_pod: Any, of_job: Any) -> None:
    """A run's limit counts from its start on a node, as a pod's own does; a Job's counts the wait too."""
    if of_pod or of_job:
        built.request["time_limit_s"] = of_pod or of_job
    if of_pod and of_job:
        built.note("activeDeadlineSeconds of the Job is left out: its pod has one")
    elif of_job:
        built.note(
            "activeDeadlineSeconds became `time_limit_s`, which counts from the start on a node, not the wait"
        )


def _labels(built: Building, metadata: dict[str, Any]) -> dict[str, Any]:
    """Labels and annotations that are somebody else's business."""
    found = {}
    for field in ("labels", "annotations"):
        kept = {key: value for key, value in mapping(metadata.get(field)).items() if key != MANAGED_BY}
        if len(kept) < len(mapping(metadata.get(field))):
            built.note(
                f"the label {MANAGED_BY} is left out: it says whose Job it is, and that is Watchkeeper's"
            )
        if kept:
            found[field] = kept
    return found


def _name(one: Mapping[str, Any]) -> str:
    metadata = mapping(one.get("metadata"))
    return str(metadata.get("name") or str(metadata.get("generateName") or "").rstrip("-"))


def mapping(value: object) -> dict[str, Any]:
    """A copy of a mapping; {} for anything else."""
    return dict(value) if isinstance(value, Mapping) else {}
