"""How a Kubernetes object is read: nested fields, conditions, times, quantities, the pods of a Job in order.

Objects are the plain dicts that the API server sends; every field may be missing.

Never: fail on a field that is missing, null or of an unexpected shape; change an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Object = Mapping[str, Any]

INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAME = "batch.kubernetes.io/job-name"
OLD_JOB_NAME = "job-name"

FACTORS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkKMGTPE]?i?)")


def field(found: object, *path: str) -> Any:
    """The value at this path, or None as soon as a part of it is missing or no mapping."""
    for key in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def text(found: object, *path: str) -> str:
    """The text at this path, "" when it is missing."""
    value = field(found, *path)
    return "" if value is None else str(value)


def count(found: object, *path: str) -> int:
    """The whole number at this path, 0 when it is missing or none."""
    value = field(found, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def items(found: object, *path: str) -> Sequence[Object]:
    """The list of objects at this path, without what is no object."""
    value = field(found, *path)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def name_of(found: object) -> str:
    return text(found, "metadata", "name")


def labels_of(found: object) -> Mapping[str, Any]:
    value = field(found, "metadata", "labels")
    return value if isinstance(value, Mapping) else {}


def annotation(found: object, key: str) -> str:
    return text(found, "metadata", "annotations", key)


def condition(found: object, kind: str, status: str = "True") -> Object | None:
    """The condition of this type, if it has this status."""
    for one in items(found, "status", "conditions"):
        if one.get("type") == kind and one.get("status") == status:
            return one
    return None


def moment(value: object) -> datetime | None:
    """An RFC 3339 time, aware and in UTC; None for what is none. YAML may have read it already."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value))
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def quantity(value: object) -> float | None:
    """A quantity (`1500m`, `64`, `512Gi`, `1e3`) as a plain number; None for what is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = _QUANTITY.fullmatch(str(value)) if value is not None else None
    if found is None or found[2] not in FACTORS:
        return None
    try:
        return float(found[1]) * FACTORS[found[2]]
    except ValueError:
        return None


def job_of(pod: object) -> str:
    """The name of the Job that a pod belongs to, "" for none."""
    for owner in items(pod, "metadata", "ownerReferences"):
        if owner.get("kind") == "Job":
            return text(owner, "name")
    labels = labels_of(pod)
    return str(labels.get(JOB_NAME) or labels.get(OLD_JOB_NAME) or "")


def index_of(pod: object) -> str:
    """The completion index of a pod of an Indexed Job, "" for another."""
    return annotation(pod, INDEX) or str(labels_of(pod).get(INDEX) or "")


def by_index(pods: Iterable[Object], parallelism: int = 1) -> list[list[Object]]:
    """The pods of a Job by the place they take, each with the newest last (a retry makes a new pod).

    Without an index each of the newest `parallelism` pods has a place, and the older ones came before the first.
    """
    ordered = sorted(pods, key=lambda pod: (text(pod, "metadata", "creationTimestamp"), name_of(pod)))
    places: dict[str, list[Object]] = {}
    for pod in ordered:
        places.setdefault(index_of(pod), []).append(pod)
    plain = places.pop("", [])
    indexed = [places[index] for index in sorted(places, key=lambda index: (len(index), index))]
    if not plain:
        return indexed
    cut = max(0, len(plain) - max(parallelism, 1))
    return [*indexed, plain[: cut + 1], *([pod] for pod in plain[cut + 1 :])]


def main_container(pod: object) -> Object:
    """The status of the container that is the work: `main`, else the first; {} when none is told yet."""
    statuses = items(pod, "status", "containerStatuses")
    named = [status for status in statuses if status.get("name") == "main"]
    return (named or [*statuses, {}])[0]


def runs(pod: object) -> bool:
    """Whether the work's container runs, by its node's last word; of a pod without containers its phase counts."""
    state = field(main_container(pod), "state")
    return field(state, "running") is not None if state else text(pod, "status", "phase") == "Running"


def terminated(pod: object) -> Object | None:
    """How the work's container ended; where it does not tell, how another one failed."""
    for status in (main_container(pod), *items(pod, "status", "containerStatuses")):
        end = field(status, "state", "terminated")
        if isinstance(end, Mapping):
            return end
    for status in items(pod, "status", "initContainerStatuses"):
        end = field(status, "state", "terminated")
        if isinstance(end, Mapping) and end.get("exitCode"):
            return end
    return None


def started(pod: object) -> datetime | None:
    """When the work's container first ran, as far as the pod tells."""
    status = main_container(pod)
    found = [
        moment(field(status, state, kind, "startedAt"))
        for state in ("state", "lastState")
        for kind in ("running", "terminated")
    ]
    real = [when for when in found if when is not None and when.year > 1970]
    return min(real, default=None)
