"""Whole scenarios in a second: a story read, played and checked, with every fault it tells of.

Never: a figure where there are no scenarios.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measuring import Figure

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"


def figures() -> Iterator[Figure]:
    """Scenario lifecycles a second, over all files of `scenarios/`; nothing without the runner or the files."""
    try:
        from agent.scenario import files_of, run_file
    except ImportError:
        return
    files = files_of([SCENARIOS]) if SCENARIOS.is_dir() and any(SCENARIOS.rglob("*.yaml")) else []
    if not files:
        return
    run_file(files[0])
    began = time.process_time()
    for file in files:
        run_file(file)
    spent = time.process_time() - began
    yield Figure(f"scenarios: lifecycles ({len(files)} files)", len(files) / spent, "1/s")
