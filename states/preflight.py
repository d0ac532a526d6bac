"""The gate before the submit, as pure judgement over what the checks found (RULES C, D).

A check is a row with evidence; this file says whether the rows let the run pass, what is missing, and what is
settled into the spec. Which checks exist is `CHECKS`; running one is `agent/perform/checks.py`.

Never: pass a check that could not run without saying so; settle a value that nobody gave.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from states.cost import dear, why_preview
from states.environments import OWN_FOLDER
from states.job import Check, Job
from states.spec import Request, Spec
from states.staging import SMOKE_CODE, install_line, prepared

CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "size": "C3 C4 C9: the figure that was fixed, or what the task says",
        "light": "C1: whether it is a light, quick step that needs no cluster",
        "request": "A5 C11: the request itself: credentials in it, what the command does",
        "workspace": "C11: the workspace is there and can be written",
        "credentials": "B1: what the cluster needs to act as this person",
        "group": "B2 B3: whom the run is billed to",
        "image": "C5: a known-good image",
        "environment": "C6: a working environment",
        "packages": "D2: the staged package set is whole",
        "network": "C7: the recorded proxy, if there is one",
        "assets": "D1: what the run reads is in place",
        "lane": "C8: what a preemption would cost",
        "capacity": "C2 C3 C4: whether the figure fits now",
        "preview": "C13: the cluster's own word on a dear or uncertain spec, once all else is settled",
    }
)
"""Every check and the rule it stands for, in the order of the report."""


LATER = frozenset({"preview"})
"""Checks that look at the settled spec, so they come when all others have answered."""


def refusals(job: Job) -> list[Check]:
    """Findings that end the run unsubmitted (B3, B4, C12)."""
    return [check for check in job.checks.values() if check.level == "refuse"]


def unanswered(job: Job) -> list[Check]:
    """Findings that need an answer and have none yet."""
    return [c for c in job.checks.values() if c.level == "ask" and c.name not in job.overridden]


def is_settled(job: Job) -> bool:
    """All checks answered, nothing refused, nothing left to ask, no child run under way."""
    waits = any(":" not in purpose for purpose in job.children.values())
    return not job.checks_open and not refusals(job) and not unanswered(job) and not waits


def needs_preview(job: Job) -> bool:
    """The spec looks dear or uncertain and was not previewed yet (C13). Runs made on the way never are."""
    due = "preview" in job.checks_later and "preview" not in job.checks
    return due and not job.parent and "preview" not in job.overridden and bool(why_preview(job))


def needs_smoke(job: Job) -> bool:
    """The request names a smoke command, or the run is dear and its imports are known, and no smoke run has passed
    yet (D4)."""
    wanted = bool(job.request.smoke) or (bool(imports_to_prove(job)) and bool(dear(job)) and not job.parent)
    passed = "smoke" in job.overridden or ("smoke" in job.checks and job.checks["smoke"].level == "fine")
    return wanted and not passed


def imports_to_prove(job: Job) -> str:
    """Modules that the script imports and its environment must bring, as words of a command; "" if not known."""
    row = job.checks.get("environment")
    return row.facts.get("imports", "") if row is not None else ""


def smoke_command(job: Job) -> tuple[str, ...]:
    """Import what the script imports, then do the request's own step; the first failure ends it."""
    names, step = imports_to_prove(job), job.request.smoke
    if not names:
        return step
    proof = f'"$(command -v python || command -v python3)" -c {shlex.quote(SMOKE_CODE)} {names}'
    return ("bash", "-c", f"set -e\n{proof}\n{shlex.join(step)}".rstrip())


def without_smoke(job: Job) -> str:
    """Why a dear run goes out without a smoke run (D4), for the report; "" for a cheap or a proved one."""
    why = dear(job)
    proved = any(purpose == "smoke:passed" for purpose in job.children.values())
    if not why or proved or job.parent:
        return ""
    if "smoke" in job.overridden:
        return f"no smoke run proved its set-up: it failed, and was waived ({why})"
    lacks = "the request names no `smoke:` command, and what its script imports is not known"
    return f"no smoke run proved its set-up: {lacks} ({why})"


def settled_spec(spec: Spec, check: Check) -> Spec:
    """The spec with what the check found (an image of the library, a recorded proxy)."""
    return with_values(spec, check.found)


def with_values(spec: Spec, values: Mapping[str, Any]) -> Spec:
    """The spec with these fields set; validated. Mounts and variables are added to, never replaced."""
    if not values:
        return spec
    changed = dict(values)
    if "mounts" in changed:
        added = (changed["mounts"],) if isinstance(changed["mounts"], str) else tuple(changed["mounts"])
        changed["mounts"] = (*spec.mounts, *(mount for mount in added if mount not in spec.mounts))
    if "env" in changed:
        changed["env"] = {**spec.env, **changed["env"]}
    return Spec.model_validate({**spec.model_dump(), **changed})


def smoke_request(job: Job) -> Request:
    """The cheap check in the same image and environment: one replica, at most one GPU, no restart."""
    return Request(
        command=smoke_command(job),
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
    """A complete environment in the workspace, built in the target image (C6 default), offline from a whole set of
    staged wheels when there is one. The lock is written beside it, and the image that it is for. It never touches the
    image's own environment (D3)."""
    folder = environment_folder(job)
    rows = (job.checks[name].facts for name in ("environment", "packages") if name in job.checks)
    facts = {name: value for row in rows for name, value in row.items() if value}
    image = f"printf '%s\\n' {shlex.quote(job.spec.image)} > {folder}/image" if job.spec.image else "true"
    made = f"python3 -m venv {folder} && {install_line(folder, facts)} && {image}"
    # Half an environment is a large throwaway, and would look like a whole one (F7).
    steps = f"{made} || {{ code=$?; rm -rf {folder}; exit $code; }}"
    return prepared(job, ("bash", "-c", steps), purpose=f"environment of {job.id}")


def environment_folder(job: Job) -> str:
    """Where a built environment of this run lives, below the workspace."""
    return f"{OWN_FOLDER}/{job.id}"


def built_environment(job: Job) -> str:
    """The same as the run is given it: absolute, since clusters start their jobs in different folders."""
    return posixpath.join(job.spec.workspace, environment_folder(job))
