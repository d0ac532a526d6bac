"""Real `wk serve` processes on one database and one cluster: killed, stopped and cut off under load.

Afterwards every run has its end, exactly one job each, one last report, one decision per question, and a journal
whose fold is what is stored.

Never: a count taken from what a replica says of itself.
"""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from agent.clusters.local import LocalCluster
from states.replay import apart, fold, origin
from states.spec import Request
from tests.replicas.conftest import Lab, Replica

Eventually = Callable[..., Any]

WORK = "for i in 1 2 3 4 5 6; do echo step $i/6 loss 0.$i; sleep 0.4; done; echo done > result-{n}.txt"


def delegate(lab: Lab, count: int, *, first: int = 0) -> list[str]:
    """So many little training runs."""
    return [one(lab, n, workspace=str(lab.workspace)) for n in range(first, first + count)]


def delegate_asking(lab: Lab, count: int) -> list[str]:
    """Runs that ask for a workspace that is not there; by default they are not submitted."""
    return [one(lab, n, workspace=str(lab.workspace / "not-there")) for n in range(900, 900 + count)]


def one(lab: Lab, n: int, *, workspace: str) -> str:
    request = Request(
        command=("sh", "-c", WORK.format(n=n)),
        name=f"little-{n}",
        outputs=(f"result-{n}.txt",),
        cpu=1,
        memory_mib=64,
    )
    delegated = lab.app.service.delegate(request, workspace=workspace, request_id=f"request-{n}")
    return str(delegated.job.id)


def all_over(lab: Lab) -> bool:
    return lab.app.store.live_ids() == [] and lab.app.store.next_effect_at() is None


def nothing_is_wrong(lab: Lab, runs: list[str], asking: list[str], *, slept: bool = False) -> None:
    """What must hold whatever was killed. slept: one may have slept within a submit; its job was told of then."""
    store = lab.app.store
    cluster = lab.app.clusters["local"]
    assert isinstance(cluster, LocalCluster)
    on_cluster = Counter(line.name for line in cluster.list())
    for run in [*runs, *asking]:
        job = store.load(run)
        rows = store.journal(run)
        assert [row["seq"] for row in rows] == list(range(1, job.seq + 1)), "the journal has a gap"
        assert apart(fold(origin(job), store.history(run)), job) is None
        messages = store.messages(run)
        stages = Counter(message["stage"] for message in messages)
        told = Counter((message["stage"], message["text"]) for message in messages)
        assert [words for words, times in told.items() if times > 1] == [], "told twice"
        if run in asking:
            assert job.state == "not_submitted", (run, job.outcome)
            decided = [row for row in rows if row["source"] == "blocked" != row["to"]]
            assert len(decided) == 1, "a question was decided more than once"
            assert stages["question"] == 1
        else:
            assert job.state == "succeeded", (run, job.outcome, [dict(row) for row in rows][-3:])
            too_many = on_cluster[job.attempt.name] - 1
            noticed = stages["twin"] + sum(question.kind == "twins" for question in job.questions)
            assert too_many == 0 or (slept and too_many <= noticed), f"{run} has {too_many} jobs too many"
    assert slept or sum(on_cluster.values()) == len(runs)


def running(lab: Lab) -> int:
    return sum(row["state"] == "running" for row in lab.app.store.boards(live=True))


def test_a_replica_that_is_killed_leaves_its_runs_to_the_other(lab: Lab, eventually: Eventually) -> None:
    first, second = lab.replica(), lab.replica()
    eventually(first.is_ready)
    eventually(second.is_ready)
    runs = delegate(lab, 5)
    asking = delegate_asking(lab, 2)
    eventually(lambda: running(lab) >= 3)
    first.kill()
    eventually(lambda: all_over(lab))
    nothing_is_wrong(lab, runs, asking)


def test_what_is_delegated_elsewhere_is_looked_at_at_once(lab: Lab, eventually: Eventually) -> None:
    """Its sweep comes in ten minutes, and nothing else is due: only a notice can have told it."""
    replica = lab.replica(WATCHKEEPER_SWEEP_S="600")
    eventually(replica.is_ready)
    (run,) = delegate(lab, 1)
    eventually(lambda: lab.app.store.load(run).state in ("running", "succeeded"), within_s=30)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["kill", "pause", "partition"])
def test_three_replicas_under_load_lose_nothing_and_double_nothing(
    lab: Lab, eventually: Eventually, trouble: str
) -> None:
    """Each of two replicas in turn, at another moment of the load; the third one carries on alone meanwhile."""
    replicas = [lab.replica(wired=trouble == "partition") for _ in range(3)]
    for replica in replicas:
        eventually(replica.is_ready)
    runs, asking = [], delegate_asking(lab, 6)
    for round_number, victim in enumerate([*replicas[:2], *replicas[:2]]):
        runs += delegate(lab, 9, first=9 * round_number)
        eventually(lambda: running(lab) >= 2)
        hurt(lab, victim, trouble, eventually)
        mine = set(runs)
        eventually(lambda mine=mine: not mine & set(lab.app.store.live_ids()), within_s=120)
        heal(victim, trouble)
    eventually(lambda: all_over(lab), within_s=240)
    nothing_is_wrong(lab, runs, asking, slept=trouble == "pause")


def hurt(lab: Lab, replica: Replica, trouble: str, eventually: Eventually) -> None:
    if trouble == "kill":
        replica.kill()
    elif trouble == "pause":
        # Not while it holds the lock of the machine's own cluster, which would be away for everybody then.
        eventually(lambda: stopped_without_the_lock(lab, replica))
    else:
        assert replica.wire is not None
        replica.wire.cut()


def stopped_without_the_lock(lab: Lab, replica: Replica) -> bool:
    replica.stop()
    with (lab.cluster_folder / "lock").open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            replica.go_on()
            return False
    return True


def heal(replica: Replica, trouble: str) -> None:
    if trouble == "kill":
        replica.again()
    elif trouble == "pause":
        replica.go_on()
    else:
        assert replica.wire is not None
        replica.wire.heal()
