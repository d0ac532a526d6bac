"""Where a Job is (`<namespace>/<name>`), and which of its pods has the log worth reading.

Never: let a name of somebody's make a path of the API.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from agent.clusters.base import Ref
from agent.clusters.kubernetes_ends import disruption
from agent.clusters.kubernetes_objects import (
    Object,
    by_index,
    condition,
    count,
    field,
    main_container,
    started,
    terminated,
    text,
)

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
CASCADE = (137, 143)
"""Exit codes of a pod that was taken down with the others."""


class Place(NamedTuple):
    """A Job's address; as text it is the job's id."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def places_of(ref: Ref, namespaces: Sequence[str]) -> list[Place]:
    """Where the Job of a ref may be: what its id says, else that name in each namespace; none for no name at all."""
    namespace, slash, name = (ref.cluster_job_id or ref.name).rpartition("/")
    places = [Place(namespace, name)] if slash else [Place(each, name) for each in namespaces]
    return [place for place in places if _NAME.fullmatch(place.namespace) and _NAME.fullmatch(place.name)]


def the_pod_that_tells(job: Object, pods: Sequence[Object]) -> Object | None:
    """The pod whose log tells most: of a failed Job the one that failed first by itself, else that of the first
    place; of several runs the newest that has begun. None when there is no pod."""
    uid = text(job, "metadata", "uid")
    places = by_index([pod for pod in pods if _belongs(pod, uid)], count(job, "spec", "parallelism"))
    if not places:
        return None
    newest = [_begun(place) for place in places]
    if condition(job, "Failed") or condition(job, "FailureTarget"):
        failed = [pod for pod in newest if field(terminated(pod), "exitCode")]
        own = [
            pod
            for pod in failed
            if field(terminated(pod), "exitCode") not in CASCADE and disruption(pod) is None
        ]
        if own or failed:
            return min(own or failed, key=lambda pod: text(terminated(pod), "finishedAt") or "9")
    return newest[0]


def _begun(place: Sequence[Object]) -> Object:
    begun = [pod for pod in place if started(pod) is not None or count(main_container(pod), "restartCount")]
    return (begun or place)[-1]


def _belongs(pod: Object, uid: str) -> bool:
    owners = field(pod, "metadata", "ownerReferences") or ()
    known = {text(owner, "uid") for owner in owners if text(owner, "kind") == "Job"}
    return not uid or not known or uid in known
