"""The preflight check of the assets: what the run reads is in place, or a run that fetches it is prepared (RULES D1).

Never: fetch anything itself; copy what is on a cluster path; pass what could not be seen.
"""

from __future__ import annotations

from agent.ports import Ports
from agent.staging.assets import Measure, hub_env, look, plan
from states.job import Check, Job
from states.staging import assets_row


def assets(job: Job, ports: Ports, measure: Measure | None = None) -> Check:
    """D1: each stated asset is looked at; what is missing and can be fetched goes into a plan below the workspace,
    once. measure: asks a server for a size (None: no network is touched)."""
    found = look(job, measure if "stage" not in job.checks else None)
    missing = [one.asset for one in found if one.asset.can_be_fetched and one.place in ("absent", "partial")]
    facts = plan(job, missing) if "stage" not in job.checks else {}
    return assets_row(found, job, facts=facts, env=hub_env(job))
