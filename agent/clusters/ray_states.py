"""Ray's own words as an observation: status, message, error_type, driver_exit_code (PHASES 3). Pure functions.

Native words are a job's record as `GET /api/jobs/` tells it (`status`, `message`, `error_type`, `driver_exit_code`,
times in milliseconds, ...), and beside it, where they are known:

    request        resource -> amount that the entrypoint reserves (`CPU`, `GPU`, `memory` in bytes)
    nodes          the nodes alive, each resource -> amount; autoscales: more may come
    node           {name, alive} of the node where the entrypoint runs
    run            the wrapper's record; run_expected: there should be one; withdrawn: taken back before it began;
                   beat_s: seconds between two of its heartbeats
    time_limit_s   the limit that we put around the command
    missing        true for a job that the head does not know; head_younger: the head began after the submit
    now            the time of the look

Never: an outcome from a missing record; take FAILED for the program's failure when the program never ran.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from agent.clusters.ray_nodes import moment, too_large
from agent.clusters.wrapper import BEAT_S, REFUSED_CODE
from states.observation import Phase, Waiting

REASON_MAX = 300
NATIVE_MAX = 120
UNTOLD = timedelta(minutes=5)
"""After so long since its submit a job that Ray calls RUNNING runs, although no record says when it began."""
ENDED_UNSEEN = "Ray lost sight of it; its own record says how it ended"
LIVES_UNSEEN = "Ray lost sight of it, and it still runs: its heartbeat goes on"
BEATS = 4
"""A run whose heartbeat is older than so many intervals is taken for dead."""
TIMED_OUT_CODE = 124
"""What `timeout` ends with."""

ENTRYPOINT = re.compile(r"failed with exit code (-?\d+)")
RULES: tuple[tuple[str, str, Phase, str], ...] = (
    ("RUNTIME_ENV_SETUP_FAILURE", r"runtime_env setup failed", Phase.failed, ""),
    # No code ran and nothing is wrong with the request: as good as a node that was taken away before the start.
    ("JOB_SUPERVISOR_ACTOR_START_TIMEOUT", r"failed to start within", Phase.lost, "scheduling.capacity"),
    (
        "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
        r"could not be scheduled",
        Phase.failed,
        "scheduling.unsatisfiable",
    ),
    ("JOB_SUPERVISOR_ACTOR_DIED", r"supervisor actor died", Phase.lost, "node.lost"),
    ("", r"failed to get job supervisor", Phase.lost, "node.lost"),
    ("JOB_SUPERVISOR_ACTOR_START_FAILURE", r"Failed to start supervisor actor", Phase.failed, ""),
    ("JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE", r"Unexpected error occurred", Phase.lost, ""),
    ("JOB_ENTRYPOINT_COMMAND_START_ERROR", r"(?!)", Phase.failed, ""),
)
"""FAILED of a job whose program told no code: by message first, since older versions have no error_type, and one type
stands for two messages. (error_type, pattern of the message, phase, cause)"""

CAUSES: tuple[tuple[str, str], ...] = (
    # Not "OOM": Ray lists the out-of-memory killer among the guesses for any death.
    (r"running low on memory|OutOfMemoryError", "memory.host"),
    (r"No matching distribution|Could not find a version", "env.missing_module"),
    (r"is not a valid path", "mount.missing"),
    (r"Argument list too long", "command.bad_argument"),
    (r"No space left on device", "storage.full"),
    (r"Temporary failure in name resolution|Name or service not known", "network.dns"),
)
"""What Ray's words name, where the rule itself does not."""


def normalise(native: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an `Observation` (all but taken_at and twins) from one job's native words."""
    if native.get("missing"):
        return _unless_it_lives(native, _missing(native))
    status = str(native.get("status") or "")
    if native.get("withdrawn") and not native.get("run"):
        return {
            "phase": Phase.stopped,
            "native": f"{status}, withdrawn",
            "reason": "stopped before it began; Ray drops it from its queue when its turn comes",
            "ended_at": _time(native["withdrawn"]),
        }
    fields: dict[str, Any] = {
        "native": _native(native, status),
        "node": str((native.get("node") or {}).get("name", "")),
    }
    if status == "PENDING":
        return fields | _pending(native)
    fields |= {"started_at": _time(_run(native).get("started_at"))}
    if status == "RUNNING":
        return _unless_it_lives(native, fields | _running(native))
    if status not in ("SUCCEEDED", "FAILED", "STOPPED"):
        return fields | {"phase": Phase.unknown}
    return _unless_it_lives(native, fields | _ended(native, status))


def _unless_it_lives(native: Mapping[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """A head or a node that is gone says nothing of a program that outlived it: its own record and heartbeat do.
    To call it lost while it runs would have it run twice."""
    run, now = _run(native), _time(native.get("now"))
    if fields["phase"] not in (Phase.lost, Phase.gone) or not run:
        return fields
    known = {**fields, "cause": "", "started_at": _time(run.get("started_at"))}
    if (code := run.get("exit_code")) is not None:
        ended = {"phase": Phase.failed if code else Phase.succeeded, "ended_at": _time(run.get("ended_at"))}
        return {**known, "reason": ENDED_UNSEEN, **ended, "confirmed": True, **_exit(int(code), native)}
    beat = _time(run.get("heartbeat_at"))
    silence = timedelta(seconds=BEATS * float(native.get("beat_s") or BEAT_S))
    if beat is not None and now is not None and now - beat < silence:
        return {**known, "phase": Phase.running, "reason": LIVES_UNSEEN, "ended_at": None}
    return fields


def _missing(native: Mapping[str, Any]) -> dict[str, Any]:
    if native.get("head_younger"):
        reason = "the head was started anew after this job was submitted, and no longer knows it"
        return {"phase": Phase.lost, "native": "404", "reason": reason, "cause": "node.lost"}
    return {"phase": Phase.gone, "native": "404", "reason": "Ray has no record of this job"}


def _pending(native: Mapping[str, Any]) -> dict[str, Any]:
    """Ray says the same of "busy" and of "never"; the figures tell. Only when nothing else is waited for does the
    message tell that the environment is being built."""
    message = str(native.get("message") or "")
    if why := _never(native):
        return {"phase": Phase.pending, "waiting": Waiting.never, "reason": why, "node": ""}
    if why := _too_large(native):
        return {"phase": Phase.pending, "reason": f"{why}, and more may be added", "node": ""}
    building = "runtime environment" in message and "resources" not in message
    return {
        "phase": Phase.starting if building else Phase.pending,
        "reason": message[:REASON_MAX],
        "node": "",
    }


def _never(native: Mapping[str, Any]) -> str:
    """Why no node can ever take it; "" where one can, or where more may be added."""
    return "" if native.get("autoscales") else _too_large(native)


def _too_large(native: Mapping[str, Any]) -> str:
    return too_large(native.get("request") or {}, native.get("nodes") or ())


def _running(native: Mapping[str, Any]) -> dict[str, Any]:
    """RUNNING says that the entrypoint was started, of which the wrapper's record is the proof."""
    if (native.get("node") or {}).get("alive") is False:
        reason = "the node where it ran is dead, and Ray has not said what became of it"
        return {"phase": Phase.lost, "reason": reason, "cause": "node.lost"}
    run = _run(native)
    if run.get("ended_at"):
        return {"phase": Phase.running, "finishing": True}
    submitted, now = moment(native.get("start_time")), _time(native.get("now"))
    fresh = submitted is None or now is None or now - submitted < UNTOLD
    if native.get("run_expected") and not run and fresh:
        return {"phase": Phase.starting}
    return {"phase": Phase.running}


def _ended(native: Mapping[str, Any], status: str) -> dict[str, Any]:
    run = _run(native)
    told = {
        "ended_at": moment(native.get("end_time")) or _time(run.get("ended_at")),
        "confirmed": run.get("ended_at") is not None,
    }
    if status == "STOPPED":
        return told | {"phase": Phase.stopped, "reason": _reason(native)}
    if status == "SUCCEEDED":
        code = native.get("driver_exit_code")
        return told | {"phase": Phase.succeeded, "exit_code": 0 if code is None else code}
    return told | _failed(native)


def _failed(native: Mapping[str, Any]) -> dict[str, Any]:
    message = str(native.get("message") or "")
    code = native.get("driver_exit_code")
    if code is None and (found := ENTRYPOINT.search(message[:REASON_MAX])):
        code = int(found[1])
    if code is not None:
        return {"phase": Phase.failed, "reason": _reason(native), **_exit(int(code), native)}
    phase, cause = _rule(str(native.get("error_type") or ""), message)
    if cause == "scheduling.capacity" and _never(native):
        phase, cause = Phase.failed, "scheduling.unsatisfiable"
    if cause == "node.lost" and _cause(message) == "memory.host":
        phase, cause = Phase.failed, "memory.host"
    return {"phase": phase, "reason": _reason(native), "cause": cause or _cause(message)}


def _rule(error_type: str, message: str) -> tuple[Phase, str]:
    """By the message where one fits, else by the type; a FAILED that tells nothing is a failure."""
    for _, pattern, phase, cause in RULES:
        if re.search(pattern, message[:REASON_MAX]):
            return phase, cause
    for kind, _, phase, cause in RULES:
        if kind and kind == error_type:
            return phase, cause
    return Phase.failed, ""


def _exit(code: int, native: Mapping[str, Any]) -> dict[str, Any]:
    """A negative code is the signal that ended the shell itself; above 128 it is one by the shells' custom."""
    number = -code if code < 0 else code - 128 if 128 < code <= 192 else None
    told: dict[str, Any] = {"exit_code": code if code >= 0 else None, "signal": number}
    if number == 9:
        told["cause"] = "process.killed"
    elif code == TIMED_OUT_CODE and native.get("time_limit_s"):
        told["cause"] = "scheduling.time_limit"
    elif code == REFUSED_CODE and native.get("run_expected"):
        told["reason"] = "the workspace holds an earlier run of this very name; nothing was started"
    return told


def _cause(message: str) -> str:
    return next((cause for pattern, cause in CAUSES if re.search(pattern, message)), "")


def _reason(native: Mapping[str, Any]) -> str:
    """Ray's message without the log it quotes: its first line, and of a traceback or a long output the last too."""
    message = str(native.get("message") or "").partition(", last available logs")[0]
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    half = REASON_MAX // 2
    if len(lines) == 1:
        return lines[0][:REASON_MAX]
    return f"{lines[0][:half]} ... {lines[-1][:half]}"


def _native(native: Mapping[str, Any], status: str) -> str:
    code = native.get("driver_exit_code")
    said = [status, str(native.get("error_type") or ""), "" if code is None else f"exit code {code}"]
    return " ".join(filter(None, said))[:NATIVE_MAX]


def _run(native: Mapping[str, Any]) -> Mapping[str, Any]:
    run = native.get("run") or {}
    return run if isinstance(run, Mapping) else {}


def _time(value: Any) -> datetime | None:
    """A moment as it is, or from its ISO text."""
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    return value if isinstance(value, datetime) else None
