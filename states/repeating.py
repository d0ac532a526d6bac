"""Work that goes round in circles: crash loops, retries, meters that stand still, a network that does not come.

Output is no milestone (E5): the same message again and again without a counter that moves is stuck however much
it prints. A network that does not come is tried once and then asked about (E10), a download that drags is asked
about (E11); neither is stopped. What merely waits (a peer, a tracker's spinner) has not started yet (E1).

Never: call a loop what moves between its repeats; take a heartbeat for a retry.
"""

from __future__ import annotations

import re

from states.case import Case, first_words, place, span
from states.reading import Verdict

LOOP_REPEATS = 5
"""The same trouble this often without a milestone is called a loop (asked about; stopping needs more)."""

_NETWORK = ("network.", "auth.denied", "image.unreachable")
_TROUBLE = re.compile(
    r"error|fail|retry|retries|attempt|timed? ?out|refused|reset by|unreachable|denied|exception|resume download"
    r"|could(?: not|n't)|cannot|unable|错误|失败|重试|超时",
    re.IGNORECASE,
)
_METER = re.compile(r"\d ?%|[kKMG]i?B\b|\d+/\d+|0B\b|B/s")


def crash_loops(case: Case) -> Verdict | None:
    """Restarts of the program without a milestone between them: failing, provable from `policy.crash_loops` on."""
    if case.cause != "crash.loop":
        return None
    repeats = max(case.progress.repeats, case.track.repeats)
    summary = f"The program crashes and is started again, without a milestone between. {first_words(case)}"
    sure = repeats >= case.policy.crash_loops
    return case.say("failing", summary, "E7", topic="crash-loop", provable=sure)


def loops(case: Case) -> Verdict | None:
    """Looping (retries), hung (a meter that stood still after moving), slow (a dragging download), or None."""
    repeats, quote = max(case.progress.repeats, case.track.repeats), case.progress.repeated
    text = quote.text if quote else ""
    network = case.cause.startswith(_NETWORK)
    if repeats < LOOP_REPEATS:
        return None
    if _METER.search(text) and not _TROUBLE.search(text):
        return _stands_still(case, repeats)
    if not _TROUBLE.search(text) and case.cause == "none":
        return None
    topic = "network" if network else f"loop:{case.cause}"
    still_s = case.still_s or 0.0
    sure = not network and repeats >= case.policy.loop_repeats and still_s >= case.policy.loop_s
    lasting = f" for {span(still_s)}" if still_s else ""
    summary = f"The same trouble came {repeats} times{lasting} without a milestone: {first_words(case) or text[:140]}"
    return case.say("looping", summary, "E5", "E10" if network else "E9", topic=topic, provable=sure)


def _stands_still(case: Case, repeats: int) -> Verdict:
    moved = case.main is not None and case.main.value > 0
    summary = f"A meter was printed {repeats} times without moving; {place(case)}."
    return case.say("hung" if moved else "looping", summary, "E5", "E11", topic="download")


def drags(case: Case) -> Verdict | None:
    """A download that moves, but through stalls or retries (E11)."""
    if case.cause != "download.slow":
        return None
    return case.say("slow", f"A download drags on; {place(case)}. {first_words(case)}", "E11", topic="download")
