"""Seeds, or runs of the lab, in processes of their own: one line of JSON for each, with a hash seed that is given.

`python -m agent.simulation.workers WHAT` plays the numbers on stdin and prints what came of each. Two processes with
different hash seeds must print the same marks: whatever hangs on the order of a set shows at once.

Never: a result that depends on how many processes there are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from agent.simulation.lab import Watched, watch
from agent.simulation.run import Ran, run

T = TypeVar("T")
Told = Callable[[T], None]

PLAYS: dict[type[Any], Callable[[int], Any]] = {Ran: run, Watched: watch}
"""What comes of a number -> how it is played."""


def play_seeds(
    seeds: Sequence[int], *, jobs: int, hash_seed: int, told: Told[Ran] = lambda ran: None
) -> list[Ran]:
    """Play the seeds in `jobs` processes; told: called for each as it comes. In the order of the seeds.

    Raises RuntimeError when a process ends before its last seed.
    """
    return sorted(_played(Ran, seeds, jobs, hash_seed, told))


def watch_runs(numbers: Sequence[int], *, jobs: int, told: Told[Watched] = lambda run: None) -> list[Watched]:
    """Watch these runs of the lab, as `play_seeds` plays seeds."""
    return sorted(_played(Watched, numbers, jobs, 1, told))


def _played(kind: type[T], numbers: Sequence[int], jobs: int, hash_seed: int, told: Told[T]) -> list[T]:
    shares = [share for share in (numbers[number::jobs] for number in range(jobs)) if share]
    if not shares:
        return []
    with ThreadPoolExecutor(len(shares)) as pool:
        found = pool.map(lambda share: _share(kind, share, hash_seed, told), shares)
        return [one for share in found for one in share]


def _share(kind: type[T], numbers: Sequence[int], hash_seed: int, told: Told[T]) -> list[T]:
    command = [sys.executable, "-m", "agent.simulation.workers", kind.__name__]
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    found: list[T] = []
    with subprocess.Popen(
        command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None  # asked for above
        assert child.stdout is not None
        child.stdin.write("\n".join(map(str, numbers)))
        child.stdin.close()
        for line in child.stdout:
            one = _read(kind, line)
            told(one)
            found.append(one)
    if len(found) != len(numbers):
        raise RuntimeError(
            f"a simulating process ended with code {child.returncode} after {len(found)} of {len(numbers)}"
        )
    return found


def _read(kind: type[T], line: str) -> T:
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(line).items()
    }
    return kind(**values)


def main() -> None:
    """Play the numbers that stand on stdin, one a line."""
    (play,) = [play for kind, play in PLAYS.items() if kind.__name__ == sys.argv[1]]
    for line in sys.stdin.read().split():
        print(json.dumps(play(int(line))._asdict()), flush=True)


if __name__ == "__main__":
    main()
