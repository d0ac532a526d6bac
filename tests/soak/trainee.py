"""The program of a soak's jobs: a short training that ends as its kind says, and writes down itself what it did.

    python -m tests.soak.trainee KIND LABEL SECONDS LEDGER

The ledger is a file that all jobs share, one JSON line for each thing that happened to one of them. It is the truth
about what ran: neither the product nor a cluster writes into it. A lock for each label notices two at once.

Never: import anything heavy (hundreds of these run); tell the ledger what was not so.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from agent.clusters.local_time import monotonic_s, now, pause

PAUSE_S = 0.25
"""Between two steps."""
FOREVER_S = 60.0
WORD = "word"
"""File beside the ledger whose content a leaky program prints."""

ENDS = ("good", "fails", "loud", "leaky", "asks")
"""Kinds that end by themselves and are healthy until then."""
SICK = ("hangs", "stubborn", "loops", "diverges")
"""Kinds that never end well: they fall silent (and ignore TERM), say the same for ever, or lose their numbers."""


class Ledger:
    """This program's own part of the ledger."""

    def __init__(self, file: Path, label: str, kind: str) -> None:
        self._file, self._label, self._kind = file, label, kind

    def tell(self, what: str, **more: object) -> None:
        """Append one line in one write."""
        line = {
            "label": self._label, "kind": self._kind, "what": what, "pid": os.getpid(), "at": now().isoformat(),
            "job": os.environ.get("WATCHKEEPER_ID", ""), "name": os.environ.get("WATCHKEEPER_JOB", ""), **more,
        }  # fmt: skip
        with self._file.open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")


class Steps:
    """Prints steps until it is told to stop. slowest_s: the longest pause that was between two of them."""

    def __init__(self) -> None:
        self.number, self.slowest_s, self._last_s = 0, 0.0, monotonic_s()

    def one(self, total: int, loss: str = "") -> None:
        self.number += 1
        print(f"step {self.number}/{total} loss {loss or f'{2 / (self.number + 1):.4f}'}", flush=True)
        pause(PAUSE_S)
        at = monotonic_s()
        self.slowest_s, self._last_s = max(self.slowest_s, at - self._last_s), at


def main(words: list[str]) -> int:
    """Train for about so many seconds; the exit status is the kind's."""
    kind, label, seconds, file = words
    ledger, steps = Ledger(Path(file), label, kind), Steps()

    def told_to_end(number: int, frame: FrameType | None) -> None:
        ledger.tell("term", signal=number, slowest_s=steps.slowest_s)
        if kind != "stubborn":
            os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, told_to_end)
    alone = (Path(file).parent / f"{label}.lock").open("ab")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        ledger.tell("two at once")
    ledger.tell("start")
    total = max(2, int(float(seconds) / PAUSE_S))
    if kind in SICK:
        sicken(kind, steps, total)
    for _ in range(total):
        if kind == "loud":
            print("\n".join(f"debug batch {n} {'.' * 180}" for n in range(400)), flush=True)
        steps.one(total)
    if kind in ("fails", "leaky"):
        word = (Path(file).parent / WORD).read_text() if kind == "leaky" else "nothing"
        ledger.tell("end", code=1, slowest_s=steps.slowest_s)
        raise RuntimeError(f"shape mismatch in layer 4 while reading {word}")
    Path(f"{label}.out").write_text("weights\n")
    ledger.tell("end", code=0, slowest_s=steps.slowest_s)
    return 0


def sicken(kind: str, steps: Steps, total: int) -> NoReturn:
    """Some good steps, and then for ever what the kind does."""
    for _ in range(min(total, 12)):
        steps.one(100_000)
    until = monotonic_s() + FOREVER_S
    while monotonic_s() < until:
        if kind == "loops":
            print("retrying connection to the data server", flush=True)
            pause(PAUSE_S / 2)
        elif kind == "diverges":
            steps.one(100_000, "nan")
        else:
            pause(PAUSE_S)
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
