"""`make soak`, or `python -m tests.soak --minutes 120 --seed 7 --slurm --write docs/reliability.md`.

Prints the table; exits with 1 where a promise is broken, and keeps the folder then. On Ctrl-C or TERM everything that
was started is killed.

Never: a figure in the page that no run gave.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from tests.clusters.slurm.engine import PATH
from tests.soak.ground import Ground
from tests.soak.schedule import schedule
from tests.soak.soak import Result, soak

BEGIN, END = "<!-- soak: figures of the last run -->", "<!-- soak: end -->"


def can_run_slurm() -> bool:
    """Whether a real Slurm can be started here."""
    there = all(shutil.which(program, path=PATH) for program in ("slurmctld", "slurmd", "munged", "sbatch"))
    return there and os.geteuid() == 0


def command(minutes: float, seed: int, slurm: bool) -> str:
    """How this very run is begun again."""
    return f"python -m tests.soak --minutes {minutes:g} --seed {seed} --{'' if slurm else 'no-'}slurm"


def write(page: Path, result: Result, ran: str) -> None:
    """Put the table between the two marks of the page."""
    block = "\n".join(f"    {line}".rstrip() for line in [ran, "", *str(result).splitlines()])
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text:
        raise SystemExit(f"{page} has no line {BEGIN!r}; add it, and {END!r} below it")
    new = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{block}\n\n{END}", text, flags=re.DOTALL)
    page.write_text(new, encoding="utf-8")


def interrupted(number: int, frame: FrameType | None) -> None:
    """A TERM ends it as Ctrl-C does, and either where whoever began it ignored them."""
    raise KeyboardInterrupt


def main(words: Sequence[str]) -> int:
    """The command."""
    reader = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    reader.add_argument("--minutes", type=float, default=120.0)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--slurm", action=argparse.BooleanOptionalAction, default=can_run_slurm())
    reader.add_argument("--write", type=Path, help="a page whose block of figures is written anew")
    reader.add_argument("--keep", action="store_true", help="keep the folder though everything held")
    given = reader.parse_args(words)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    folder = Path(tempfile.mkdtemp(prefix="wk-soak-"))
    ran = command(given.minutes, given.seed, given.slurm)
    print(f"{ran}   (in {folder})", flush=True)
    ground = Ground(folder, slurm=given.slurm)
    kept = True
    try:
        ground.open()
        acts = schedule(given.seed, 60 * given.minutes, slurm=given.slurm)
        result, _ = soak(ground, acts, given.seed)
        print(result)
        for fault in result.broken:
            print(f"BROKEN {fault}")
        print("" if result.broken else "all hold")
        kept = given.keep or bool(result.broken)
    except KeyboardInterrupt:
        print("ended before its time; nothing was judged")
        return 128 + signal.SIGINT
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # the end is not ended
        ground.close()
        if kept:
            print(f"kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if given.write and not result.broken:
        write(given.write, result, ran)
    return 1 if result.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
