"""The rows about what a run is meant to reach: what ends it early, what must be there, how far it has to go (E8).

Never: say whether a goal is met (`conditions` judges that).
"""

from __future__ import annotations

from states.conditions import goals_of
from states.job import Job
from states.words.rows import listed, ordered, row
from states.words.wording import number


def goal_rows(job: Job) -> list[str]:
    """What ends the run early, what must be there at the end, and how far it has to go (E8)."""
    ends = [g.condition.in_words(job.language) + ordered(job, g.by_order) for g in goals_of(job)]
    return [
        row(job, "goals", listed(job, ends, " | ")),
        row(job, "outputs", listed(job, job.request.outputs)),
        row(job, "total", number(job.request.steps_total) if job.request.steps_total else ""),
    ]
