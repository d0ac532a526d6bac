"""Seeds in processes of their own: one line of JSON for each, with a hash seed that the caller sets.

`python -m agent.simulation.workers FIRST LAST STEP` plays seeds and prints them. Two processes with different hash
seeds must print the same marks: whatever hangs on the order of a set shows at once.

Never: a result that depends on how many processes there are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from agent.simulation.run import Ran, run

Told = Callable[[Ran], None]


def play_seeds(
    seeds: Sequence[int], *, jobs: int, hash_seed: int, told: Told = lambda ran: None
) -> list[Ran]:
    """Play the seeds in `jobs` processes; told: called for each as it comes. In the order of the seeds.

    Raises RuntimeError when a process ends before its last seed.
    """
    shares = [share for share in (seeds[number::jobs] for number in range(jobs)) if share]
    if not shares:
        return []
    with ThreadPoolExecutor(len(shares)) as pool:
        found = pool.map(lambda share: _share(share, hash_seed, told), shares)
        return sorted(ran for ranks in found for ran in ranks)


def _share(seeds: Sequence[int], hash_seed: int, told: Told) -> list[Ran]:
    command = [sys.executable, "-m", "agent.simulation.workers"]
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    given = "\n".join(map(str, seeds))
    ranks: list[Ran] = []
    with subprocess.Popen(
        command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None  # asked for above
        assert child.stdout is not None
        child.stdin.write(given)
        child.stdin.close()
        for line in child.stdout:
            ran = _read(line)
            told(ran)
            ranks.append(ran)
    if len(ranks) != len(seeds):
        raise RuntimeError(
            f"a simulating process ended with code {child.returncode} after {len(ranks)} seeds"
        )
    return ranks


def _read(line: str) -> Ran:
    values = json.loads(line)
    return Ran(**{**values, "faults": tuple(values["faults"]), "ends": tuple(values["ends"])})


def main() -> None:
    """Play the seeds that stand on stdin, one a line."""
    for line in sys.stdin.read().split():
        print(json.dumps(run(int(line))._asdict()), flush=True)


if __name__ == "__main__":
    main()
