"""The reports of a run, kept beside its results: `<workspace>/.watchkeeper/reports/<run>/report.md` and `.json`.

Written in one step each, and only when they change; every text goes through the redactor. A workspace that is not
there, or cannot be written, is no failure of the run.

Never: make a workspace; let half a report be read; a credential in a file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from states import reports
from states.job import Job

FOLDER = ".watchkeeper"
MESSAGES_MAX = 300
"""Of a run with more, the first and the newest are kept."""

Message = Mapping[str, Any]


def keep(job: Job, messages: Sequence[Message], redact: Callable[[str], str]) -> None:
    """Bring both files up to date. Does nothing without a workspace; raises OSError if it cannot be written."""
    workspace = Path(job.spec.workspace)
    if not job.spec.workspace or not workspace.is_dir():
        return
    folder = workspace / FOLDER / "reports" / job.id
    folder.mkdir(parents=True, exist_ok=True)
    if not (ignored := workspace / FOLDER / ".gitignore").exists():
        _put(ignored, "*\n")
    shown = messages if len(messages) <= MESSAGES_MAX else (messages[0], *messages[1 - MESSAGES_MAX :])
    _put(folder / "report.md", redact(as_markdown(job, shown)))
    told = _redacted(as_data(job, shown), redact)
    _put(folder / "report.json", json.dumps(told, ensure_ascii=False, indent=1) + "\n")


def as_markdown(job: Job, messages: Sequence[Message]) -> str:
    """A heading, what became of it, and every report and question in the order they came, as they were worded."""
    parts = [f"# {job.id}\n", f"{reports.outcome_line(job)}\n"]
    for message in messages:
        mark = " **!**" if message["must_not_miss"] else ""
        text = message["text"].rstrip("\n")
        fence = "`" * max(3, *(len(run) + 1 for run in [*re.findall(r"`+", text), ""]))
        parts.append(f"## {message['at'].isoformat(timespec='seconds')} {message['stage']}{mark}\n")
        parts.append(f"{fence}text\n{text}\n{fence}\n")
    return "\n".join(parts)


def as_data(job: Job, messages: Sequence[Message]) -> dict[str, Any]:
    """The same for a program, with the outcome, the cause, the set-up and the artifacts as fields."""
    spec = job.spec.model_dump(mode="json", exclude={"env"})
    attempt = job.attempts[-1] if job.attempts else None
    return {
        "run": job.id,
        "state": str(job.state),
        "outcome": job.outcome,
        "cause": job.diagnosis.cause,
        "evidence": [quote.model_dump() for quote in job.diagnosis.evidence],
        "next": reports.next_action(job),
        "job": {"name": attempt.name, "cluster_job_id": attempt.cluster_job_id} if attempt else None,
        "attempts": len(job.attempts),
        "cluster": job.cluster,
        "purpose": job.request.purpose,
        "created_at": job.created_at.isoformat(),
        "spec": spec,
        "env": sorted(job.spec.env),
        "artifacts": [artifact.model_dump(mode="json") for artifact in job.collected.artifacts],
        "missing": list(job.collected.missing),
        "notes": list(job.notes),
        "messages": [
            {name: message[name] for name in ("id", "kind", "stage", "text", "must_not_miss")}
            | {"at": message["at"].isoformat()}
            for message in messages
        ],
    }


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: _redacted(item, redact) for name, item in value.items()}
    return [_redacted(item, redact) for item in value] if isinstance(value, list) else value


def _put(path: Path, text: str) -> None:
    """Write in one step, unless it stands there already."""
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
