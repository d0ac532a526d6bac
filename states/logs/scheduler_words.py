"""What the scheduler says of a job, as events beside those of its log: reasons, events, exit codes.

A troubled start that a later word, or output, shows to be over is left out. An exit code tells how a process
ended and no more: 137 is a kill, not its reason.

Never: look at the log; know a cluster (the words of all of them are signatures).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from states.logs.log_events import Event, Weight, found_sign, of_entry
from states.logs.signatures import Signatures
from states.reading import Line, Quote

AFTER_LOG = 1 << 40
"""Position of the first of these events: the scheduler speaks of what it saw at the end."""

_STARTED = re.compile(r"\bStarted container|^(?:Started|Running|RUNNING)\b|Successfully (?:pulled|assigned)")
_OF_START = ("scheduling.capacity", "scheduling.unsat", "scheduling.quota", "image.", "mount.")

EXITS: dict[int, str] = {
    124: "scheduling.time_limit",
    126: "command.not_found",
    127: "command.not_found",
    130: "process.killed",
    134: "code.exception",
    135: "memory.shm",
    137: "process.killed",
    139: "code.exception",
    143: "process.killed",
}
"""Exit codes of shells and of signals (128 + number; signal(7)); 124 is timeout(1)'s."""


def said(reasons: Sequence[str], known: Signatures, *, silent: bool) -> list[Event]:
    """The reasons, newest last, as events. silent: the log holds no line at all."""
    found: list[Event] = []
    started = max((number for number, reason in enumerate(reasons) if _STARTED.search(reason)), default=-1)
    for number, reason in enumerate(reasons):
        entries = [hit.entry for hit in known.match(reason, "reason")]
        if any(entry.role in ("noise", "advice") for entry in entries):
            continue
        for entry in entries:
            of_start = entry.cause.startswith(_OF_START) and entry.role != "confirmation"
            over = number < started or (not silent and not entry.fatal)
            if not (of_start and over):
                found.append(of_entry(entry, Line(0, reason), AFTER_LOG + number))
    return found


def exited(exit_code: int | None, signal: int | None, known: Signatures) -> list[Event]:
    """What an exit code or a signal says by itself. A negative code is a signal (subprocess)."""
    code = 128 + signal if signal else exit_code
    if code is not None and code < 0:
        code = 128 - code
    cause = EXITS.get(code) if code is not None else None
    if cause is None:
        return []
    evidence = Quote(line=0, text=f"signal {signal}" if signal else f"exit code {exit_code}")
    sign = found_sign(f"exit:{code}", cause, known.causes[cause], evidence, role="confirmation")
    also = ("memory.host",) if code == 137 else ()
    return [Event(AFTER_LOG - 1, AFTER_LOG - 1, Weight.end, sign, also)]
