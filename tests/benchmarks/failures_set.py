"""Scores the causes over a set of failure logs: `python -m tests.benchmarks.failures_set PATH [--misses]`.

PATH holds `<id>/log.txt` and `<id>/case.yaml` (cause, also, root_line, owner, retryable, verdict). Printed:
cause exact, with `also`, evidence line hit, owner, retryable, false alarms, seconds, and the misses.

Never: change an expectation; count a case twice.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from states import text
from states.causes import diagnose
from states.reading import Diagnosis

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HEALTHY = ("progressing", "succeeded", "starting", "slow")


class Score(NamedTuple):
    """One case: what was expected, what was said, and what of it counts."""

    name: str
    case: dict[str, Any]
    said: Diagnosis
    exact: bool
    allowed: bool
    evidence: bool
    alarm: bool


def score(folder: Path) -> Score:
    """Reads and judges one case. Raises OSError if a file is missing."""
    raw = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    case = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))
    said = diagnose(text.lines(raw))
    healthy = case["cause"] == "none" and case.get("verdict") in HEALTHY
    exact = said.cause == case["cause"]
    allowed = exact or said.cause in (case.get("also") or ()) or case["cause"] in said.also
    originals = [_ANSI.sub("", line) for line in raw.split("\n")]
    quoted = [quote.text for quote in said.evidence]
    quoted += [originals[quote.line - 1] for quote in said.evidence if 0 < quote.line <= len(originals)]
    evidence = any(case["root_line"] in one for one in quoted)
    return Score(folder.name, case, said, exact, allowed, evidence, healthy and (said.fatal or not exact))


def main(arguments: list[str]) -> int:
    """Prints the figures; 2 if there is no such set."""
    root = Path(arguments[0]) if arguments else Path()
    folders = sorted(path.parent for path in root.glob("*/case.yaml"))
    if not arguments or not folders:
        print("no cases here: give the path of a folder of failure cases", file=sys.stderr)
        return 2
    begun = time.perf_counter()
    scores = [score(folder) for folder in folders]
    spent = time.perf_counter() - begun
    failing = [one for one in scores if one.case["cause"] != "none"]
    _say("cause exact", sum(one.exact for one in scores), len(scores))
    _say("cause with also", sum(one.allowed for one in scores), len(scores))
    _say("evidence line", sum(one.evidence for one in failing), len(failing))
    _say("owner", sum(one.said.owner == one.case["owner"] for one in failing), len(failing))
    _say("retryable", sum(one.said.retryable == one.case["retryable"] for one in failing), len(failing))
    _say("fatal when failed", sum(one.said.fatal for one in failing), len(failing))
    print(f"false alarms      {sum(one.alarm for one in scores)}")
    print(f"seconds           {spent:.2f}")
    for one in scores:
        if not (one.exact and (one.evidence or one.case["cause"] == "none")):
            quotes = [f"{quote.line}: {quote.text[:110]}" for quote in one.said.evidence]
            print(
                f"\n{one.name}: expected {one.case['cause']} {one.case.get('also')}, root {one.case['root_line']!r}"
            )
            print(
                f"  said {one.said.cause} also {list(one.said.also)} fatal={one.said.fatal}",
                *quotes,
                sep="\n    ",
            )
    return 0


def _say(what: str, count: int, total: int) -> None:
    print(f"{what:17} {count}/{total} = {count / max(total, 1):.1%}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
