"""The preflight checks about how much the run takes: size, lane, what is free now, and the cluster's own preview.

Each looks (at the command's scripts, at the cluster) and hands what it saw to the judgement in `states/sizing.py`.

Never: submit; call the cluster for a request that is refused already (B3); ask for a preview twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from agent.clusters.base import ClusterError, Refused, Submission
from agent.lint import scene, shell_text, tree_of
from agent.ports import CheckFunction, Ports
from states.cost import why_preview
from states.job import Check, Job
from states.lane import lane_row
from states.light import light_row
from states.lint.lint import Source
from states.lint.own_size import Said, read
from states.naming import attempt_name, fingerprint
from states.sizing import capacity_row, size_row

WORDS_MAX = 400
"""Characters of the cluster's words that the row holds."""

_MEMORY = re.compile(r"-Xmx|memory", re.IGNORECASE)


def figure_checks() -> Mapping[str, CheckFunction]:
    """The checks of this file and the pure ones beside them, by the names of `states.preflight.CHECKS`."""
    return {
        "size": size,
        "light": lambda job, ports: light_row(job),
        "lane": lambda job, ports: lane_row(job),
        "capacity": capacity,
        "preview": preview,
    }


def size(job: Job, ports: Ports) -> Check:
    """C3, C4, C9: the figure that was fixed, or what the command and its scripts say of their size."""
    free = job.request.gpu_free or job.request.gpu_min is not None
    text = shell_text(job.spec.command)
    if not free and not (job.request.memory_mib is None and _MEMORY.search(text)):
        return size_row(job, Said())
    workspace = Path(job.spec.workspace) if job.spec.workspace else None
    visible = workspace if workspace is not None and workspace.is_dir() else None
    about = scene(image=job.spec.image, cluster=job.cluster, env=job.spec.env)
    if visible is not None:
        about = about._replace(tree=tree_of(Source("command", text), about, visible))
    said, wanted = read(text, about)
    blind = "its scripts cannot be seen from here" if visible is None or wanted else ""
    return size_row(job, said, blind=blind)


def capacity(job: Job, ports: Ports) -> Check:
    """C2, C3, C4: what fits now in the group that is billed.

    A request that is refused (a group that is not configured) makes no cluster call at all (B3).
    """
    if any(check.level == "refuse" for check in job.checks.values()):
        return Check(
            name="capacity", level="note", evidence="not read, since the request is refused", rule="B3"
        )
    return capacity_row(job, ports.cluster_of(job).capacity(job.request.group))


def preview(job: Job, ports: Ports) -> Check:
    """C13: the cluster's own word on a dear or uncertain spec, before it is submitted for real. Its refusal is asked
    about now; what it says otherwise is told, not judged: it has said yes to what it then refused."""
    spec, cluster = job.spec, ports.cluster_of(job)
    name = attempt_name(job.id, len(job.attempts) + 1, spec)
    asked = Submission(name=name, fingerprint=fingerprint(spec), owner=job.owner, spec=spec)
    why = why_preview(job)
    try:
        words = " ".join(cluster.predict(asked).split())[:WORDS_MAX]
    except Refused as error:
        if error.retryable:
            return _preview("could_not", f"the cluster did not answer its preview ({why}): {error}")
        question = "image" if error.cause.startswith("image.") else "rejected"
        said = f"its preview was refused, so nothing was submitted ({why}): {error}"
        return _preview("ask", said).model_copy(update={"question": question})
    except ClusterError as error:
        return _preview("could_not", f"the cluster could not be asked for a preview ({why}): {error}")
    return _preview("note", f"previewed, since: {why}. The cluster says: {words}")


def _preview(level: str, evidence: str) -> Check:
    facts = {} if level == "ask" else {"note": f"preview: {evidence}"}
    return Check.model_validate(
        {"name": "preview", "level": level, "evidence": evidence, "rule": "C13", "facts": facts}
    )
