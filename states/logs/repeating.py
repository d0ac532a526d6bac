"""Work that goes round in circles: crash loops, retries, meters that stand still, downloads that drag.

Output is no milestone (E5): the same message again and again without a counter that moves is stuck however
much it prints. A network that does not come is tried once and then asked about (E10), a download that drags is
asked about (E11); neither is stopped. What merely waits (for a peer, a spinner) has not started yet (E1).

Never: call a loop what moves between its repeats; take a heartbeat for a retry.
"""

from __future__ import annotations

import re

from states.logs.case import Case, first_words, place, span
from states.reading import Verdict

LOOP_REPEATS = 5
"""The same trouble this often without a milestone is called a loop (asked about; stopping needs more)."""

FROM_ZERO = 3
"""A download that began again from nothing this often gets nowhere."""

METER_REPEATS = 10
"""A meter of bytes printed this often with the same figures stands still."""

_NETWORK = ("network.", "auth.denied", "image.unreachable")
_TROUBLE = re.compile(
    r"error|fail|retry|retries|attempt|timed? ?out|refused|reset by|unreachable|denied|exception"
    r"|resume download|could(?: not|n't)|cannot|unable|错误|失败|重试|超时",
    re.IGNORECASE,
)
_RETRIES = re.compile(
    r"\bretr(?:y|ies|ying)\b|try(?:ing)? again|\battempt|\bresum(?:e|ing)\b|重试|再次尝试", re.IGNORECASE
)
_RESTARTS = re.compile(r"\b(?:re)?(?:start|launch|spawn)(?:s|ed|ing)?\b|重启|重新启动", re.IGNORECASE)
_COUNTED = re.compile(r"\brestart(?:s|ed| ?[Cc]ount)?\b\D{0,12}(\d{1,6})", re.IGNORECASE)
_TRANSFER_UNITS = ("byte", "KiB", "percent", "file")
_BYTES = re.compile(r"\d(?:\.\d{1,3})?\s?(?:[kKMGT](?:i?B)?|B)\b")


def crash_loops(case: Case) -> Verdict | None:
    """The program dies and is started again without a milestone between: failing.

    Provable when the cluster counts the restarts, or when the log shows very many over a long time: one restart
    of many workers prints many lines (E7).
    """
    policy = case.policy
    counted = max(
        (int(found[1]) for reason in case.scene.reasons for found in _COUNTED.finditer(reason)), default=0
    )
    seen = _restarts_seen(case)
    named = case.cause == "crash.loop" or any("CrashLoopBackOff" in reason for reason in case.scene.reasons)
    if not named and max(counted, seen) < policy.crash_loops:
        return None
    still_s = case.still_s or 0.0
    lasting = not case.works and still_s >= policy.stuck_s_min
    sure = lasting and (counted >= policy.crash_loops or seen >= 4 * policy.crash_loops)
    times = f"{max(counted, seen)} times " if max(counted, seen) else ""
    summary = (
        f"The program dies and is started again, {times}without a milestone between. {first_words(case)}"
    )
    return case.say("failing", summary.strip(), "E7", topic="crash-loop", provable=sure)


def _restarts_seen(case: Case) -> int:
    """How often the log says that the program was started again after it had died; 0 if it does not."""
    again = case.progress.repeated
    if again is None or not case.died or not _RESTARTS.search(again.text):
        return 0
    return case.progress.repeats if again.line > case.evidence_line else 0


def loops(case: Case) -> Verdict | None:
    """Looping (retries), hung (a meter that stands still after it moved), or None."""
    progress = case.progress
    repeats, quote = progress.repeats, progress.repeated
    text = quote.text if quote else ""
    if repeats >= METER_REPEATS and _BYTES.search(text) and not _TROUBLE.search(text) and case.lasts:
        return _stands_still(case, repeats)
    if progress.from_zero >= FROM_ZERO and case.lasts:
        summary = f"A download began again from nothing {progress.from_zero} times; {place(case)}."
        return case.say("looping", summary, "E5", "E11", topic="download")
    network = case.cause.startswith(_NETWORK)
    trouble = _TROUBLE.search(text) is not None or case.cause != "none"
    if repeats < LOOP_REPEATS or not trouble or not case.lasts:
        return None
    if case.died and not network and not _RETRIES.search(text):
        return None
    still_s = case.still_s or 0.0
    sure = not network and repeats >= case.policy.loop_repeats and still_s >= case.policy.loop_s
    lasting = f" for {span(still_s)}" if still_s else ""
    words = first_words(case) or text[:140]
    summary = f"The same trouble came {repeats} times{lasting} without a milestone: {words}"
    topic = "network" if network else f"loop:{case.cause}"
    return case.say("looping", summary, "E5", "E10" if network else "E9", topic=topic, provable=sure)


def _stands_still(case: Case, repeats: int) -> Verdict:
    moved = case.main is not None and case.main.value > 0
    summary = f"A download's meter was printed {repeats} times without moving; {place(case)}."
    return case.say("hung" if moved else "looping", summary, "E5", "E11", topic="download")


def drags(case: Case) -> Verdict | None:
    """A download that moves, but through stalls or retries (E11)."""
    main = case.main
    through_retries = case.cause.startswith("network.") and main is not None and main.unit in _TRANSFER_UNITS
    if case.cause != "download.slow" and not through_retries:
        return None
    return case.say(
        "slow", f"A download drags on; {place(case)}. {first_words(case)}", "E11", topic="download"
    )
