"""The rows about what a run left behind: how much, where, what is newest, and what is not its own (F1, F2, F4).

Never: give a file that stood there before the run as its result.
"""

from __future__ import annotations

from states.job import Job
from states.observation import Artifact
from states.words.rows import ITEMS_MAX, tell, workspace_of
from states.words.wording import PATH_CHARS_MAX, plain, size, when


def artifact_rows(job: Job) -> list[str]:
    """The files it left, declared ones first and the newest before the older, with sizes (F1, F2)."""
    found = job.collected.artifacts
    workspace = workspace_of(job)
    if not found:
        return [tell(job, "no_artifacts" if job.collected.looked else "not_looked", workspace=workspace)]
    newest = max(found, key=lambda artifact: artifact.modified_at)
    by_age = sorted(found, key=lambda artifact: artifact.modified_at, reverse=True)
    shown = sorted(by_age, key=lambda artifact: not artifact.declared)[:ITEMS_MAX]
    total = size(sum(artifact.size_bytes for artifact in found))
    left_out = len(found) - len(shown)
    return [
        tell(job, "artifacts", count=str(len(found)), size=total, workspace=workspace, newest=_path(newest)),
        *(_artifact_row(job, each) for each in shown),
        f"  {tell(job, 'more', count=str(left_out))}" if left_out else "",
    ]


def _artifact_row(job: Job, artifact: Artifact) -> str:
    """One file; what was last written before this run was delegated is none of its doing, and is said so (F4)."""
    told = f"  {_path(artifact)}  {size(artifact.size_bytes)}  {when(artifact.modified_at)}"
    return told + (f"  {tell(job, 'older')}" if artifact.modified_at < job.created_at else "")


def _path(artifact: Artifact) -> str:
    return plain(artifact.path, PATH_CHARS_MAX)
