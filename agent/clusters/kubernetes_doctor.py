"""Is this machine set up for a Kubernetes cluster? One row a thing, each with how to mend it.

Rights are asked for one by one (SelfSubjectAccessReview), since a missing one shows only in the middle of a run.

Never: create a job, change or stop anything; show a token.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

from agent.clusters.base import ClusterError
from agent.clusters.kubernetes_api import Api, Said
from agent.clusters.kubernetes_mounts import source_of
from agent.clusters.kubernetes_objects import text
from agent.clusters.kubernetes_options import Options
from agent.clusters.local_time import now

CLOCKS_APART_S = 120.0
NEEDED = (
    ("create", "batch", "jobs", ""),
    ("get", "batch", "jobs", ""),
    ("list", "batch", "jobs", ""),
    ("patch", "batch", "jobs", ""),
    ("list", "", "pods", ""),
    ("get", "", "pods", "log"),
)
"""Without one of these a run cannot be carried."""
USEFUL = (
    ("delete", "batch", "jobs", "", "`wk delete` is refused"),
    ("list", "", "events", "", "why a job waits is told less well"),
    ("create", "", "services", "", "jobs of several replicas are refused"),
    ("list", "", "nodes", "", "capacity comes from the quota alone, and a lost node shows later"),
)


class Finding(NamedTuple):
    """One row. level: fine, warn (works, with less), wrong. mend: what to do, "" when nothing is to be done."""

    name: str
    level: Literal["fine", "warn", "wrong"]
    said: str
    mend: str = ""


def examine(api: Api, options: Options) -> list[Finding]:
    """Client and server first; the rest only when they are there."""
    try:
        version, namespace, date = api.get("/version"), api.namespace, api.date()
    except Said as error:
        return [
            Finding(
                "server", "wrong", error.message, "Is this an API server? Check the kubeconfig's `server`."
            )
        ]
    except ClusterError as error:
        return [
            Finding(
                "server", "wrong", str(error), "Try `kubectl version` with the same kubeconfig and context."
            )
        ]
    rows = [Finding("server", "fine", f"Kubernetes {text(version, 'gitVersion')}, namespace {namespace}")]
    rows += [_clock(date), *_rights(api, namespace), *_storage(options), *_classes(api, options)]
    return rows + _queue(api, options.queue, namespace) + _groups(api, options, namespace)


def _clock(date: str) -> Finding:
    try:
        apart_s = (parsedate_to_datetime(date) - now()).total_seconds()
    except (TypeError, ValueError):
        return Finding("clock", "warn", "the server does not tell its time")
    if abs(apart_s) <= CLOCKS_APART_S:
        return Finding("clock", "fine", f"{apart_s:+.0f} s from this machine's")
    return Finding("clock", "warn", f"{apart_s:+.0f} s from this machine's", "Set both by NTP.")


def _rights(api: Api, namespace: str) -> list[Finding]:
    rows = []
    for verb, group, resource, sub in NEEDED:
        if _may(api, namespace, verb, group, resource, sub) is False:
            what = f"{verb} {resource}{'/' + sub if sub else ''}"
            mend = f"Ask for a role in {namespace} that may {what}."
            rows.append(Finding("rights", "wrong", f"this account may not {what}", mend))
    for verb, group, resource, sub, then in USEFUL:
        if _may(api, "" if resource == "nodes" else namespace, verb, group, resource, sub) is False:
            mend = f"Ask for the right, if that matters: {verb} {resource}."
            rows.append(Finding("rights", "warn", f"this account may not {verb} {resource}: {then}", mend))
    return rows or [Finding("rights", "fine", "all that is needed")]


def _may(api: Api, namespace: str, verb: str, group: str, resource: str, sub: str) -> bool | None:
    """Whether this account may; None when the server does not say."""
    asked: dict[str, Any] = {"verb": verb, "group": group, "resource": resource, "subresource": sub}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked | ({"namespace": namespace} if namespace else {})},
    }
    try:
        answer = api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    except (Said, ClusterError):
        return None
    allowed = answer.get("status", {}).get("allowed")
    return allowed if isinstance(allowed, bool) else None


def _storage(options: Options) -> list[Finding]:
    if not options.storage:
        mend = "Set `storage: {/workspace: claim:NAME}` in the cluster's options."
        said = "no folder is mapped: each request has to say where its workspace comes from (`mounts`)"
        return [Finding("storage", "warn", said, mend)]
    for words in options.storage.values():
        try:
            source_of(words)
        except ClusterError as error:
            return [Finding("storage", "wrong", str(error), "Mend `storage` in the cluster's options.")]
    return [Finding("storage", "fine", f"mapped: {', '.join(sorted(options.storage))}")]


def _classes(api: Api, options: Options) -> list[Finding]:
    names = {options.priority_class, options.idle_priority_class, *options.priority_classes.values()} - {""}
    rows = []
    for name in sorted(names):
        if _is_there(api, f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}") is False:
            mend = "Pods that name it are refused; mend the options, or have it made."
            rows.append(Finding("priority", "wrong", f"there is no priority class {name}", mend))
    return rows


def _groups(api: Api, options: Options, usual: str) -> list[Finding]:
    """Each group's namespace and queue, where they are others than the cluster's own."""
    rows = []
    for group, meant in options.groups.items():
        namespace, queue = meant.namespace or usual, meant.queue or options.queue
        found = [] if namespace == usual else _rights(api, namespace)
        if (namespace, queue) != (usual, options.queue):
            found += _queue(api, queue, namespace)
        rows += [one._replace(name=f"group {group}: {one.name}") for one in found]
    return rows


def _queue(api: Api, queue: str, namespace: str) -> list[Finding]:
    if not queue:
        return []
    try:
        version = text(api.get("/apis/kueue.x-k8s.io"), "preferredVersion", "version")
    except (Said, ClusterError):
        mend = "Without Kueue a Job with a queue is never let go; take `queue` out, or install Kueue."
        return [Finding("queue", "wrong", "Kueue does not answer", mend)]
    path = f"/apis/kueue.x-k8s.io/{version}/namespaces/{namespace}/localqueues/{queue}"
    if _is_there(api, path) is False:
        return [Finding("queue", "wrong", f"{namespace} has no Kueue queue {queue}", "Mend `queue`.")]
    return [Finding("queue", "fine", f"Kueue queue {queue}")]


def _is_there(api: Api, path: str) -> bool | None:
    try:
        api.get(path)
    except Said as error:
        return False if error.code == 404 else None
    except ClusterError:
        return None
    return True
