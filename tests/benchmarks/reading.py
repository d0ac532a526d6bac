"""How well the reader reads: accuracy on the corpora, wrong stops, false alarms, and MB/s.

    python -m tests.benchmarks.reading ../shared/corpus [--misses]

Each log is read as `wk read FILE [--silence S] --model never --json` reads it: no phase, no exit code, no
events, nothing of the label but the seconds of silence that the case itself states
(`silence_s_at_observation`). Stories are judged by `tests.benchmarks.stories`. A wrong stop is a provable
verdict, with the phase taken as running, on a job that is healthy, slow or ambiguous.

Never: show the reader a label; need the corpora (without them it says so and ends well).
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from agent.pieces import pieces, searches
from agent.readfile import read
from states.policy import Policy
from states.reading import Scene, Track
from states.verdict import look
from tests.benchmarks.stories import score_stories

FINE = frozenset({"progressing", "starting", "slow", "succeeded"})
ALARMS = frozenset({"failed", "failing"})
MAY_BE_STOPPED = frozenset({"failing", "failed", "looping", "hung"})
SPEED_MB = 256
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Case(NamedTuple):
    """One labelled log."""

    folder: Path
    label: Mapping[str, Any]

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"


class Score:
    """Hits per question, and what was missed."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.hits: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.misses: list[str] = []

    def note(self, question: str, hit: bool, what: str = "") -> None:
        """One answer to one question; a miss is remembered with what was seen."""
        self.asked[question] += 1
        self.hits[question] += hit
        if not hit and what:
            self.misses.append(f"{question:12s} {what}")

    def show(self, misses: bool) -> None:
        """Prints the rates."""
        print(f"\n{self.title}")
        for question, asked in self.asked.items():
            hits = self.hits[question]
            print(f"  {question:26s} {hits:4d} of {asked:4d}  {100 * hits / asked:5.1f} %")
        for miss in self.misses if misses else ():
            print(f"    - {miss}")


def main() -> int:
    """Prints everything; 0 also where the corpora are absent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--misses", action="store_true", help="list every miss")
    asked = parser.parse_args()
    if not asked.corpus.is_dir():
        print(f"{asked.corpus} is not here: nothing measured. The corpora are not part of the project.")
        return 0
    wrong: list[str] = []
    alarms: list[str] = []
    confused: Counter[tuple[str, str]] = Counter()
    for score in (
        score_failures(asked.corpus / "failures", wrong, alarms, confused),
        score_progress(asked.corpus / "progress", wrong, alarms, confused),
    ):
        score.show(asked.misses)
    (right, stories), misses = score_stories(asked.corpus / "stories")
    share = 100 * right / max(1, stories)
    print(f"\nstories\n  {'action right or acceptable':26s} {right:4d} of {stories:4d}  {share:5.1f} %")
    for miss in misses if asked.misses else ():
        print(f"    - {miss}")
    print(f"\nwrong stops   {len(wrong)} {wrong}\nfalse alarms  {len(alarms)} {alarms}")
    print("\nconfused most (truth -> read as)")
    for (truth, read_as), count in confused.most_common(15):
        print(f"  {count:3d}  {truth} -> {read_as}")
    print(f"\nspeed on a plain log of {SPEED_MB} MB: {speed():.0f} MB/s")
    return 0


def cases(folder: Path) -> Iterator[Case]:
    """The labelled logs of one set, by name."""
    for label in sorted(folder.glob("*/case.yaml")):
        yield Case(label.parent, yaml.safe_load(label.read_text("utf-8")))


def score_failures(
    folder: Path, wrong: list[str], alarms: list[str], confused: Counter[tuple[str, str]]
) -> Score:
    """Cause strict and with `also`, evidence line, verdict."""
    score = Score("failures")
    for case in cases(folder):
        told, label, name = read(case.log), case.label, case.folder.name
        cause, also = str(label["cause"]), set(label["also"])
        score.note(
            "cause", told["cause"] == cause, f"{name}: {cause} read as {told['cause']} also {told['also']}"
        )
        score.note("cause with also", told["cause"] in {cause, *also})
        if cause != "none":
            score.note(
                "evidence line",
                _is_evidence(case, told),
                f"{name}: {label['root_line'][:80]!r}, quoted {told['evidence']}"[:330],
            )
        _note_verdict(score, case, told, str(label["verdict"]), wrong, alarms, confused)
        if told["cause"] != cause:
            confused[cause, str(told["cause"])] += 1
    return score


def score_progress(
    folder: Path, wrong: list[str], alarms: list[str], confused: Counter[tuple[str, str]]
) -> Score:
    """Verdict, last step among the counters and as the main one, loss, the log's own ETA."""
    score = Score("progress")
    for case in cases(folder):
        truth, name = case.label["truth"], case.folder.name
        silence_s = truth["silence_s_at_observation"]
        told = read(case.log, silence_s=silence_s)
        _note_verdict(score, case, told, str(truth["verdict"]), wrong, alarms, confused, silence_s)
        progress: Any = told["progress"]
        if truth["step_last"]:
            step = float(truth["step_last"]["value"])
            seen = [one["value"] for one in progress["counters"]] + [progress["step"]]
            close = any(_same(step, value) for value in seen)
            score.note("step seen", close, f"{name}: {step:g} not in {seen}"[:200])
            score.note(
                "step is main",
                _same(step, progress["step"]),
                f"{name}: {step:g} told {progress['step']} {progress['unit']}",
            )
        if truth["loss_last"] is not None:
            loss = truth["loss_last"]
            score.note(
                "loss", _same(float(loss), progress["loss"]), f"{name}: {loss} told {progress['loss']}"
            )
        if truth["eta_s"] is not None:
            eta = progress["log_eta_s"]
            near = eta is not None and abs(float(eta) - truth["eta_s"]) <= 0.02 * truth["eta_s"] + 1
            score.note("log eta", near, f"{name}: {truth['eta_s']} told {eta}")
    return score


def _note_verdict(
    score: Score,
    case: Case,
    told: Mapping[str, Any],
    truth: str,
    wrong: list[str],
    alarms: list[str],
    confused: Counter[tuple[str, str]],
    silence_s: float | None = None,
) -> None:
    name = case.folder.name
    score.note(
        "verdict",
        told["verdict"] == truth,
        f"{name}: {truth} read as {told['verdict']}: {told['summary'][:140]}",
    )
    if told["verdict"] != truth:
        confused[truth, str(told["verdict"])] += 1
    if truth in FINE and told["verdict"] in ALARMS:
        alarms.append(name)
    if truth not in MAY_BE_STOPPED and _would_stop(case, silence_s):
        wrong.append(name)


def _would_stop(case: Case, silence_s: float | None) -> bool:
    """Would a watch stop this job by itself? Judged as running, as a watch would."""
    kept = pieces([case.log.read_bytes()])
    scene = Scene(phase="running", silence_s=silence_s)
    track = Track()
    for _ in range(2):  # the second look finds nothing new, and only such a one proves a silence
        seen = look(
            kept.lines,
            scene,
            Policy(),
            before=track,
            fingerprint=kept.fingerprint,
            bytes_read=kept.bytes_read,
        )
        track = seen.track
    return seen.verdict.provable


def _is_evidence(case: Case, told: Mapping[str, Any]) -> bool:
    wanted = _ANSI.sub("", str(case.label["root_line"]))
    raw = case.log.read_bytes().decode("utf-8", "replace").split("\n")
    places = {at for at, line in enumerate(raw, 1) if wanted in _ANSI.sub("", line)}
    return any(quote["line"] in places or wanted in quote["text"] for quote in told["evidence"])


def _same(truth: float, told: object) -> bool:
    if told is None:
        return False
    value = float(str(told))
    return (math.isnan(truth) and math.isnan(value)) or math.isclose(
        truth, value, rel_tol=1e-9, abs_tol=1e-12
    )


def speed() -> float:
    """MB/s of reading one plain log from the disk, everything included."""
    line = "2031-04-05 06:07:{:02d} INFO trainer: step {}/2000000 | loss {:.4f} | lr 2.5e-04 | tokens/s {}\n"
    block = "".join(line.format(at % 60, at, 3 - at * 1e-6, 8000 + at % 100) for at in range(40_000)).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.log"
        with path.open("wb") as file:
            for _ in range(SPEED_MB * 1_000_000 // len(block)):
                file.write(block)
        search = searches()
        start = time.perf_counter()
        read(path, search=search)
        return path.stat().st_size / 1e6 / (time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())
