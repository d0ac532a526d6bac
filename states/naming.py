"""The attempt's name and the spec's fingerprint: the idempotency key of a cluster that has none (DESIGN 4.1).

Name = job id + attempt number + short fingerprint, at most 40 characters of `[a-z0-9-]`, starting with a
letter: the strictest of the clusters' own limits (RJOB 2, Kubernetes labels). A retry of the same call is the
same name; a new attempt is a new name.

Never: use the clock or randomness; two calls with the same input give the same name.
"""

from __future__ import annotations

import hashlib
import json
import re

from states.spec import Spec

NAME_CHARS_MAX = 40
FINGERPRINT_CHARS = 8
_ATTEMPT = re.compile(r"-a(\d+)-[0-9a-f]{8}$")


def fingerprint(spec: Spec) -> str:
    """Eight hex digits over everything in the spec. The order of fields and of `env` does not matter: a database
    may give an object's keys back in another order."""
    text = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_CHARS]


def attempt_name(job_id: str, attempt: int, spec: Spec) -> str:
    """`<job id>-a<attempt>-<fingerprint>`; a long job id loses its middle, never its unique end."""
    tail = f"-a{attempt}-{fingerprint(spec)}"
    return _cut(job_id, NAME_CHARS_MAX - len(tail)) + tail


def has_forerunners(name: str) -> bool:
    """True for the name of a second or later attempt (and for what somebody else named so)."""
    found = _ATTEMPT.search(name)
    return found is not None and int(found[1]) > 1


def job_id(name: str, serial: str) -> str:
    """A readable id for a run: the name it was given, made safe, and a short unique serial.

    serial: lower-case letters and digits, unique per delegation (the caller draws it).
    """
    safe = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"
    if not safe[0].isalpha():
        safe = "r" + safe
    return f"{safe[:16].rstrip('-')}-{serial}"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 7].rstrip("-") + "-" + text[-6:]
