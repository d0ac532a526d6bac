"""What the library gave was a hint: what became of it, for the report and for the library (RULES F5, H3).

Never: call a hint wrong without a cause that names it; mark what the person handed over themselves.
"""

from __future__ import annotations

from states.actions.change import purpose_of
from states.effects import Remember
from states.job import Job
from states.outcome import failure_cause

FIELDS = ("image", "environment", "proxy")

WRONG_BY: dict[str, tuple[str, ...]] = {
    "image": ("image.not_found", "image.auth", "image.incompatible"),
    "environment": ("env.missing_module", "env.abi"),
    "proxy": ("network.proxy",),
}
"""Causes that say that the value itself is no good; a registry or a network that was away says nothing."""


def remembered(job: Job) -> dict[str, str]:
    """The values that the checks took from the library and that the run uses."""
    found = {field: value for check in job.checks.values() for field, value in check.found.items()}
    return {
        field: found[field]
        for field in FIELDS
        if found.get(field) and found[field] == getattr(job.spec, field)
    }


def turned_out_wrong(job: Job) -> dict[str, str]:
    """{field: value} of the hints that the run's cause says are no good."""
    cause = failure_cause(job)
    return {field: value for field, value in remembered(job).items() if cause in WRONG_BY[field]}


def is_doubted(job: Job, field: str) -> bool:
    """A run that succeeded without the network did not show that its proxy works (C7, E10)."""
    return field == "proxy" and any(question.kind == "network" for question in job.questions)


def admitted(job: Job, wrong: dict[str, str], why: str) -> tuple[Job, tuple[Remember, ...]]:
    """The job with a note for its report, and the marks for the library; as it was if nothing is wrong."""
    for field, value in wrong.items():
        job = job.with_note(
            f"the remembered {field} {value} turned out wrong ({why}): it is marked stale in the library and counts "
            "as missing from now on"
        )
    marks = [
        Remember(what="stale", purpose=purpose_of(job), values={f: v}, note=why) for f, v in wrong.items()
    ]
    return job, tuple(marks)


def evidence_words(job: Job) -> str:
    """The cause and its first line of evidence."""
    found = job.diagnosis
    quote = found.evidence[0].text if found.evidence and found.cause == failure_cause(job) else ""
    said = quote or (job.end.reason if job.end else "")
    return ": ".join(part for part in (failure_cause(job), said[:160]) if part)
