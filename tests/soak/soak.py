"""One soak from its folder to its result.

Never: a process left behind, however it ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.soak.drive import Driver
from tests.soak.figures import figures, table
from tests.soak.ground import Ground
from tests.soak.promises import Evidence, broken
from tests.soak.schedule import JOB, Act


class Result(NamedTuple):
    """parts: the table, part by part. broken: every promise that did not hold, in words."""

    parts: dict[str, dict[str, object]]
    broken: tuple[str, ...]

    def __str__(self) -> str:
        return table(self.parts)


def soak(ground: Ground, acts: Sequence[Act], seed: int) -> tuple[Result, Evidence]:
    """Run a schedule on an open ground; the agent is killed before anything is judged."""
    driver = Driver(ground, seed)
    driver.run(acts)
    while agent := ground.agent():
        agent.kill()
        agent.wait()
    evidence = evidence_of(ground, driver)
    return result_of(ground, driver, evidence), evidence


def evidence_of(ground: Ground, driver: Driver) -> Evidence:
    """What there is to judge by. kept: without the local cluster's own files, which hold commands as they are."""
    state = ground.home / "state"
    kept = [file for file in state.rglob("*") if file.is_file() and (state / "local") not in file.parents]
    return Evidence(
        store=ground.app.store,
        delegated=driver.delegated,
        stopped=frozenset(driver.stopped),
        jobs=ground.on_clusters(),
        told=ground.told(),
        kept=[*kept, ground.log],
        alive=frozenset(told.name for _, told in ground.programs()),
        said_alive=ground.said_alive(),
    )


def result_of(ground: Ground, driver: Driver, evidence: Evidence) -> Result:
    """The table and the verdict."""
    runs = evidence.runs()
    faults = broken(evidence)
    where = {one.run: one.cluster for one in driver.delegated}
    ends = Counter(f"{job.state} on {where.get(run, job.cluster)}" for run, job in runs.items())
    database = ground.home / "state" / "watchkeeper.db"
    errors = Counter(
        re.findall(r"^(\w[\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)$", _log(ground), re.MULTILINE)
    )
    parts: dict[str, dict[str, object]] = {
        f"{len(runs)} runs, {len(evidence.jobs)} cluster jobs, {driver.seconds:.0f} s": dict(
            sorted(ends.items())
        ),
        "what was done": {what: times for what, times in sorted(driver.done.items()) if what != JOB},
        "what must hold": {name: "broken" if found else "holds" for name, found in faults.items()},
        "figures": dict(figures(driver.lives, len(runs), database.stat().st_size)),
        "errors in the agent's log": {text[:100]: times for text, times in errors.most_common(8)},
    }
    told = [f"{name}: {fault}" for name, found in faults.items() for fault in found]
    return Result({title: lines for title, lines in parts.items() if lines}, (*driver.broken, *told))


def _log(ground: Ground) -> str:
    files = [ground.log, ground.home / "state" / "resident.log"]
    return "\n".join(Path(file).read_text(errors="replace") for file in files if file.exists())
