"""Slurm's own words as an observation: states, flags, reasons, exit codes (PHASES 1). Tables and pure functions.

A row of native words is a mapping with `scontrol`'s names: JobState, Reason, ExitCode (`rc:signal`), Restarts,
NodeList, NumNodes, StartTime, EndTime (seconds since 1970); two are ours: Tasks (counts of an array) and
OwnRunning ("0": nothing else of this person runs).

Never: an outcome from a word that is not in the table, nor from an exit code against the state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from states.observation import ENDED, Phase, Waiting

BASE: Mapping[str, Phase] = {
    "PENDING": Phase.pending,
    "RUNNING": Phase.running,
    "SUSPENDED": Phase.running,
    "COMPLETED": Phase.succeeded,
    "FAILED": Phase.failed,
    "TIMEOUT": Phase.failed,
    "OUT_OF_MEMORY": Phase.failed,
    "CANCELLED": Phase.stopped,
    "DEADLINE": Phase.failed,
    "BOOT_FAIL": Phase.lost,
    "NODE_FAIL": Phase.lost,
    "PREEMPTED": Phase.preempted,
}
"""A job has one of these."""

CODES: Mapping[str, str] = {
    "PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED", "CD": "COMPLETED", "F": "FAILED", "TO": "TIMEOUT",
    "OOM": "OUT_OF_MEMORY", "CA": "CANCELLED", "DL": "DEADLINE", "BF": "BOOT_FAIL", "NF": "NODE_FAIL",
    "PR": "PREEMPTED", "CF": "CONFIGURING", "CG": "COMPLETING", "SO": "STAGE_OUT", "SI": "SIGNALING",
    "RS": "RESIZING", "ST": "STOPPED", "RQ": "REQUEUED", "RF": "REQUEUE_FED", "RH": "REQUEUE_HOLD",
    "SE": "SPECIAL_EXIT", "RD": "RESV_DEL_HOLD", "RV": "REVOKED",
}  # fmt: skip
"""The compact forms that squeue can print."""

FLAGS: Mapping[str, tuple[Phase, str]] = {
    "REVOKED": (Phase.unknown, ""),
    "REQUEUE_HOLD": (Phase.pending, "held"),
    "SPECIAL_EXIT": (Phase.pending, "held"),
    "RESV_DEL_HOLD": (Phase.pending, "held"),
    "REQUEUED": (Phase.pending, "again"),
    "REQUEUE_FED": (Phase.pending, "again"),
    "RECONFIG_FAIL": (Phase.lost, ""),
    "COMPLETING": (Phase.running, "finishing"),
    "STAGE_OUT": (Phase.running, "finishing"),
    "STOPPED": (Phase.running, "suspended"),
    "CONFIGURING": (Phase.starting, ""),
    "POWER_UP_NODE": (Phase.starting, ""),
}
"""Flags that decide whatever the base state is (it may be hidden behind them), strongest first."""

FAINT = frozenset({"SIGNALING", "RESIZING", "UPDATE_DB"})
"""Flags that change nothing; alone they stand for a job that runs."""

CAUSE: Mapping[str, str] = {
    "TIMEOUT": "scheduling.time_limit",
    "DEADLINE": "scheduling.time_limit",
    "OUT_OF_MEMORY": "memory.host",
    "PREEMPTED": "scheduling.preempted",
    "NODE_FAIL": "node.lost",
    "BOOT_FAIL": "node.fault",
    "LAUNCH_FAILED": "node.fault",
    "RECONFIG_FAIL": "node.fault",
}

NO_LOG_SIGNAL = 53
"""`0:53`: slurmd could not open the output file."""
NO_LOG = "Slurm could not open the job's output file; it never ran and there is no log"

WAIT = re.compile(
    r"None|Priority|Resources|Dependency|BeginTime|Licenses|JobArrayTaskLimit|Prolog|Cleaning|Reservation|SchedDefer"
    r"|FedJobLock|BurstBufferResources|BurstBufferStageIn|MaxJobsPerAccount|QOSJobLimit|AssociationJobLimit"
    r"|AssocMaxJobsLimit|(?:QOS|Assoc)Grp\w+|QOSMax\w+PerUser(?:Limit)?|QOSMax\w+PerAccount(?:Limit)?|Max\w+PerAccount"
)
PERSONAL = re.compile(r"QOSMax\w+PerUser(?:Limit)?|AssocMaxJobsLimit")
"""Limits that only this person's own jobs use up: with none of them running, waiting helps nothing."""
BUDGET = re.compile(r"(?:QOS|Assoc)Grp(?!\w*Run)\w*Minutes(?:Limit)?|QOSUsageThreshold")
NEVER = re.compile(
    r"(?:Assoc|QOS)Max\w+Per(?:Job|Node)(?:Limit)?|QOSMin\w+|PartitionTimeLimit|BadConstraints|MaxMemPerLimit"
    r"|InvalidAccount|InvalidQOS|AccountNotAllowed|QOSNotAllowed|DependencyNeverSatisfied|ReservationDeleted"
    r"|DeadLine|PartitionConfig"
)
HELD = re.compile(r"JobHeldUser|JobHeldAdmin|JobHoldMaxRequeue|JobLaunchFailure")
HELD_WORDS = "launch failed requeued held"
QUEUE_WORDS = "Nodes required for job are DOWN, DRAINED or reserved"
"""Slurm's sentence for a job behind others as well as for one whose nodes are down: a wait like any other."""


def normalise(native: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an `Observation` (all but taken_at, confirmed, twins) from one row of native words."""
    words = state_words(str(native.get("JobState", "")))
    reason = _said(native, "Reason")
    phase, mark, word = _phase(words, reason)
    fields: dict[str, Any] = {
        "phase": phase,
        "native": _native(native),
        "reason": reason,
        "finishing": mark == "finishing",
        "suspended": mark == "suspended" or word == "SUSPENDED",
        "attempt": max(_number(native, "Restarts") or 0, int(mark == "again")),
        "node": _said(native, "NodeList"),
        **_times(native, phase),
    }
    if phase in (Phase.pending, Phase.starting):
        waiting = (
            Waiting.held if mark == "held" else waiting_for(reason, alone=native.get("OwnRunning") == "0")
        )
        fields |= {"waiting": waiting, "held": waiting is Waiting.held, "node": ""}
    elif phase in ENDED:
        fields |= _ending(native, word, reason)
    elif phase in (Phase.preempted, Phase.lost):
        fields |= {"cause": CAUSE.get(word, "")}
    if (nodes := _number(native, "NumNodes") or 1) > 1 and not native.get("Tasks"):
        fields |= {"replicas": nodes, "replicas_ready": nodes if phase is Phase.running else 0}
    return fields


def state_words(text: str) -> tuple[str, ...]:
    """The state's words without what is said beside them: `CANCELLED by 1001`, `COMPLETED+`, `PD`, lists."""
    words = re.findall(r"[A-Z_]+", re.sub(r"\bby \S+", "", text.upper().replace("BY ", "by ")))
    return tuple(CODES.get(word, word) for word in words)


def waiting_for(reason: str, *, alone: bool = False) -> Waiting:
    """The class of a reason, a code or a sentence (PHASES 1). alone: nothing else of this person runs."""
    plain = reason.replace("_", " ")
    code = (re.match(r"\w+", reason) or [""])[0]
    if HELD.fullmatch(code) or HELD_WORDS in plain.lower():
        return Waiting.held
    if BUDGET.fullmatch(code):
        return Waiting.budget
    if NEVER.fullmatch(code) or (alone and PERSONAL.fullmatch(code)):
        return Waiting.never
    if code == "ReqNodeNotAvail":
        return Waiting.wait if "maintenance" in plain.lower() else Waiting.unclear
    if not reason or WAIT.fullmatch(code) or plain.startswith(QUEUE_WORDS):
        return Waiting.wait
    return Waiting.unclear


def exit_of(text: str) -> tuple[int, int]:
    """`rc:signal` as numbers; (0, 0) for anything else."""
    found = re.fullmatch(r"(\d+):(\d+)", text.strip())
    return (int(found[1]), int(found[2])) if found else (0, 0)


def moment(text: object) -> datetime | None:
    """Seconds since 1970, as SLURM_TIME_FORMAT=%s prints them; None for `N/A`, `Unknown`, 0."""
    digits = str(text or "")
    return datetime.fromtimestamp(int(digits), UTC) if digits.isdecimal() and int(digits) else None


def never_accepted(native: Mapping[str, Any]) -> bool:
    """A record that a refused sbatch left behind: FAILED at the second of its submit, never on a node."""
    words = state_words(str(native.get("JobState", "")))
    instant = native.get("StartTime") == native.get("EndTime")
    return words == ("FAILED",) and instant and not _said(native, "NodeList")


def _phase(words: tuple[str, ...], reason: str) -> tuple[Phase, str, str]:
    """The phase, what the deciding flag adds, and the deciding word."""
    base = next((word for word in words if word in BASE), "")
    for flag, (phase, mark) in FLAGS.items():
        if flag in words:
            return phase, mark, flag
    if "LAUNCH_FAILED" in words:
        # Alone it hides the base state: held asks, lost would submit once more.
        return (Phase.pending, "held", base) if base in ("", "PENDING") else (Phase.lost, "", "LAUNCH_FAILED")
    if base == "RUNNING" and reason == "Prolog":
        return Phase.starting, "", base
    if base:
        return BASE[base], "", base
    faint = bool(words) and FAINT.issuperset(words)
    return (Phase.running if faint else Phase.unknown), "", ""


def _ending(native: Mapping[str, Any], word: str, reason: str) -> dict[str, Any]:
    """Code, signal, cause and reason of an ended job. A time-out's or a cancel's `0:0` is no exit code."""
    code, number = exit_of(str(native.get("ExitCode", "")))
    if word == "COMPLETED":
        return {"exit_code": code}
    if word == "CANCELLED":
        by = re.search(r"by (\S+)", str(native.get("JobState", "")))
        return {"reason": f"cancelled by uid {by[1]}"} if by else {}
    if word != "FAILED":
        return {"cause": CAUSE.get(word, "")}
    if number == NO_LOG_SIGNAL:
        return {"signal": number, "cause": "mount.permission", "reason": NO_LOG}
    if number:
        return {"signal": number, "cause": killed(number)}
    by_shell = code - 128 if 128 < code <= 192 else None
    return {"exit_code": code, "signal": by_shell, "cause": killed(by_shell)}


def killed(number: int | None) -> str:
    return "process.killed" if number == 9 else ""


def _times(native: Mapping[str, Any], phase: Phase) -> dict[str, Any]:
    """Of a job that waits Slurm tells an expected start, and of one that runs its limit: neither happened."""
    began = phase not in (Phase.pending, Phase.starting) and _said(native, "NodeList")
    ended = phase in ENDED or phase in (Phase.preempted, Phase.lost)
    return {
        "started_at": moment(native.get("StartTime")) if began else None,
        "ended_at": moment(native.get("EndTime")) if ended else None,
    }


def _native(native: Mapping[str, Any]) -> str:
    said = [str(native.get("Tasks") or native.get("JobState", ""))]
    said += [str(native[key]) for key in ("Reason", "ExitCode") if native.get(key) not in (None, "", "None")]
    return " ".join(said)


def _said(native: Mapping[str, Any], key: str) -> str:
    text = str(native.get(key) or "")
    return "" if text in ("None", "(null)", "N/A", "None assigned", "Unknown") else text


def _number(native: Mapping[str, Any], key: str) -> int | None:
    text = str(native.get(key, ""))
    return int(text) if text.isdecimal() else None
