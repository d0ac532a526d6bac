"""A run on this machine whose processes are killed from outside: it begins again here, and comes to its end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from states.job import State
from tests.clusters.end_to_end import Delegator, ended
from tests.clusters.local_bench import LocalBench

TRAINS = """\
#!/bin/sh
echo began >> began
i=0
while [ "$i" -lt 200 ]; do
    i=$((i + 1))
    echo "step $i/200 loss 0.5"
    [ -e enough ] && exit 0
    sleep 0.1
done
"""


def test_a_job_that_was_lost_here_begins_again_here(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    bench = LocalBench(tmp_path)
    try:
        with Delegator(bench.client(), tmp_path, cluster_name="local") as delegator:
            delegator.write("train.sh", TRAINS)
            run = delegator.delegate(command=("sh", "train.sh"), cpu=1.0, memory_mib=20)
            first = delegator.until(run, lambda job: job.state is State.running)
            record = delegator.workspace / ".watchkeeper" / first.attempt.name / "start"
            os.killpg(json.loads(record.read_text())["pid"], signal.SIGKILL)
            second = delegator.until(run, lambda job: len(job.attempts) == 2 and job.state is State.running)
            delegator.write("enough", "")
            end = delegator.until(run, ended)
            assert second.spec.exclude_nodes == ()
            assert (end.state, end.resubmissions) == (State.succeeded, 1), end.outcome
            assert (delegator.workspace / "began").read_text() == "began\n" * 2
    finally:
        bench.close()
