"""What a request may hold, as far as this project sends it; a field that is not here is refused by name.

A reduced schema of our own. With WATCHKEEPER_KUBERNETES_OPENAPI set to a folder of the API server's own OpenAPI v3
documents (`openapi_v3_apis_batch_v1.json`, `openapi_v3_api_v1.json`) bodies are checked against those as well.

Never: let pass what a real API server would refuse with fieldValidation=Strict.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

OPENAPI_VARIABLE = "WATCHKEEPER_KUBERNETES_OPENAPI"
STRINGS: dict[str, Any] = {"*": str}

METADATA: dict[str, Any] = {
    "name": str, "namespace": str, "labels": STRINGS, "annotations": STRINGS,
    "ownerReferences": [{"apiVersion": str, "kind": str, "name": str, "uid": str, "controller": bool}],
}  # fmt: skip
POD: dict[str, Any] = {
    "restartPolicy": str, "terminationGracePeriodSeconds": int, "enableServiceLinks": bool, "subdomain": str,
    "activeDeadlineSeconds": int, "priorityClassName": str, "serviceAccountName": str,
    "automountServiceAccountToken": bool, "imagePullSecrets": [{"name": str}], "nodeSelector": STRINGS,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": str, "operator": str, "values": [str]}]}]}}},
    "containers": [{
        "name": str, "image": str, "imagePullPolicy": str, "command": [str], "args": [str], "workingDir": str,
        "env": [{"name": str, "value": str, "valueFrom": {"fieldRef": {"fieldPath": str}}}],
        "resources": {"requests": STRINGS, "limits": STRINGS},
        "volumeMounts": [{"name": str, "mountPath": str, "subPath": str, "readOnly": bool}],
    }],
    "volumes": [{
        "name": str, "persistentVolumeClaim": {"claimName": str}, "hostPath": {"path": str},
        "nfs": {"server": str, "path": str}, "emptyDir": {"medium": str},
    }],
}  # fmt: skip
JOB: dict[str, Any] = {
    "apiVersion": str, "kind": str, "metadata": METADATA,
    "spec": {
        "backoffLimit": int, "completions": int, "parallelism": int, "completionMode": str, "suspend": bool,
        "activeDeadlineSeconds": int, "ttlSecondsAfterFinished": int, "podReplacementPolicy": str,
        "podFailurePolicy": {"rules": [{
            "action": str, "onPodConditions": [{"type": str, "status": str}],
            "onExitCodes": {"containerName": str, "operator": str, "values": [int]},
        }]},
        "template": {"metadata": METADATA, "spec": POD},
    },
}  # fmt: skip
SERVICE: dict[str, Any] = {
    "apiVersion": str, "kind": str, "metadata": METADATA,
    "spec": {"clusterIP": str, "publishNotReadyAddresses": bool, "selector": STRINGS},
}  # fmt: skip
SHAPES = {"jobs": JOB, "services": SERVICE}
MODELS = {
    "jobs": ("openapi_v3_apis_batch_v1.json", "io.k8s.api.batch.v1.Job"),
    "services": ("openapi_v3_api_v1.json", "io.k8s.api.core.v1.Service"),
}

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|Ki|Mi|Gi|k|M|G)?")
VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
A_NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character"
)

Fault = tuple[str, str, str]
"""field, reason, message."""


def unknown_fields(value: Any, shape: Any, path: str = "") -> list[str]:
    """Fields that the shape does not have, and values of another type."""
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{path}: not a list"]
        each = (unknown_fields(one, shape[0], f"{path}[{place}]") for place, one in enumerate(value))
        return [fault for faults in each for fault in faults]
    if not isinstance(shape, dict):
        right = isinstance(value, shape) and not (shape is int and isinstance(value, bool))
        return [] if right else [f"{path}: not of type {shape.__name__}"]
    if not isinstance(value, dict):
        return [f"{path}: not an object"]
    faults = []
    for key, one in value.items():
        below = f"{path}.{key}".lstrip(".")
        inner = shape.get(key, shape.get("*"))
        faults += [f'unknown field "{below}"'] if inner is None else unknown_fields(one, inner, below)
    return faults


def faults_of_a_job(job: dict[str, Any]) -> list[Fault]:
    """What the API server's own validation finds, in its words."""
    spec = job.get("spec", {})
    pod = spec.get("template", {}).get("spec", {})
    faults = (
        _name(job) + _labels(job, "metadata") + _labels(spec.get("template", {}), "spec.template.metadata")
    )
    if not pod.get("containers"):
        faults.append(("spec.template.spec.containers", "FieldValueRequired", "Required value"))
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        said = 'Required value: valid values: "OnFailure", "Never"'
        faults.append(("spec.template.spec.restartPolicy", "FieldValueRequired", said))
    if spec.get("podFailurePolicy") and pod.get("restartPolicy") != "Never":
        faults.append(
            _bad("spec.template.spec.restartPolicy", pod.get("restartPolicy"), "only 'Never' is supported")
        )
    if spec.get("completionMode") == "Indexed":
        longest = f"{job['metadata'].get('name', '')}-{spec.get('completions', 1) - 1}"
        if len(longest) > 63:
            faults.append(
                _bad("metadata.name", job["metadata"].get("name"), "must be no more than 63 characters")
            )
    for place, container in enumerate(pod.get("containers", [])):
        faults += _container(container, f"spec.template.spec.containers[{place}]", pod)
    terms = (
        pod.get("affinity", {})
        .get("nodeAffinity", {})
        .get("requiredDuringSchedulingIgnoredDuringExecution", {})
    )
    for term in terms.get("nodeSelectorTerms", []):
        for one in term.get("matchFields", []):
            if one["key"] != "metadata.name" or len(one["values"]) != 1:
                faults.append(_bad("spec.template.spec.affinity", one, "must be only one value"))
    return faults


def _name(item: dict[str, Any]) -> list[Fault]:
    name = item.get("metadata", {}).get("name", "")
    if SUBDOMAIN.fullmatch(name) and len(name) <= 63:
        return []
    return [_bad("metadata.name", name, A_NAME)]


def _labels(item: dict[str, Any], path: str) -> list[Fault]:
    labels = item.get("metadata", {}).get("labels", {})
    return [
        _bad(
            f"{path}.labels",
            value,
            "a valid label must be an empty string or consist of alphanumeric characters",
        )
        for value in labels.values()
        if not LABEL.fullmatch(value) or len(value) > 63
    ]


def _container(container: dict[str, Any], path: str, pod: dict[str, Any]) -> list[Fault]:
    faults = []
    if not container.get("image") or container["image"] != container["image"].strip():
        faults.append((f"{path}.image", "FieldValueRequired", "Required value"))
    for kind in ("requests", "limits"):
        for resource, amount in container.get("resources", {}).get(kind, {}).items():
            where = f"{path}.resources.{kind}[{resource}]"
            if not QUANTITY.fullmatch(amount):
                faults.append(_bad(where, amount, "quantities must match the regular expression"))
            elif "/" in resource and not amount.isdecimal():
                faults.append(_bad(where, amount, "must be an integer"))
    for one in container.get("env", []):
        if not VARIABLE.fullmatch(one["name"]):
            faults.append(
                _bad(f"{path}.env", one["name"], "a valid environment variable name must consist of")
            )
        if "value" in one and "valueFrom" in one and one["value"]:
            faults.append(_bad(f"{path}.env", one["name"], "may not be specified when `value` is not empty"))
    known = {volume["name"] for volume in pod.get("volumes", [])}
    paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
    faults += [_bad(f"{path}.volumeMounts", one, "must be unique") for one in paths if paths.count(one) > 1]
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in known:
            faults.append((f"{path}.volumeMounts", "FieldValueNotFound", f'Not found: "{mount["name"]}"'))
    return faults


def _bad(path: str, value: Any, said: str) -> Fault:
    return path, "FieldValueInvalid", f"Invalid value: {json.dumps(value)}: {said}"


# --- the API server's own documents, where they are at hand ------------------------------------------------


def openapi_faults(kind: str, body: dict[str, Any]) -> list[str]:
    """What the API server's own schema says against a body; nothing when its documents are not at hand."""
    folder = os.environ.get(OPENAPI_VARIABLE, "")
    if not folder or kind not in MODELS:
        return []
    validator = import_module("jsonschema").Draft202012Validator
    file, model = MODELS[kind]
    schema = {
        "$ref": f"#/components/schemas/{model}",
        "components": {"schemas": _strict(str(Path(folder) / file))},
    }
    return [f"{error.json_path}: {error.message[:200]}" for error in validator(schema).iter_errors(body)]


@cache
def _strict(path: str) -> Any:
    """The document's models, each without room for further fields."""
    models = json.loads(Path(path).read_text(encoding="utf-8"))["components"]["schemas"]
    for model in models.values():
        if "properties" in model:
            model.setdefault("additionalProperties", False)
    return models
