"""The gate before the submit, as pure judgement over what the checks found (RULES C, D).

A check is a row with evidence; this file says whether the rows let the run pass, what is missing, and what is
settled into the spec. Which checks exist is `CHECKS`; running one is `agent/perform/checks.py`.

Never: pass a check that could not run without saying so; settle a value that nobody gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from states.job import Check, Job
from states.spec import Request, Spec

CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "request": "A5 C11: the request itself: credentials in it, what the command does",
        "workspace": "C11: the workspace is there and can be written",
        "credentials": "B1: what the cluster needs to act as this person",
        "group": "B2 B3: whom the run is billed to",
        "image": "C5: a known-good image",
        "environment": "C6: a working environment",
        "network": "C7: the recorded proxy, if there is one",
        "assets": "D1: what the run reads is in place",
        "capacity": "C2: whether the figure fits now",
    }
)
"""Every check and the rule it stands for, in the order of the report."""


def refusals(job: Job) -> list[Check]:
    """Findings that end the run unsubmitted (B3, B4, C12)."""
    return [check for check in job.checks.values() if check.level == "refuse"]


def unanswered(job: Job) -> list[Check]:
    """Findings that need an answer and have none yet."""
    return [c for c in job.checks.values() if c.level == "ask" and c.name not in job.overridden]


def is_settled(job: Job) -> bool:
    """All checks answered, nothing refused, nothing left to ask, no child run under way."""
    waits = any(purpose in ("smoke", "build") for purpose in job.children.values())
    return not job.checks_open and not refusals(job) and not unanswered(job) and not waits


def needs_smoke(job: Job) -> bool:
    """The request names a smoke command and it has not passed yet (D4)."""
    passed = "smoke" in job.overridden or ("smoke" in job.checks and job.checks["smoke"].level == "fine")
    return bool(job.request.smoke) and not passed


def settled_spec(spec: Spec, check: Check) -> Spec:
    """The spec with what the check found (an image of the library, a recorded proxy)."""
    return with_values(spec, check.found)


def with_values(spec: Spec, values: Mapping[str, Any]) -> Spec:
    """The spec with these fields set; validated. Mounts are added to, never replaced."""
    if not values:
        return spec
    changed = dict(values)
    if "mounts" in changed:
        added = (changed["mounts"],) if isinstance(changed["mounts"], str) else tuple(changed["mounts"])
        changed["mounts"] = (*spec.mounts, *(mount for mount in added if mount not in spec.mounts))
    return Spec.model_validate({**spec.model_dump(), **changed})


def smoke_request(job: Job) -> Request:
    """The cheap check in the same image and environment: one replica, at most one GPU, no restart."""
    return Request(
        command=job.request.smoke,
        name=job.request.name,
        purpose=f"smoke run of {job.id}",
        cluster=job.cluster,
        image=job.spec.image or None,
        environment=job.spec.environment or None,
        proxy=job.spec.proxy or None,
        gpu=min(job.spec.gpu, 1),
        lane="normal",
        group=job.request.group,
        mounts=job.spec.mounts,
        env=job.spec.env,
        workspace=job.spec.workspace,
        max_restarts=0,
        insist=True,
    )


def build_request(job: Job) -> Request:
    """A complete environment in the workspace, built in the target image (C6 default), offline from staged
    wheels when there are any. It never touches the image's own environment (D3)."""
    folder = environment_folder(job)
    facts = job.checks["environment"].facts if "environment" in job.checks else {}
    source = f" -r {facts['requirements']}" if facts.get("requirements") else ""
    wheels = f" --no-index --find-links {facts['wheels']}" if facts.get("wheels") else ""
    install = f" && {folder}/bin/python -m pip install{wheels}{source}" if source else ""
    return Request(
        command=("bash", "-c", f"set -e; python3 -m venv {folder}{install}"),
        name=job.request.name,
        purpose=f"environment of {job.id}",
        cluster=job.cluster,
        image=job.spec.image or None,
        proxy=job.spec.proxy or None,
        group=job.request.group,
        mounts=job.spec.mounts,
        workspace=job.spec.workspace,
        max_restarts=0,
        insist=True,
    )


def environment_folder(job: Job) -> str:
    """Where a built environment of this run lives, below the workspace."""
    return f".watchkeeper/environments/{job.id}"
