"""The headless Service of a job of several replicas: made before the Job, tied to it, gone with it.

Never: keep a Job from being submitted or deleted because of what is only tidiness.
"""

from __future__ import annotations

import contextlib

from agent.clusters.base import ClusterError
from agent.clusters.kubernetes_api import Api, Said
from agent.clusters.kubernetes_looks import path_of
from agent.clusters.kubernetes_objects import Object, text
from agent.clusters.kubernetes_places import Place


def serve(api: Api, place: Place, service: Object) -> None:
    """Create it; one that is there is of an earlier try. Raises Refused and as Api.

    It comes first: a Job without it starts, and its replicas never find each other.
    """
    try:
        api.post(path_of("services", place.namespace), service, fieldValidation="Strict")
    except Said as error:
        if error.code != 409:
            raise error.refused() from None


def tie(api: Api, place: Place, job: Object) -> None:
    """Let it go when the Job goes; without this it only stays behind."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": place.name, "uid": text(job, "metadata", "uid")}
    with contextlib.suppress(ClusterError, Said):
        change = {"metadata": {"ownerReferences": [owner]}}
        api.patch(path_of("services", place.namespace, place.name), change)


def withdraw(api: Api, place: Place) -> None:
    """Remove it, if it is there."""
    with contextlib.suppress(ClusterError, Said):
        how = {"apiVersion": "v1", "kind": "DeleteOptions"}
        api.delete(path_of("services", place.namespace, place.name), how)
