"""What a request may hold, by the API's own OpenAPI document, and what the API server checks beyond that.

The official client has a model of every kind, generated from that document: unknown fields and other types fail.

Never: let pass what a real API server would refuse with fieldValidation=Strict.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

from pydantic import ValidationError

MODELS = {"jobs": "V1Job", "services": "V1Service"}

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


def strict_faults(kind: str, body: dict[str, Any]) -> list[str]:
    """Fields that the kind does not have, and values of another type; nothing for kinds that are not known here."""
    if kind not in MODELS:
        return []
    model = getattr(import_module("kubernetes.client"), MODELS[kind])
    try:
        read = model.model_validate(body).model_dump(by_alias=True, exclude_unset=True, mode="json")
    except ValidationError as error:
        return [_strict(one["type"], one["loc"], one["msg"]) for one in error.errors()]
    # The models know each field by a name of Python's too, which the API server does not.
    return [] if read == body else [f"read as {json.dumps(read)[:200]}"]


def _strict(kind: str, place: tuple[str | int, ...], said: str) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    return f'unknown field "{path}"' if kind == "extra_forbidden" else f"{path}: {said}"


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
        if len(one.get("valueFrom", {})) > 1:
            faults.append(
                _bad(f"{path}.env", one["name"], "may not have more than one field specified at a time")
            )
    known = {volume["name"] for volume in pod.get("volumes", [])}
    paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
    faults += [_bad(f"{path}.volumeMounts", one, "must be unique") for one in paths if paths.count(one) > 1]
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in known:
            faults.append((f"{path}.volumeMounts", "FieldValueNotFound", f'Not found: "{mount["name"]}"'))
    return faults


def _bad(path: str, value: Any, said: str) -> Fault:
    return path, "FieldValueInvalid", f"Invalid value: {json.dumps(value)}: {said}"
