"""The preflight check of the request itself: what the command and the scripts it starts would do (A5, B4, C11, C12).

One row: the worst finding decides its level, and all that count stand in its evidence with their places. Where the
workspace cannot be seen from here, what was not checked is said.

Never: run the command; copy the value of a credential; ask about what is only a warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent.lint import lint_text, scene, shell_text
from agent.ports import Ports
from states.credentials import find_credentials, is_secret
from states.job import Check, CheckLevel, Job
from states.lint.finding import ORDER, Finding
from states.lint.lint import Source
from states.lint.scene import Report

SAID_MAX = 8
"""Findings that the row spells out; the rest is counted."""

RULES = {
    "package_install": "C12",
    "credential": "B4",
    "runtime_download": "D1",
    "missing_path": "D1",
    "intermediates_kept": "D6",
}


def lint_check(job: Job, ports: Ports) -> Check:
    """The row `request`. refuse: an install, a credential or a broken command. ask: question `command`. A job that
    only installs on purpose (a preparation run) is let through; one that is already there is not judged."""
    if job.request.existing is not None:
        return Check(name="request", level="fine", evidence="the job is there already", rule="A10")
    report = _report(job)
    findings = sorted((*_in_fields(job), *report.findings), key=lambda finding: ORDER[finding.level])
    blind = " ".join(f"Could not check: {words}." for words in report.unread)
    counted = [finding for finding in findings if finding.level != "note"]
    if not findings:
        return Check(
            name="request",
            level="could_not" if blind else "fine",
            evidence=blind or "the command and what it starts were read: nothing to say",
            rule="C11",
        )
    worst = findings[0]
    level: CheckLevel = worst.level
    said = f"{_words(counted or findings)} {blind}".strip()
    told = level == "warn" or (level == "note" and any(f.kind == "intermediates_kept" for f in findings))
    return Check(
        name="request",
        level=level,
        evidence=said,
        facts={"note": f"request: {said}"} if told else {},  # C11, D6: it stands in the report of the submit
        mend=" ".join(dict.fromkeys(f.mend for f in findings if f.level == worst.level and f.mend)),
        rule=RULES.get(worst.kind, "C11"),
        question="command" if level == "ask" else "",
    )


def _report(job: Job) -> Report:
    spec = job.spec
    workspace = Path(spec.workspace) if spec.workspace else None
    visible = workspace is not None and workspace.is_dir()
    about = scene(
        gpu=spec.gpu,
        replicas=spec.replicas,
        workspace=[path for path in (spec.workspace, *map(_target, spec.mounts)) if path],
        image=spec.image,
        cluster=job.cluster,
        staging=bool(job.parent) and job.request.purpose.startswith("environment of "),
        env=spec.env,
    )
    return lint_text(Source("command", shell_text(spec.command)), about, workspace if visible else None)


def _target(mount: str) -> str:
    """Where a mount stands in the job: the last absolute path of `source:/target[:mode]`."""
    paths = [part for part in mount.replace("//", "/").split(":") if part.startswith("/")]
    return paths[-1] if paths else ""


def _in_fields(job: Job) -> Iterable[Finding]:
    """B4: a credential in the environment or the extra arguments; its value is not copied."""
    mend = "Take it out of the request; the cluster's own secret store or the job's files below your home hold it."
    for name, value in job.spec.env.items():
        if is_secret(name, value):
            yield Finding("credential", "refuse", 0, f"env has a credential in {name}", mend, "request")
    if find_credentials(" ".join(job.spec.extra_args)):
        yield Finding("credential", "refuse", 0, "extra_args has a credential", mend, "request")


def _words(findings: list[Finding]) -> str:
    said = [
        f"{finding.level} {finding.kind} at {finding.file}{f':{finding.line}' if finding.line else ''}: {finding.why}"
        for finding in findings[:SAID_MAX]
    ]
    more = f"; and {len(findings) - SAID_MAX} more" if len(findings) > SAID_MAX else ""
    return "; ".join(said) + more + "."
