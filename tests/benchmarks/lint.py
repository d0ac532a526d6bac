"""How well the lint finds: labelled scripts, found and missed by level, and what it says without reason.

    python -m tests.benchmarks.lint ../shared/corpus [--misses]

Each case is linted as `wk lint` does it, with the spec and the tree of its label. A finding is found when one of its
kind stands on a line with the labelled words. False: above `note` and of a kind that the label neither demands nor
tolerates.

Never: show the lint a label; need the corpus (without it this says so and ends well).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from agent.lint import lint_text, scene, source_of
from states.lint.finding import Finding
from states.lint.scene import Tree

ABOVE_NOTE = frozenset({"refuse", "ask", "warn"})


def main() -> int:
    """Prints everything; 0 also where the corpus is absent."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--misses", action="store_true")
    given = parser.parse_args()
    folders = sorted((given.corpus / "scripts").glob("*/case.yaml"))
    if not folders:
        print(f"no scripts below {given.corpus}: nothing is measured")
        return 0
    asked: Counter[str] = Counter()
    found: Counter[str] = Counter()
    said: list[str] = []
    clean = quiet = 0
    began = time.perf_counter()
    for path in folders:
        label = yaml.safe_load(path.read_text(encoding="utf-8"))
        findings = findings_of(path.parent, label)
        wrong = [f for f in findings if is_false(f, label)]
        clean += label["clean"]
        quiet += label["clean"] and not wrong
        said += [
            f"{'FALSE':7s} {label['id']}: {f.level} {f.kind} {f.file}:{f.line} {f.text[:70]}" for f in wrong
        ]
        for want in label["findings"]:
            asked[want["level"]] += 1
            hit = any(matches(f, want) for f in findings)
            found[want["level"]] += hit
            if not hit:
                said.append(f"{want['level']:7s} {label['id']}: {want['kind']} {want['line_contains']}")
    for level in ("refuse", "ask", "warn", "note"):
        print(
            f"{level:7s} {found[level]:3d} of {asked[level]:3d}  {100 * found[level] / max(asked[level], 1):5.1f} %"
        )
    print(
        f"clean   {quiet:3d} of {clean:3d} without a false finding; {len(folders)} cases, "
        f"{1000 * (time.perf_counter() - began) / len(folders):.0f} ms each"
    )
    for line in said if given.misses else ():
        print(f"  - {line}")
    return 0


def findings_of(folder: Path, label: Mapping[str, Any]) -> tuple[Finding, ...]:
    """What the lint says about one case."""
    spec = label["spec"]
    main_file = next(path for name in ("job.sh", "job.yaml") if (path := folder / name).exists())
    about = scene(
        gpu=spec.get("gpu"),
        replicas=spec.get("replicas"),
        workspace=spec.get("workspace") or (),
        image=spec.get("image") or "",
        cluster=spec.get("cluster") or "",
        tree=tree_of(folder, spec.get("tree")),
    )
    source = source_of(main_file.name, main_file.read_text(encoding="utf-8"))
    return lint_text(source, about, None).findings


def tree_of(folder: Path, names: list[str] | None) -> Tree | None:
    """The tree of the label, with the texts that are in the case."""
    if names is None:
        return None
    texts = {name: folder / name for name in names}
    return Tree({n: p.read_text(encoding="utf-8") if p.is_file() else None for n, p in texts.items()})


def matches(finding: Finding, want: Mapping[str, Any]) -> bool:
    """Whether this finding is the labelled one."""
    words = want["line_contains"]
    return finding.kind == want["kind"] and (words is None or words in finding.text)


def is_false(finding: Finding, label: Mapping[str, Any]) -> bool:
    """Whether this finding is said without reason."""
    allowed = {
        *(f["kind"] for f in label["findings"] if f["level"] != "note"),
        *label["tolerated"],
        "exit_code_masked",
    }
    return finding.level in ABOVE_NOTE and finding.kind not in allowed


if __name__ == "__main__":
    sys.exit(main())
