"""What a submission becomes on this machine: refused, or a job; and how that is told beforehand.

Never: take a request and do something else than it says without a word.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
from pathlib import Path

from agent.clusters import wrapper
from agent.clusters.base import Refused, Submission, refuse_odd_texts
from agent.clusters.local_machine import job_environment
from agent.clusters.local_records import Job
from agent.clusters.local_slots import Slots
from agent.clusters.local_time import now
from states.spec import Spec

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def workspace_of(spec: Spec) -> str:
    return os.path.abspath(os.path.expanduser(spec.workspace or "."))


def job_of(submission: Submission, job_id: str, total: Slots) -> Job:
    spec = submission.spec
    env = job_environment(spec, submission.name, total)
    return Job(
        id=job_id,
        name=submission.name,
        fingerprint=submission.fingerprint,
        owner=submission.owner,
        command=spec.command,
        env=env,
        env_names=tuple(sorted(env)),
        workspace=workspace_of(spec),
        slots=Slots(spec.cpu, spec.memory_mib, spec.gpu),
        lane=spec.lane,
        priority=spec.priority,
        submitted_at=now(),
        time_limit_s=spec.time_limit_s,
    )


def check(submission: Submission) -> None:
    """Refuse what this cluster cannot do as asked, rather than do something else."""
    spec = submission.spec
    if not SAFE_NAME.fullmatch(submission.name):
        raise Refused(
            f"{submission.name!r} cannot be a job's name here: letters, digits, `.`, `_` and `-` only"
        )
    if not spec.command:
        raise Refused("there is no command to run")
    refuse_odd_texts(spec)
    if any("=" in name or not name for name in spec.env):
        raise Refused("the name of a variable is empty or has an `=` in it")
    if spec.replicas != 1:
        raise Refused("local has one node; replicas must be 1", cause="scheduling.unsatisfiable")
    if platform.node() in spec.exclude_nodes:
        raise Refused("local has one node, and it is excluded", cause="scheduling.unsatisfiable")
    if spec.extra_args:
        raise Refused("local takes no extra arguments; leave `extra_args` out")
    if not os.path.isdir(workspace_of(spec)):
        raise Refused(f"the workspace {workspace_of(spec)} is not a folder; make it, or give another one")
    if spec.environment and not (Path(spec.environment).expanduser() / "bin").is_dir():
        raise Refused(f"{spec.environment} is no virtual or conda environment: it has no `bin` folder")


def note(spec: Spec) -> str:
    """What of the spec means nothing on this machine."""
    notes = []
    if spec.image:
        notes.append("local runs on this machine's own environment; the image is not used")
    if spec.mounts:
        notes.append("local sees this machine's own folders; nothing was mounted")
    if spec.group:
        notes.append("local has no groups")
    return "; ".join(notes)


def rendered(submission: Submission, total: Slots) -> str:
    """The command, its folder, slots and the names of its variables (values may be secrets)."""
    spec = submission.spec
    lines = [
        f"command    {shlex.join(spec.command)}",
        f"folder     {workspace_of(spec)}",
        f"record     {wrapper.run_dir(workspace_of(spec), submission.name)}",
        f"slots      {spec.cpu:g} CPU cores, {spec.memory_mib} MiB of memory, {spec.gpu} GPUs",
        f"queue      {spec.lane}, priority {spec.priority}",
        f"variables  {' '.join(sorted(job_environment(spec, submission.name, total)))}",
    ]
    if spec.time_limit_s is not None:
        lines.append(f"time limit {spec.time_limit_s:g} s")
    return "\n".join(lines)
