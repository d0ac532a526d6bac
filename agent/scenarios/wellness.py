"""Was a job that was stopped well? Its script knows what it would have printed next.

Never: a look at what the agent believed of it.
"""

from __future__ import annotations

import re
from itertools import pairwise

from agent.clusters.scripted import ScriptedJob

MILESTONE = re.compile(r"\bstep (\d+)")
"""As stories print their steps."""

BEYOND = 2.0
"""A silence of more than so many of the longest gaps before is a hang, even if something came after it."""


def next_milestone_s(job: ScriptedJob) -> float | None:
    """How long after its stop the job would have made its next step, in time as it was used to.

    None where it was not stopped, would have made none, had fewer than three steps behind it (nobody knows its
    cadence) or a loss that is no number.
    """
    began, end = job.began_at(), job.own_end()
    if job.stopped_at is None or began is None:
        return None
    stopped_s = (job.stopped_at - began).total_seconds()
    start_s = (began - job.created_at).total_seconds()
    end_s = end.at_s - start_s if end is not None else float("inf")
    steps = [(at_s, int(found[1])) for at_s, text in job.script.log if (found := MILESTONE.search(text))]
    before = [(at_s, step) for at_s, step in steps if at_s <= stopped_s]
    if len(before) < 3 or any("nan" in text for at_s, text in job.script.log if at_s <= stopped_s):
        return None
    gaps_s = [later - sooner for (sooner, _), (later, _) in pairwise(before)]
    last_s, most = before[-1][0], max(step for _, step in before)
    ahead = (at_s for at_s, step in steps if stopped_s < at_s < end_s and step > most)
    next_s = next(ahead, None)
    if next_s is None or next_s - last_s > BEYOND * max(gaps_s):
        return None
    return next_s - stopped_s
