"""A run that is delegated to a real Slurm, from preflight to wrap-up, carried by the product's own timers alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from states.job import Attempt, Job, State
from states.observation import Waiting
from tests.clusters.bench import Eventually
from tests.clusters.end_to_end import QUICK, Delegator, ended
from tests.clusters.slurm.bench import SlurmBench
from tests.clusters.slurm.configuration import CPUS
from tests.clusters.slurm.engine import Slurm

Delegating = Callable[..., AbstractContextManager[Delegator]]

SMALL = {"cpu": 1.0, "memory_mib": 20}
HEALTHY = {**SMALL, "policy": {"hung_s": 600.0}}
"""For a program that is to live: a machine that stands still for some seconds is no hang of it."""

TRAINS = """\
#!/bin/sh
i=0
while [ "$i" -lt 12 ]; do
    i=$((i + 1))
    echo "step $i/12 loss 0.$((90 - i))"
    sleep 0.25
done
for _ in $(seq 600); do
    [ -e enough ] && break
    sleep 0.1
done
mkdir -p out
echo weights > out/model.txt
"""

FALLS_SILENT = """\
#!/bin/sh
i=0
while [ "$i" -lt 15 ]; do
    i=$((i + 1))
    echo "step $i/1000 loss 0.$((90 - i))"
    sleep 0.25
done
exec sleep 600
"""

TRAINS_UNTIL_TOLD = """\
#!/bin/sh
exec 9> one.lock
flock -n 9 || touch two-at-once
i=0
while [ ! -e enough ]; do
    i=$((i + 1))
    echo "step $i/100000 loss 0.5"
    sleep 0.25
done
"""
"""Steps until the file `enough` is there. It notices when it runs beside another one of itself."""


@pytest.fixture
def delegated(slurm: Slurm, tmp_path: Path) -> Iterator[Delegating]:
    """`with delegated(requeue=False) as delegator`: over a cluster with these options (by default node n1 alone)."""

    @contextmanager
    def make(**options: object) -> Iterator[Delegator]:
        bench = SlurmBench(slurm, tmp_path, **options)
        with Delegator(bench.client(), tmp_path, cluster_name="slurm") as delegator:
            yield delegator

    yield make
    slurm.clear()


def jobs_of(slurm: Slurm, job: Job) -> list[list[str]]:
    """[id, name, state, node] of everything on the cluster that carries the run's id, ended or not, by id."""
    rows = slurm.out("squeue", "-h", "-a", "-t", "all", "--sort=i", "-o", "%i|%j|%T|%N").splitlines()
    return [parts for row in rows if (parts := row.split("|"))[1].startswith(job.id)]


def shown(attempt: Attempt, state: str) -> list[str]:
    """What `jobs_of` has for an attempt that Slurm shows in this state, where the attempt believes it ran."""
    return [attempt.cluster_job_id, attempt.name, state, attempt.node]


def at_step(job: Job) -> float:
    """The main counter as it was read from the log last; 0 before there is one."""
    return job.track.main.value if job.track.main is not None else 0


def moving(delegator: Delegator, run: str) -> Job:
    """The run once it runs and its counter has moved from one look at its log to a later one."""
    first = at_step(delegator.until(run, lambda job: job.state is State.running and at_step(job)))
    return delegator.until(run, lambda job: at_step(job) > first)


# --- from preflight to wrap-up -----------------------------------------------------------------------------


def test_it_waits_for_a_real_reason_then_runs_to_its_end(
    slurm: Slurm, delegated: Delegating, eventually: Eventually
) -> None:
    blocker = slurm.sbatch("--job-name=blocker", "-p", "solo", "-c", str(CPUS))
    eventually(lambda: slurm.out("squeue", "-h", "-j", blocker, "-o", "%T").strip() == "RUNNING")
    with delegated() as delegator:
        delegator.write("train.sh", TRAINS)
        run = delegator.delegate(command=("sh", "train.sh"), outputs=("out/model.txt",), **HEALTHY)

        waits = delegator.until(
            run, lambda job: job.attempts and job.attempt.seen and job.attempt.seen.reason
        )
        seen = waits.attempt.seen
        assert seen is not None
        assert re.match(r"(?:Resources|Priority)\b", seen.reason), "the scheduler's word for a full node"
        assert seen.waiting is Waiting.wait
        assert waits.state is State.queued
        assert waits.checks["capacity"].level == "ask"
        assert waits.checks["request"].level == "fine", waits.checks["request"].evidence

        assert slurm.ok("scancel", blocker)
        moves = delegator.until(run, lambda job: job.state is State.running and at_step(job))
        assert moves.track.main is not None
        assert (moves.track.main.total, moves.attempt.node) == (12, "n1")
        delegator.write("enough", "")

        end = delegator.until(run, ended)
        assert (end.state, at_step(end)) == (State.succeeded, 12)
        assert end.end is not None
        assert (end.end.confirmed, end.collected.exit_code, end.collected.missing) == (True, 0, ())
        assert [artifact.path for artifact in end.collected.artifacts if artifact.declared] == [
            "out/model.txt"
        ]
        assert jobs_of(slurm, end) == [shown(end.attempt, "COMPLETED")]
        told = delegator.said(run, "wrap-up")
        assert "exit code 0 and every declared output is there" in told
        assert "out/model.txt" in told


# --- a hang ------------------------------------------------------------------------------------------------


def test_a_run_that_falls_silent_is_stopped_by_its_own_judgment(slurm: Slurm, delegated: Delegating) -> None:
    with delegated() as delegator:
        delegator.write("train.sh", FALLS_SILENT)
        run = delegator.delegate(command=("sh", "train.sh"), **SMALL)
        moving(delegator, run)
        end = delegator.until(run, ended, within_s=60)
        assert end.state is State.stopped
        assert end.stop is not None
        assert (end.stop.by, end.stop.rule) == ("watchkeeper", "E6")
        assert at_step(end) == 15
        (stopped,) = [one for one in delegator.why(run) if one.to == "stopping" and one.source == "running"]
        assert "E6" in stopped.rule.split()
        assert "No output for" in stopped.said
        assert "No output for" in delegator.said(run, "stopping")
        assert jobs_of(slurm, end) == [shown(end.attempt, "CANCELLED")]


# --- a node that dies under it -----------------------------------------------------------------------------


def delegate_and_kill_its_node(slurm: Slurm, delegator: Delegator) -> Job:
    """The run as it was, moving, when its node went down. Drained too, or its daemon would bring it back at once."""
    delegator.write("train.sh", TRAINS_UNTIL_TOLD)
    moves = moving(delegator, delegator.delegate(command=("sh", "train.sh"), **HEALTHY))
    for state in ("drain", "down"):
        assert slurm.ok(
            "scontrol", "update", f"nodename={moves.attempt.node}", f"state={state}", "reason=test"
        )
    return moves


def finish(delegator: Delegator, run: str) -> Job:
    """Let the second program come to its end. The run as it ended."""
    moving(delegator, run)
    delegator.write("enough", "")
    end = delegator.until(run, ended)
    assert (end.state, end.collected.exit_code) == (State.succeeded, 0)
    assert not (delegator.workspace / "two-at-once").exists()
    return end


def test_a_lost_node_is_believed_at_the_second_look_and_left_out(slurm: Slurm, delegated: Delegating) -> None:
    with delegated(partition="normal", requeue=False) as delegator:
        first = delegate_and_kill_its_node(slurm, delegator)
        dead = first.attempt.node
        doubted = delegator.until(first.id, lambda job: job.attempt.suspect)
        assert (doubted.state, len(doubted.attempts)) == (State.running, 1)

        delegator.until(first.id, lambda job: len(job.attempts) == 2 and job.state is State.running)
        end = finish(delegator, first.id)
        lost, last = end.attempts
        assert lost.suspect is not None
        assert (last.intent_at - lost.suspect.taken_at).total_seconds() >= QUICK["second_look_s"] * 0.9
        assert last.name != lost.name == first.attempt.name
        assert (end.spec.exclude_nodes, end.resubmissions) == ((dead,), 1)
        assert last.node not in ("", dead)
        assert jobs_of(slurm, end) == [shown(lost, "NODE_FAIL"), shown(last, "COMPLETED")]
        told = delegator.said(first.id, "resubmitted")
        assert "node.lost" in told
        assert dead in told


def test_what_slurm_requeues_itself_is_not_submitted_again(slurm: Slurm, delegated: Delegating) -> None:
    with delegated(requeue=True) as delegator:
        first = delegate_and_kill_its_node(slurm, delegator)
        waits = delegator.until(first.id, lambda job: job.state is State.queued)
        assert (waits.attempt.restarts_seen, len(waits.attempts)) == (1, 1)
        assert slurm.ok("scontrol", "update", "nodename=n1", "state=resume")
        end = finish(delegator, first.id)
        assert [attempt.name for attempt in end.attempts] == [first.attempt.name]
        assert (end.resubmissions, end.spec.exclude_nodes) == (0, ())
        assert end.attempt.cluster_job_id == first.attempt.cluster_job_id
        assert jobs_of(slurm, end) == [shown(end.attempt, "COMPLETED")]
        assert delegator.said(first.id, "resumed")


# --- a submit that lands after the end ---------------------------------------------------------------------

LANDS_LATE = """\
#!/bin/sh
cd {folder}
case " $* " in *" --test-only "*) exec /usr/bin/sbatch "$@" ;; esac
if mkdir lost 2>&-; then
    cat > script
    (until [ -e land ]; do sleep 0.1; done; /usr/bin/sbatch --hold "$@" < script; touch landed) >&- 2>&- &
    echo "sbatch: error: Batch job submission failed: Unable to contact slurm controller" >&2
    exit 1
fi
exec /usr/bin/sbatch "$@"
"""
"""The first submit is not answered, and the controller has its job only when the file `land` is there."""


def test_a_submit_that_lands_after_the_end_is_stopped(
    slurm: Slurm, tmp_path: Path, delegated: Delegating, eventually: Eventually
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sbatch").write_text(LANDS_LATE.format(folder=folder))
    (folder / "sbatch").chmod(0o755)
    for program in ("squeue", "scontrol", "scancel"):
        (folder / program).symlink_to(f"/usr/bin/{program}")
    with delegated(programs=str(folder), submit_timeout_s=2.0) as delegator:
        delegator.write("train.sh", TRAINS)
        delegator.write("enough", "")
        policy = {"late_look_s": 20.0, "late_look_retry_s": 1.0}
        run = delegator.delegate(command=("sh", "train.sh"), policy=policy, **SMALL)
        end = delegator.until(run, ended, within_s=90.0)
        assert (end.state, end.attempt.sends) == (State.succeeded, 2)
        assert "looked for once more by name" in " ".join(delegator.said(run, "wrap-up").split())

        (folder / "land").touch()
        eventually(lambda: (folder / "landed").exists())
        eventually(lambda: delegator.said(run, "twin"), within_s=60.0)
        eventually(lambda: sorted(row[2] for row in jobs_of(slurm, end)) == ["CANCELLED", "COMPLETED"])
