"""Is this machine set up for a Ray cluster? One row a thing, each with how to mend it.

Never: create, change or stop anything; show a token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

from agent.clusters.base import ClusterError, Refused, Unclear
from agent.clusters.ray_http import Http
from agent.clusters.ray_nodes import Node

CLOCKS_APART_S = 120
OLDEST = (2, 10)
"""The first minor version whose job records and state API are known to have what is read here."""


class Finding(NamedTuple):
    """One row. level: fine, warn (works, with less), wrong. mend: what to do, "" when nothing is to be done."""

    name: str
    level: Literal["fine", "warn", "wrong"]
    said: str
    mend: str = ""


def examine(http: Http, nodes: Callable[[], Sequence[Node]], now: datetime) -> list[Finding]:
    """Dashboard and version, its clock, the Jobs API (a head without its store answers the first and not this), the
    nodes, whether the workspace is visible."""
    try:
        answer = http.get("/api/version")
        version = str(_field(answer.json(), "ray_version"))
    except Refused as error:
        return [Finding("dashboard", "wrong", str(error), "Set the key it names, then look again.")]
    except ClusterError as error:
        mend = "Check `address:`; on another machine forward the port: `ssh -L 8265:127.0.0.1:8265 HEAD`."
        return [Finding("dashboard", "wrong", str(error), mend)]
    rows = [_version(version), _clock(answer.date, now)]
    for name, look in (("jobs", lambda: http.get("/api/jobs/").json()), ("nodes", nodes)):
        try:
            found = look()
        except ClusterError as error:
            mend = "The dashboard answers and its store does not: look at the head's gcs_server log."
            return [*rows, Finding(name, "wrong", str(error), mend)]
        rows.append(_count(name, found))
    return [*rows, _workspace(http)]


def _field(answer: Any, name: str) -> Any:
    if not isinstance(answer, dict) or name not in answer:
        raise Unclear("what answers there is not Ray's dashboard")
    return answer[name]


def _version(version: str) -> Finding:
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < OLDEST:
        said = f"Ray {version} is older than {OLDEST[0]}.{OLDEST[1]}"
        return Finding(
            "dashboard", "warn", said, "Reasons and node facts may be missing; a newer Ray has them."
        )
    return Finding("dashboard", "fine", f"Ray {version}")


def _clock(date: str, now: datetime) -> Finding:
    try:
        ahead_s = (parsedate_to_datetime(date) - now).total_seconds()
    except (TypeError, ValueError):
        return Finding("clock", "fine", "the head does not tell its time")
    if abs(ahead_s) > CLOCKS_APART_S:
        said = f"the head's clock is {ahead_s:+.0f} s from this machine's"
        mend = "Set one of them right (NTP): a restart of the head is told by comparing times."
        return Finding("clock", "warn", said, mend)
    return Finding("clock", "fine", f"{ahead_s:+.0f} s from this machine's")


def _count(name: str, found: Any) -> Finding:
    if name == "jobs":
        return Finding(name, "fine", f"the Jobs API answers, {len(found)} records")
    alive = sum(node.alive for node in found)
    if not alive:
        return Finding(
            name, "wrong", "no node is alive", "Start one with `ray start`, or wait for the autoscaler."
        )
    return Finding(name, "fine", f"{alive} alive")


def _workspace(http: Http) -> Finding:
    if http.options.workspace_visible:
        return Finding("workspace", "fine", "is the same folder on the nodes, by the settings")
    mend = (
        "Set `workspace_visible: true` where the nodes see it: logs and exit records then outlive the head."
    )
    return Finding("workspace", "warn", "the nodes do not see it, by the settings", mend)
