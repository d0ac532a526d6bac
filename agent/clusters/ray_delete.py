"""Removing a job's record from Ray so that it stays removed, and knowing what was left when it did not.

Beside each job Ray keeps a monitor that looks once a second. It takes a record that is gone for one that is not over:
deleted before the monitor has seen the supervisor's death, the record is written anew, as FAILED because the
"supervisor actor died", without command, metadata or time of submit. So a fresh end is let settle, and what comes
back once more is removed once more (each monitor writes one such record at the most).

Never: remove what has not ended; take such a left-over for a job.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from agent.clusters.base import ClusterError, Refused
from agent.clusters.local_time import monotonic_s, pause
from agent.clusters.ray_http import Http
from agent.clusters.ray_logs import TERMINAL
from agent.clusters.ray_nodes import moment

JOBS = "/api/jobs/"
SUPERVISOR = "_ray_internal_job_actor_{}"
"""Ray's name of the actor that runs a job."""
SETTLE_S = 3.3
"""From the supervisor's death until its monitor has stopped: three rounds of 1 second (one takes in an answer from
before, one asks anew, one hears of the death), and a little."""
LOOK_AGAIN_S = 1.5
"""What comes back does so within a round."""
SUPERVISOR_S = 10.0
"""How long the end of a supervisor is waited for; it leaves within milliseconds of its last word."""
LOOK_S = 0.1
SETTLED = timedelta(minutes=2)
"""So long after a job's end nobody writes to its record any more."""
ROUNDS_MAX = 4


def is_left_over(record: Mapping[str, Any]) -> bool:
    """Whether Ray wrote the record after the job's own was gone: it tells an end, no code and no time of submit."""
    told = record.get("start_time") or record.get("driver_exit_code") is not None
    return record.get("status") == "FAILED" and not told


def remove(http: Http, record: Mapping[str, Any], now: datetime) -> None:
    """Remove the record; takes about 5 seconds after a fresh end. Raises Refused for a job that has not ended, or a
    record that comes back each time; Unreachable and Unclear as Http."""
    name = str(record["submission_id"])
    if record["status"] not in TERMINAL:
        raise Refused(f"job {name} is {record['status']} for Ray; stop it and wait", retryable=True)
    ended = moment(record.get("end_time"))
    if ended is not None and now - ended > SETTLED:
        _delete(http, name)
        return
    _let_settle(http, name)
    for _ in range(ROUNDS_MAX):
        _delete(http, name)
        pause(LOOK_AGAIN_S)
        if http.get(f"{JOBS}{name}").status == 404:
            return
    raise Refused(f"Ray wrote the record of {name} anew each time; delete it once more later", retryable=True)


def _delete(http: Http, name: str) -> None:
    answer = http.send("DELETE", f"{JOBS}{name}")
    if "non-terminal state None" in answer.text:  # it went between Ray's own two looks
        return
    if "non-terminal" in answer.text:
        raise Refused(f"job {name} has not ended; stop it and wait", retryable=True)
    if answer.status not in (200, 404):
        raise http.failure(answer)


def _let_settle(http: Http, name: str) -> None:
    """Until the supervisor is gone, as far as Ray tells, and its monitor has had the time to see it."""
    until = monotonic_s() + SUPERVISOR_S
    while _supervised(http, name) and monotonic_s() < until:
        pause(LOOK_S)
    pause(SETTLE_S)


def _supervised(http: Http, name: str) -> bool:
    """Whether the job's supervisor still lives; False where the state API does not tell."""
    wanted = {"filter_keys": "name", "filter_predicates": "=", "filter_values": SUPERVISOR.format(name)}
    try:
        found = http.get("/api/v0/actors", **wanted).json()["data"]["result"]["result"]
        return any(row["state"] != "DEAD" for row in found)
    except (ClusterError, KeyError, TypeError):
        return False
