"""Builders: a submission, the Job that is made of it, and its parts.

Never: give back a Job that a real API server would refuse, as far as that is known here.
"""

from __future__ import annotations

from typing import Any

from agent.clusters.base import Submission
from agent.clusters.kubernetes_manifest import job
from agent.clusters.kubernetes_options import Options
from states.naming import attempt_name, fingerprint
from states.spec import Spec
from tests.clusters.kubernetes.kubelet import expanded
from tests.clusters.kubernetes.schema import faults_of_a_job, strict_faults

OPTIONS = Options(
    storage={"/ws": "claim:workspace/team", "/data": "nfs:files.lab:/export/data", "/fast": "host:/fast"}
)
SPEC = Spec(command=("python", "train.py"), image="reg/own:7", workspace="/ws/run")


def sent(spec: Spec = SPEC, *, owner: str = "someone", **changes: Any) -> Submission:
    spec = spec.model_copy(update=changes)
    return Submission(
        name=attempt_name("run-x1", 0, spec), fingerprint=fingerprint(spec), owner=owner, spec=spec
    )


def made(options: Options = OPTIONS, **changes: Any) -> dict[str, Any]:
    """The Job, after the checks of a real API server as far as they are known here (the client's models)."""
    manifest = job(sent(**changes), options)
    assert strict_faults("jobs", manifest) == []
    assert faults_of_a_job(manifest) == []
    return manifest


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return spec


def container_of(manifest: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod_of(manifest)["containers"]
    found: dict[str, Any] = container
    return found


def values_of(manifest: dict[str, Any]) -> dict[str, str]:
    """What the variables are in the container, as the kubelet makes them."""
    values: dict[str, str] = {}
    for one in container_of(manifest)["env"]:
        if "value" in one:
            values[one["name"]] = expanded(one["value"], values)
    return values
