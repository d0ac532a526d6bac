"""Scores `measure` on a labelled set of logs: last step, main counter, total, loss, the log's own ETA.

    python -m tests.benchmarks.progress_set CORPUS/progress

A case is a folder with `log.txt` and `case.yaml` (`truth`: step_last, step_total, eta_s, loss_last). Prints
one figure a line and the list of misses; a corpus that is not there is said so and is no error.

Never: part of the test suite (a fresh checkout has no corpus), or a place for expected figures.
"""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from states.progress import measure
from states.reading import Progress
from states.text import lines

REL = 1e-6


def cases(corpus: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    """(id, truth, text) of every case of the set."""
    for folder in sorted(path.parent for path in corpus.glob("*/case.yaml")):
        truth = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))["truth"]
        yield folder.name, truth, (folder / "log.txt").read_bytes().decode("utf-8", "replace")


def same(found: float | None, wanted: float) -> bool:
    """Equal figures; NaN equals NaN."""
    if found is None:
        return False
    return (math.isnan(found) and math.isnan(wanted)) or math.isclose(found, wanted, rel_tol=REL)


def judged(truth: dict[str, Any], seen: Progress) -> Iterator[tuple[str, bool, str]]:
    """(figure, right, what was found and wanted) for every label that the case carries."""
    step = truth.get("step_last")
    if step and "not a milestone" not in str(step.get("unit")):
        wanted = float(step["value"])
        among = [f"{one.name}={one.value:g}" for one in seen.counters]
        unit = step.get("unit")
        among_them = any(same(one.value, wanted) for one in seen.counters)
        yield "step among counters", among_them, f"{wanted:g} {unit} in {among}"
        main = seen.main
        found = f"{main.name}={main.value:g}" if main else "none"
        chosen = main is not None and same(main.value, wanted)
        yield "step as main", chosen, f"{found}, wanted {wanted:g} {unit}"
        if truth.get("step_total") is not None:
            total = main.total if main else None
            yield (
                "total of main",
                same(total, float(truth["step_total"])),
                f"{total}, wanted {truth['step_total']}",
            )
    elif step is None:
        yield "no step claimed", seen.main is None, str(seen.main)
    if truth.get("loss_last") is not None:
        yield "loss", same(seen.loss, float(truth["loss_last"])), f"{seen.loss}, wanted {truth['loss_last']}"
    if truth.get("eta_s") is not None:
        right = same(seen.log_eta_s, float(truth["eta_s"]))
        yield "log eta", right, f"{seen.log_eta_s}, wanted {truth['eta_s']}"
    if truth.get("verdict") == "succeeded":
        yield "finished sentence", seen.finished is not None, "none found"
    elif truth.get("verdict") in ("progressing", "slow", "hung", "looping", "starting"):
        yield "no false end", seen.finished is None, str(seen.finished)


def main(corpus: Path) -> int:
    """Prints the figures; 0 always, so that it can run where the corpus is absent."""
    if not corpus.is_dir():
        print(f"no corpus at {corpus}: nothing measured")
        return 0
    hits: dict[str, list[bool]] = defaultdict(list)
    misses: list[str] = []
    size, began, slowest = 0, time.perf_counter(), (0.0, "")
    for name, truth, text in cases(corpus):
        start = time.perf_counter()
        seen = measure(lines(text))
        slowest = max(slowest, (time.perf_counter() - start, name))
        size += len(text)
        for figure, right, told in judged(truth, seen):
            hits[figure].append(right)
            if not right:
                misses.append(f"{figure:20s} {name:28s} {told}")
    spent = time.perf_counter() - began
    print("\n".join(sorted(misses)))
    for figure, results in hits.items():
        share = 100 * sum(results) / len(results)
        print(f"{figure:20s} {sum(results):3d} / {len(results):3d}  {share:5.1f} %")
    print(f"{size / 1e6:.1f} MB in {spent:.1f} s; slowest {slowest[1]} {slowest[0]:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("../shared/corpus/progress")))
