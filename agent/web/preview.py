"""What stands against a request, before it is delegated: the lint of its command and of the scripts it starts.

Never: run the command, store anything, or ask a cluster.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from agent.lint import as_json, lint_text, scene, shell_text
from agent.service import Service, refuse_credentials
from states.lint.finding import Finding
from states.lint.lint import Source
from states.lint.scene import Report
from states.spec import Request


def findings(service: Service, asked: Request, workspace: str) -> Report:
    """The report on a request. Raises Refusal for a credential in it (B4) and for a cluster that is not there."""
    refuse_credentials(asked, service.ports.redact)
    cluster = service.cluster(asked.cluster)
    folder = Path(workspace)
    about = scene(
        gpu=None if asked.gpu_free else asked.gpu,
        replicas=asked.replicas,
        workspace=[workspace, *filter(None, map(_target, asked.mounts))],
        image=asked.image or "",
        cluster=cluster.kind,
        env=asked.env,
    )
    return lint_text(Source("command", shell_text(asked.command)), about, folder if folder.is_dir() else None)


def _target(mount: str) -> str:
    """Where a mount stands in the job: the last absolute path of `source:/target[:mode]`."""
    return next((part for part in reversed(mount.split(":")) if part.startswith("/")), "")


def finding_data(finding: Finding) -> dict[str, Any]:
    """A finding for a program."""
    return as_json(finding)


def mark_of(asked: Request) -> str:
    """A mark of what was looked at, so that what is delegated is what was shown."""
    return hashlib.sha256(asked.model_dump_json().encode()).hexdigest()[:16]
