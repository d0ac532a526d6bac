"""Jobs of somebody else on a real Slurm (RULES A10): watched to their end by id and by name, never mistaken for ours,
never stopped against Slurm's word.

Watchkeeper is the second login here, which may do nothing special; the jobs it watches are root's, and the other way.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.clusters.base import NotThere, Ref, Refused
from agent.clusters.slurm import SlurmCluster
from agent.service import Refusal
from states.job import State
from states.observation import Phase, Waiting
from tests.clusters.bench import OWNER, Eventually, look, sleeps, submission, submit
from tests.clusters.end_to_end import Delegator, ended
from tests.clusters.slurm.bench import SlurmBench, Until
from tests.clusters.slurm.engine import AS_STRANGER, STRANGER, Slurm, running

UNTIL_TOLD = """\
#!/bin/sh
i=0
until [ -e told ]; do i=$((i + 1)); echo "step $i/1000000 loss 0.5"; sleep 0.2; done
exit 3
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """In a folder that the second login may enter."""
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        yield from running(Path(folder), accounting=True)


@pytest.fixture
def theirs(slurm: Slurm) -> Iterator[Path]:
    """A folder of root's that everybody can read."""
    with tempfile.TemporaryDirectory(dir=slurm.root) as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        slurm.clear()


@pytest.fixture
def stranger(bench: SlurmBench) -> SlurmCluster:
    """Watchkeeper's client as the second login has it."""
    return bench.client(prefix=[*AS_STRANGER, "sh", "-c"])


def of_root(slurm: Slurm, folder: Path, name: str) -> str:
    return slurm.sbatch(f"--job-name={name}", "--output=log.txt", script=UNTIL_TOLD, cwd=folder)


# --- watched to its end ------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_job_of_another_is_watched_to_its_end(
    slurm: Slurm, stranger: SlurmCluster, theirs: Path, tmp_path: Path, by: str
) -> None:
    name = f"their run by {by}"
    job_id = of_root(slurm, theirs, name)
    with Delegator(stranger, tmp_path, cluster_name="slurm") as delegator:
        taken = delegator.service.watch_text(job_id if by == "id" else name)
        moves = delegator.until(taken.job.id, lambda job: job.state is State.running and job.track.main)
        assert moves.attempt.cluster_job_id == job_id
        (theirs / "told").touch()
        end = delegator.until(moves.id, ended, within_s=60)
        assert end.end is not None
        assert (end.state, end.end.exit_code, len(end.attempts)) == (State.failed, 3, 1)


def test_its_end_is_known_after_the_controller_forgot_it(
    slurm: Slurm, stranger: SlurmCluster, theirs: Path, eventually: Eventually
) -> None:
    job_id = of_root(slurm, theirs, "forgotten")
    eventually(lambda: slurm.has_recorded(job_id, "RUNNING"))
    (theirs / "told").touch()
    eventually(lambda: slurm.has_recorded(job_id, "FAILED"))
    slurm.forget()
    for ref in (Ref(job_id, job_id), Ref("forgotten", job_id), Ref("forgotten", "forgotten")):
        seen = look(stranger, ref)
        assert (seen.phase, seen.exit_code) == (Phase.failed, 3)


def test_a_limit_of_theirs_is_not_measured_by_our_jobs(
    slurm: Slurm, cluster: SlurmCluster, theirs: Path, eventually: Eventually
) -> None:
    """Nothing of ours runs, so such a limit of ours would never pass; theirs passes when their first one ends."""
    _, second = (slurm.sbatch("--qos=one", "--output=/dev/null", stranger=True) for _ in range(2))
    ref = Ref(second, second)
    eventually(lambda: look(cluster, ref).reason == "QOSMaxJobsPerUserLimit")
    assert look(cluster, ref).waiting is Waiting.wait


# --- which one is meant ------------------------------------------------------------------------------------


def test_a_name_that_several_have_is_asked_about_with_ids(
    slurm: Slurm, stranger: SlurmCluster, theirs: Path, tmp_path: Path, eventually: Eventually
) -> None:
    words = ("--job-name=train", "--output=/dev/null")
    ids = [slurm.sbatch(*words), slurm.sbatch(*words, stranger=True)]
    with Delegator(stranger, tmp_path, cluster_name="slurm") as delegator:
        with pytest.raises(Refusal, match=f"2 jobs are named 'train': give one of the ids {', '.join(ids)}"):
            delegator.service.watch_text("train")
        with pytest.raises(Refused, match=rf"{ids[0]} \(root\), {ids[1]} \({STRANGER}\)"):
            delegator.service.observe("train")
    assert slurm.ok("scancel", ids[0])
    eventually(lambda: "CANCELLED" in slurm.out("squeue", "-h", "-t", "all", "-j", ids[0], "-o", "%T"))
    assert look(stranger, Ref("train", "train")).phase in (Phase.pending, Phase.running), "the one that lives"


def test_a_job_of_our_name_that_another_submitted_is_never_ours(
    bench: SlurmBench, slurm: Slurm, cluster: SlurmCluster, until: Until, theirs: Path
) -> None:
    sent = submission(bench.spec(*sleeps()))
    double = slurm.sbatch(f"--job-name={sent.name}", "--output=/dev/null", stranger=True)
    assert list(cluster.find(sent.name, fingerprint=sent.fingerprint, owner=OWNER)) == []
    ours = submit(cluster, sent.spec, sent.name)
    until(ours, Phase.running)
    found = cluster.find(sent.name, fingerprint=sent.fingerprint, owner=OWNER)
    assert [match.cluster_job_id for match in found] == [ours.cluster_job_id]
    assert look(cluster, ours).twins == ()
    assert {match.cluster_job_id for match in cluster.find(sent.name)} == {ours.cluster_job_id, double}


# --- what may not be done ----------------------------------------------------------------------------------


def test_a_stop_that_slurm_refuses_is_told(
    slurm: Slurm, stranger: SlurmCluster, theirs: Path, tmp_path: Path, eventually: Eventually
) -> None:
    job_id = of_root(slurm, theirs, "not-yours")
    with pytest.raises(Refused, match="denied") as told:
        stranger.stop(Ref(job_id, job_id))
    assert told.value.cause == "auth.denied"
    with Delegator(stranger, tmp_path, cluster_name="slurm") as delegator:
        run = delegator.service.watch_text(job_id).job.id
        delegator.until(run, lambda job: job.state is State.running)
        delegator.service.stop(run)
        eventually(lambda: "denied" in delegator.story(run), within_s=30)
    assert slurm.out("squeue", "-h", "-j", job_id, "-o", "%T").strip() == "RUNNING"


def test_a_site_that_hides_the_jobs_of_others_is_named_as_the_cause(
    bench: SlurmBench, slurm: Slurm, theirs: Path, tmp_path: Path
) -> None:
    job_id = of_root(slurm, theirs, "secret")
    own = slurm.sbatch("--job-name=own", "--output=/dev/null", stranger=True)
    with slurm.hiding_jobs():
        client = bench.client(prefix=[*AS_STRANGER, "sh", "-c"])
        with Delegator(client, tmp_path, cluster_name="slurm") as delegator:
            for text in (job_id, "secret"):
                with pytest.raises(NotThere, match=rf"{text}.*PrivateData.*only their owner"):
                    delegator.service.watch_text(text)
        with pytest.raises(NotThere, match="PrivateData"):
            client.logs(Ref(job_id, job_id))
        assert look(client, Ref("own", own)).phase in (Phase.pending, Phase.running)
