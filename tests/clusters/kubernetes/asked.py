"""What a request asks for: selectors, merge patches, defaults, a piece of a log.

Never: accept a selector that the API server does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agent.clusters.kubernetes_objects import moment
from tests.clusters.kubernetes.failure import Failure
from tests.clusters.kubernetes.store import Object, copy


def with_defaults(body: Object, uid: str) -> Object:
    """A Job as it is after admission."""
    job: Object = copy(body)
    spec, name = job["spec"], job["metadata"]["name"]
    job["metadata"]["uid"] = uid
    for key, value in {
        "backoffLimit": 6, "completionMode": "NonIndexed", "completions": 1, "parallelism": 1, "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
    }.items():  # fmt: skip
        spec.setdefault(key, value)
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "job-name": name,
    }
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    spec["template"].setdefault("metadata", {}).setdefault("labels", {}).update(labels)
    spec["template"]["spec"].setdefault("terminationGracePeriodSeconds", 30)
    for container in spec["template"]["spec"]["containers"]:
        container.setdefault("imagePullPolicy", "IfNotPresent")
    job["status"] = {}
    return job


def merged(under: Any, over: Any) -> Any:
    """RFC 7386."""
    if not isinstance(over, dict):
        return over
    found = dict(under) if isinstance(under, dict) else {}
    for key, value in over.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def selected(found: Iterable[Object], query: dict[str, str]) -> list[Object]:
    labels = [one for one in re.split(r",(?![^(]*\))", query.get("labelSelector", "")) if one]
    fields = [one for one in query.get("fieldSelector", "").split(",") if one]
    return [
        item
        for item in found
        if all(_has_label(item, one) for one in labels) and all(_has_field(item, one) for one in fields)
    ]


def _has_label(item: Object, words: str) -> bool:
    labels = item["metadata"].get("labels", {})
    if among := re.fullmatch(r"(\S+) in \((.*)\)", words):
        return labels.get(among[1]) in among[2].split(",")
    key, equals, value = words.partition("=")
    return labels.get(key) == value if equals else key in labels


FIELDS = (
    "status.phase", "spec.nodeName", "metadata.name", "reason", "type", "involvedObject.name", "involvedObject.kind",
)  # fmt: skip


def _has_field(item: Object, words: str) -> bool:
    found = re.fullmatch(r"([A-Za-z.]+)(!=|==?)(.*)", words)
    if found is None or found[1] not in FIELDS:
        raise Failure(400, "BadRequest", f"field label not supported: {words}")
    value: Any = item
    for key in found[1].split("."):
        value = value.get(key, "") if isinstance(value, dict) else ""
    return bool(value == found[3]) != (found[2] == "!=")


def log_bytes(lines: list[tuple[str, bytes]], query: dict[str, str]) -> bytes:
    if tail := query.get("tailLines"):
        lines = lines[-int(tail) :] if int(tail) else []
    if since := moment(query.get("sinceTime")):
        lines = [line for line in lines if (at := moment(line[0])) is not None and at >= since]
    timed = query.get("timestamps") == "true"
    data = b"".join((at.encode() + b" " if timed else b"") + text for at, text in lines)
    return data[: int(query["limitBytes"])] if "limitBytes" in query else data
