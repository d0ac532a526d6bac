"""The Slurm cluster behind a login node, in another time zone, read as JSON, and what the doctor says of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agent.clock import SystemClock
from agent.clusters import run, slurm_lookup
from agent.clusters.base import ClusterError, Ref, Unclear, Unreachable
from agent.clusters.slurm import SlurmCluster
from states.observation import Observation, Phase
from tests.clusters.bench import (
    HOSTILE,
    OWNER,
    ends,
    look,
    submission,
    submit,
)
from tests.clusters.slurm.bench import SlurmBench, Until
from tests.clusters.slurm.engine import Slurm

# --- elsewhere ---------------------------------------------------------------------------------------------


@pytest.fixture
def ssh(tmp_path: Path) -> str:
    """As ssh does it: the words are joined with blanks, and a shell on the other side takes them apart."""
    path = tmp_path / "ssh"
    path.write_text('#!/bin/sh\n[ "$1" = away ] && exit 255\nshift\nexec sh -c "$*"\n')
    path.chmod(0o755)
    return str(path)


def test_a_login_node_gets_the_same_words(bench: SlurmBench, ssh: str, until: Until) -> None:
    remote = bench.client(prefix=[ssh, "login"])
    show = ("sh", "-c", 'printf "<%s>" "$1" "$WORDS"', "sh", HOSTILE)
    ref = submit(remote, bench.spec(*show, env={"WORDS": HOSTILE}))
    assert until(ref).phase == Phase.succeeded
    assert remote.logs(ref).text.startswith(f"<{HOSTILE}><{HOSTILE}>")
    assert [match.ours for match in remote.find(ref.name, owner=OWNER)] == [True]


def test_a_lost_connection_to_the_login_node(bench: SlurmBench, ssh: str) -> None:
    remote = SlurmCluster("slurm", bench.options | {"prefix": [ssh, "away"]})
    with pytest.raises(Unclear):
        remote.submit(submission(bench.spec(*ends(0))))
    with pytest.raises(Unreachable):
        remote.observe([Ref("any-a0-12345678")])


def test_times_are_those_of_the_world(
    bench: SlurmBench, cluster: SlurmCluster, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    ref = submit(cluster, bench.spec(*ends(0)))
    end = until(ref)
    assert end.ended_at is not None
    assert abs(end.ended_at - SystemClock().now()) < timedelta(minutes=1)
    (match,) = cluster.find(ref.name)
    assert match.submitted_at is not None
    assert abs(match.submitted_at - SystemClock().now()) < timedelta(minutes=1)


def test_json_tells_the_same_as_text(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, until: Until
) -> None:
    refs = [
        submit(cluster, bench.spec(*ends(3))),
        submit(cluster, bench.spec("sh", "-c", "kill -9 $$")),
        submit(cluster, bench.spec(*ends(0), extra_args=("--array=1-3",))),
    ]
    for ref in refs:
        until(ref)
    refs += [Ref("odd | name", slurm.sbatch("--job-name=odd | name", "--hold"))]
    refs += [Ref("killed", slurm.sbatch("--job-name=killed", script="#!/bin/sh\nkill -9 $$\n"))]
    until(refs[-1])

    def told(client: SlurmCluster) -> dict[str, Observation]:
        at = SystemClock().now()
        return {
            name: seen.model_copy(update={"taken_at": at, "native": ""})
            for name, seen in client.observe(refs).items()
        }

    text, json = told(cluster), told(bench.client(queue_json=True))
    times = {"taken_at"}
    assert {name: seen.model_dump(exclude=times) for name, seen in json.items()} == {
        name: seen.model_dump(exclude=times) for name, seen in text.items()
    }
    assert text["killed"].signal == 9


def test_a_squeue_without_json_is_read_as_text(bench: SlurmBench, tmp_path: Path) -> None:
    """The programs lie in a folder of their own, and this squeue was built without the plugin for it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    refuses = '[ "$1" = --json ] && { echo "squeue: fatal: no such plugin" >&2; exit 1; }'
    (folder / "squeue").write_text(f'#!/bin/sh\n{refuses}\nexec /usr/bin/squeue "$@"\n')
    (folder / "squeue").chmod(0o755)
    for program in ("sbatch", "scontrol", "scancel"):
        (folder / program).symlink_to(f"/usr/bin/{program}")
    client = bench.client(queue_json=True, programs=str(folder))
    ref = submit(client, bench.spec(*ends(0), extra_args=("--hold",)))
    assert look(client, ref).held
    assert [match.cluster_job_id for match in client.find(ref.name)] == [ref.cluster_job_id]


def test_a_list_too_long_to_read_is_read_in_pages(
    bench: SlurmBench, cluster: SlurmCluster, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    refs = [submit(cluster, bench.spec(*ends(0), extra_args=("--hold",))) for _ in range(5)]
    refs.append(submit(cluster, bench.spec(*ends(0), extra_args=("--hold", "--array=1-9"))))
    whole = cluster.observe(refs)
    monkeypatch.setattr(run, "KEPT_BYTES", 400)
    monkeypatch.setattr(slurm_lookup, "PAGE", 2)
    with pytest.raises(Unclear, match="more jobs than can be read"):
        cluster.list()
    before = bench.calls()
    paged = cluster.observe([*refs, Ref("nobody-a0-12345678")])
    assert bench.calls() - before == 1 + 3 + 1, "the whole list, three pages of ids, one of names"
    assert {name: seen.phase for name, seen in paged.items()} == {
        **dict.fromkeys(whole, Phase.pending),
        "nobody-a0-12345678": Phase.gone,
    }


# --- the doctor --------------------------------------------------------------------------------------------


def test_the_doctor_finds_it_well(cluster: SlurmCluster) -> None:
    found = {row.name: row.level for row in cluster.doctor()}
    assert found == dict.fromkeys(["programs", "controller", "clock", "accounting", "partition"], "fine")


def test_the_doctor_says_what_is_wrong(bench: SlurmBench) -> None:
    (*_, last) = bench.severed().doctor()
    assert (last.name, last.level) == ("controller", "wrong")
    assert last.mend
    (only,) = SlurmCluster("slurm", {"programs": "/nowhere"}).doctor()
    assert (only.name, only.level) == ("programs", "wrong")
    (only,) = SlurmCluster("slurm", {"prefix": ["echo"]}).doctor()
    assert "does not answer" in only.said
    rows = SlurmCluster("slurm", bench.options | {"partition": "nowhere"}).doctor()
    assert [row.said for row in rows if row.level == "wrong"] == ["there is no partition 'nowhere'"]


def test_a_machine_without_slurm_says_what_to_install() -> None:
    with pytest.raises(ClusterError, match="slurm-client"):
        SlurmCluster("slurm", {"programs": "/nowhere"}).list()
