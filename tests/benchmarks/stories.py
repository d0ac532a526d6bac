"""What the rules would do in each job story of the corpus: wait, ask, stop, resubmit, wrap_up or fix_spec.

A story is a history as a scheduler shows it. The action comes from the normalised phase that the story states,
the scheduler's words by the classes of PHASES, how long they lasted, and the cause that `diagnose` finds.

Never: read a story's truth; know one by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from states.causes import diagnose
from states.policy import Policy
from states.reading import Diagnosis
from states.text import lines

POLICY = Policy()

NEVER = re.compile(
    r"(?:Assoc|QOS)Max\w*(?:PerJob|PerNode|MinutesPerJob|PerJobLimit)|QOSMin\w+|PartitionTimeLimit"
    r"|BadConstraints|MaxMemPerLimit"
    r"|Invalid(?:Account|QOS)|(?:Account|QOS|User|Group)NotAllowed|DependencyNeverSatisfied|ReservationDeleted"
    r"|DeadLine\b|PartitionConfig|[Rr]equested (?:node|partition) configuration |> maximum capacity"
    r"|ExceedsMaxQuota|NoMatchingFlavor|untolerated taint|didn't (?:match|tolerate)|node\(s\) had taint"
    r"|more .{0,20}than .{0,30}(?:allowed|limit)"
    r"|no cpu limit|no memory limit|must specify|could not be scheduled|infeasible",
)
"""It can never run as asked (PHASES 1, "never by itself"; PHASES 2, FailedScheduling classes; Kueue)."""

HELD = re.compile(
    r"[Hh]eld\b|JobHold|JobHeld|launch[_ ]failed|REQUEUE_HOLD|SPECIAL_EXIT|Eqw|Inadmissible|Misconfigured"
    r"|unbound|InvalidImageName|ErrImageNeverPull|exceeded quota|quota exceeded|QuotaExceeded|NotTriggerScaleUp"
    r"|scale.?up.{0,80}failed|overused|(?:Grp|Max)\w*Minutes\b|UsageThreshold|NodeDown|PartitionDown"
    r"|PartitionInactive|NODE_FAIL|SystemFailure",
)
"""It will not move without a person, or only when somebody adds to a budget."""

OURS = re.compile(r"QOSMax\w+PerUser|AssocMax\w+|MaxJobsPerUser\b|MaxCpuPerAccount|Max\w+PerAccount")
"""A limit on what we use ourselves: when nothing of ours runs and it lasts, it is wrong."""

PASSES = re.compile(
    r"TriggeredScaleUp|insufficient unused quota|Reserved for maintenance|[Pp]riority|Resources\b"
)
FIX = (
    "command.",
    "config.",
    "env.",
    "code.",
    "memory.",
    "scheduling.time_limit",
    "scheduling.unsatisfiable",
    "mount.permission",
    "numerics.",
    "data.",
)
GONE_ON = re.compile(r"succeeded: ?[1-9]|exit(?:ed)? (?:code )?0\b.{0,40}(?:but|yet)")
CRASHING = re.compile(r"CrashLoopBackOff|BackOff restarting|restarted (?:\d+) times|RESTARTS [1-9]\d*")
LASTED_S = 1800.0


class Seen(NamedTuple):
    """A story's end: the last entry, what lasted how long, all words, the cause."""

    norm: str | None
    native: str
    lasted_s: float
    words: str
    last_words: str
    errors: int
    diagnosis: Diagnosis


def score_stories(folder: Path) -> tuple[tuple[int, int], list[str]]:
    """((right or acceptable, all), misses)."""
    right = asked = 0
    misses: list[str] = []
    for path in sorted(folder.glob("*/story.yaml")):
        story = yaml.safe_load(path.read_text("utf-8"))
        truth, action = story["truth"], action_of(story)
        asked += 1
        good = {truth["right_action"], *(truth.get("acceptable") or ())}
        right += action in good
        if action not in good:
            told = seen_of(story).diagnosis.cause
            wanted = f"{truth['right_action']} ({truth['cause']})"
            misses.append(f"{path.parent.name}: {wanted}, would {action} ({told})")
    return (right, asked), misses


def action_of(story: Mapping[str, Any]) -> str:
    """The rules' action at the end of the history."""
    seen = seen_of(story)
    plain = {"succeeded": "wrap_up", "stopped": "wrap_up", "preempted": "resubmit", "lost": "resubmit"}
    judged = {
        None: _refused,
        "pending": _pending,
        "starting": _starting,
        "running": _running,
        "failed": _failed,
    }
    if seen.norm in judged:
        return judged[seen.norm](seen)
    return plain.get(str(seen.norm), "ask")


def seen_of(story: Mapping[str, Any]) -> Seen:
    """What the history comes to."""
    history: Sequence[Mapping[str, Any]] = story["history"]
    last = history[-1]
    same = [
        entry
        for entry in history
        if entry.get("norm") == last.get("norm") and entry.get("reason") == last.get("reason")
    ]
    said = [str(entry[key]) for entry in history for key in ("phase", "reason", "event") if entry.get(key)]
    logs = [str(entry["log"]) for entry in history if entry.get("log")]
    code = next(
        (code for entry in reversed(history) if (code := _code(entry.get("exit_code"))) is not None), None
    )
    return Seen(
        norm=last.get("norm"),
        native=str(last.get("phase")),
        lasted_s=float(last["t"] - same[0]["t"]),
        words="\n".join([*said, *logs]),
        last_words=" ".join(str(last.get(key) or "") for key in ("reason", "event", "log")),
        errors=sum(
            bool(_code(entry.get("exit_code"))) for entry in history if entry.get("norm") == "running"
        ),
        diagnosis=diagnose(lines("\n".join(logs)), reasons=said, exit_code=code),
    )


def _code(written: object) -> int | None:
    """`1`, `"0:15"` (code:signal) or `"-11"`."""
    if written is None:
        return None
    code, _, signal = str(written).partition(":")
    return int(code) or (128 + int(signal) if signal and int(signal) < 65 else 0)


def _refused(seen: Seen) -> str:
    """No job came of it. A quota needs a person; figures that fit nowhere need another spec."""
    return "ask" if HELD.search(seen.last_words) else "fix_spec"


def _pending(seen: Seen) -> str:
    if NEVER.search(seen.last_words):
        return "fix_spec" if "maximum capacity" not in seen.last_words else "ask"
    if HELD.search(seen.last_words):
        return "ask"
    if OURS.search(seen.last_words):
        return "ask" if seen.lasted_s >= POLICY.starting_ask_s else "wait"
    if re.search(r"0/(\d+) nodes are available: \1 Insufficient", seen.last_words):
        return "ask"
    if "ray" in seen.words.lower() or (seen.native == "PENDING" and "has not started yet" in seen.words):
        return "ask" if seen.lasted_s >= LASTED_S else "wait"
    return "wait"


def _starting(seen: Seen) -> str:
    """Pulls and mounts take time; what never passes by itself is told apart by its cause."""
    cause = seen.diagnosis.cause
    if cause in ("none", "scheduling.capacity", "scheduling.quota") or cause in (
        "mount.stale",
        "download.slow",
    ):
        return "ask" if seen.lasted_s >= POLICY.starting_ask_s else "wait"
    return "fix_spec" if cause.startswith(FIX) else "ask"


def _running(seen: Seen) -> str:
    if CRASHING.search(seen.last_words) or seen.errors > 1:
        return "stop"
    if seen.native in ("COMPLETING", "CG"):
        return "ask" if seen.lasted_s >= POLICY.finishing_ask_s else "wait"
    if seen.lasted_s >= LASTED_S and re.search(
        r"\bno (?:CPU|GPU|progress|resources?)\b|never returns|not responding", seen.last_words
    ):
        return "ask"
    return "wait"


def _failed(seen: Seen) -> str:
    cause = seen.diagnosis.cause
    if GONE_ON.search(seen.words):
        return "ask"
    if cause == "scheduling.preempted":
        return "resubmit"
    return "fix_spec" if cause.startswith(FIX) else "ask"
