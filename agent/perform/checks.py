"""The preflight checks: each looks at one thing and answers with a row of the report.

A check settles what it can (the library's image, a recorded proxy), asks for what only the person knows, and says
aloud when it could not look. Which row ends, asks or passes is judged in `states/preflight.py`.

Never: pull, probe or guess an image (C5, D5); show a credential or the list of groups (B3, B4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from agent.asked import AskedEffect
from agent.clusters.base import ClusterError
from agent.leases import Lease
from agent.ports import Ports
from agent.secrets import Secrets, advice
from states.credentials import MalformedGroups, find_pair, groups
from states.effects import RunCheck
from states.events import CheckFinished
from states.job import Check, CheckLevel, Job
from states.kinds_of_work import in_words, kind_of

CheckFunction = Callable[[Job, Ports], Check]

GROUP_KEY = "BRAINPP_CHARGED_GROUP"


def run_check(effect: RunCheck, asked: AskedEffect, job: Job, ports: Ports, lease: Lease) -> CheckFinished:
    """Run one check by name; one that is not known or that fails says so and is not passed in silence."""
    function = ports.checks.get(effect.name)
    if function is None:
        check = _row(effect.name, "could_not", "this Watchkeeper has no such check")
    else:
        try:
            check = function(job, ports)
        except ClusterError as error:
            check = _row(effect.name, "could_not", f"the cluster could not be asked: {error}")
        except OSError as error:
            check = _row(effect.name, "could_not", f"{type(error).__name__}: {error}")
    clean = check.model_copy(
        update={"evidence": ports.redact(check.evidence), "mend": ports.redact(check.mend)}
    )
    return CheckFinished(at=ports.clock.now(), check=clean)


def checks(secrets: Secrets) -> Mapping[str, CheckFunction]:
    """The checks of what surrounds the run, by the names of `states.preflight.CHECKS`."""
    return {
        "workspace": workspace,
        "credentials": lambda job, ports: credentials(job, secrets),
        "group": lambda job, ports: group(job, secrets),
        "image": image,
        "network": network,
    }


def workspace(job: Job, ports: Ports) -> Check:
    """C11: the folder that the job reads and writes is there."""
    path = Path(job.spec.workspace)
    if path.is_dir():
        return _row("workspace", "fine", f"{path} is there", rule="C11")
    if job.cluster != "local" and not path.parent.exists():
        return _row("workspace", "could_not", f"{path} cannot be seen from here", rule="C11")
    mend = "Create it, or name another with `workspace:`."
    return _row("workspace", "ask", f"{path} is not there.", mend=mend, rule="C11", question="assets")


def credentials(job: Job, secrets: Secrets) -> Check:
    """B1: what this cluster needs to act as the person; a missing one is walked through, never asked for in chat."""
    wanted = [name for name in job.capabilities.needs_credentials if name != GROUP_KEY]
    missing = [name for name in wanted if not secrets.get(name)]
    if not missing:
        said = f"{', '.join(wanted)} set" if wanted else "this cluster needs none"
        return _row("credentials", "fine", said, rule="B1")
    return _row(
        "credentials",
        "ask",
        f"not set: {', '.join(missing)}.",
        mend=" ".join(advice(name) for name in missing),
        rule="B1",
        question="credentials",
    )


def group(job: Job, secrets: Secrets) -> Check:
    """B2, B3: whom the run is billed to. A group that is not configured is refused; the list is never shown."""
    if not job.capabilities.needs_group:
        return _row("group", "fine", "this cluster bills nobody", rule="B2")
    value = secrets.get(GROUP_KEY)
    if not value:
        return _row(
            "group",
            "ask",
            f"not set: {GROUP_KEY} (namespace:group pairs in one value, comma-separated, the default first).",
            mend=advice(GROUP_KEY),
            rule="B2",
            question="credentials",
        )
    try:
        pairs = groups(value)
    except MalformedGroups as error:
        return _row("group", "ask", str(error), mend=advice(GROUP_KEY), rule="B2", question="credentials")
    named = job.request.group
    if named is None:
        return _row("group", "fine", "the default pair is used", rule="B3")
    if find_pair(pairs, named) is None:
        mend = f"Leave `group` out to use the default pair, or add the pair to {GROUP_KEY}."
        return _row(
            "group",
            "refuse",
            f"the group {named!r} is not one of your configured pairs",
            mend=mend,
            rule="B3",
        )
    return _row("group", "fine", f"{named}, with its own namespace", rule="B3")


def image(job: Job, ports: Ports) -> Check:
    """C5: the one handed, else the library's, else a question."""
    if not job.capabilities.needs_image:
        return _row("image", "fine", "this cluster runs without one", rule="C5")
    if job.spec.image:
        ordered = next((words for words in job.by_order if words.startswith("image ")), "")
        return _row("image", "fine", ordered or f"{job.spec.image}, as handed", rule="C5")
    return from_library(job, ports, "image", "C5") or _row(
        "image",
        "ask",
        "None was given, and the library has none for this kind of work.",
        rule="C5",
        question="image",
    )


def network(job: Job, ports: Ports) -> Check:
    """C7: a recorded proxy is applied; none is no reason to stop."""
    if job.spec.proxy:
        return _row("network", "fine", "the proxy that was handed", rule="C7")
    return from_library(job, ports, "proxy", "C7", row="network") or _row(
        "network", "fine", "no proxy is on record; the cluster's own network is used", rule="C7"
    )


def from_library(job: Job, ports: Ports, field: str, rule: str, *, row: str = "") -> Check | None:
    """The fit of the library, said with the reason for the match (H2)."""
    if ports.library is None:
        return None
    kind = kind_of(job.request, job.spec.workspace)
    entry = ports.library.best(kind, field)
    if entry is None:
        return None
    others = f"; other options on record: {entry.others}" if entry.others else ""
    said = f"{entry.value} from the library ({entry.why}; {in_words(job.request, kind)}{others})"
    return _row(
        row or field, "fine", said, rule=rule, found={field: entry.value}, facts={"note": f"{field}: {said}"}
    )


def _row(
    name: str,
    level: CheckLevel,
    evidence: str,
    *,
    mend: str = "",
    rule: str = "",
    question: str = "",
    found: dict[str, str] | None = None,
    facts: dict[str, str] | None = None,
) -> Check:
    return Check(
        name=name,
        level=level,
        evidence=evidence,
        mend=mend,
        rule=rule,
        question=question,
        found=found or {},
        facts=facts or {},
    )
