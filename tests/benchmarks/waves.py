"""What a wave of quiet jobs costs on each kind of cluster: calls and CPU, for 1, 100, 1,000 and 10,000 watched jobs.

`python -m tests.benchmarks.waves`. The drivers are the product's own, with their own parsers and their own transport;
what answers is generated: executables for Slurm and Brain++, servers on this machine for Kubernetes and Ray. Where a
real Slurm can be started, its waves are taken too. CPU is that of the thread that takes the wave, so that neither an
answering server nor a started program counts.

Never: a threshold; an answer that holds no job.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from agent.clusters.base import Cluster, Ref
from agent.clusters.brainpp import BrainppCluster
from agent.clusters.kubernetes import KubernetesCluster
from agent.clusters.kubernetes_manifest import MANAGED_BY, MANAGER
from agent.clusters.ray import RayCluster
from agent.clusters.slurm import SlurmCluster
from agent.clusters.slurm_parse import FIELD, QUEUE, RECORD
from agent.store import JOBS
from agent.wave import wave
from states.quiet import story
from tests.agent.fakes import START, WAITING, Desk
from tests.benchmarks.measuring import ROUNDS, Figure
from tests.benchmarks.turns import Calm, desk_in
from tests.clusters.brainpp_bench import SECRETS
from tests.clusters.kubernetes.server import Emulator
from tests.clusters.slurm.engine import PATH, Slurm

SIZES = (1, 100, 1_000, 10_000)
REAL_SIZES = SIZES[:3]
"""A real Slurm is given its jobs one by one."""
NAMESPACE = "lab-a"

FAKE = """#!{python} -SE
import os, sys
here, tool = {folder!r}, os.path.basename(sys.argv[0])
with open(here + "/calls", "a") as file:
    file.write("x")
if tool == "rjob":
    for name in sys.argv[2:]:
        if not name.startswith("-"):
            print("rjob " + name + ": Pending")
elif tool == "squeue":
    text = open(here + "/queue", newline="").read()
    chosen = [word.partition("=")[2] for word in sys.argv if word.startswith(("--jobs=", "--name="))]
    if chosen:
        wanted = set(chosen[0].split(","))
        rows = [row for row in text.split({record!r}) if row]
        rows = [row for row in rows if wanted & {{row.split({field!r})[0], row.split({field!r})[-1]}}]
        text = "".join(row + {record!r} for row in rows)
    sys.stdout.write(text)
elif tool == "scontrol":
    print("SLURM_VERSION = 22.05.8\\nAccountingStorageType = accounting_storage/none")
elif tool == "id":
    print("kim")
"""


class Emulated(NamedTuple):
    """A driver and what answers it. calls: how many so far. refs: of the jobs it has."""

    cluster: Cluster
    calls: Callable[[], int]
    refs: Sequence[Ref]


def names(jobs: int) -> list[str]:
    """As attempts are called."""
    return [f"run{n:05}-a1-{n:08x}" for n in range(jobs)]


# --- what answers ----------------------------------------------------------------------------------------


def _tools(folder: Path, *tools: str) -> Callable[[], int]:
    text = FAKE.format(python=sys.executable, folder=str(folder), record=RECORD, field=FIELD)
    for tool in tools:
        (folder / tool).write_text(text, encoding="utf-8")
        (folder / tool).chmod(0o755)
    (folder / "calls").touch()
    return lambda: (folder / "calls").stat().st_size


@contextmanager
def slurm(folder: Path, jobs: int) -> Iterator[Emulated]:
    """A fake squeue that heeds `--jobs` and `--name`; every job waits for its priority."""
    calls = _tools(folder, "squeue", "scontrol", "sacct", "id")
    row = dict.fromkeys(QUEUE.values(), "") | {
        "JobState": "PENDING", "Restarts": "0", "ExitCode": "0", "SubmitTime": str(int(START.timestamp())),
        "NumNodes": "1", "UserId": "kim", "Partition": "gpu", "Reason": "Priority", "WorkDir": str(folder),
    }  # fmt: skip
    refs = [Ref(name, str(1000 + n)) for n, name in enumerate(names(jobs))]
    told = (
        row | {"JobId": ref.cluster_job_id, "ArrayJobId": ref.cluster_job_id, "JobName": ref.name}
        for ref in refs
    )
    text = "".join(FIELD.join(one.values()) + RECORD for one in told)
    (folder / "queue").write_text(text, encoding="utf-8", newline="")
    yield Emulated(SlurmCluster("lab", {"programs": str(folder)}), calls, refs)


@contextmanager
def brainpp(folder: Path, jobs: int) -> Iterator[Emulated]:
    """A fake rjob that has every job it is asked for."""
    calls = _tools(folder, "rjob", "brainctl")
    options = {
        "rjob": str(folder / "rjob"), "brainctl": str(folder / "brainctl"), "root": str(folder / "notes"),
        "secrets": SECRETS.get,
    }  # fmt: skip
    refs = [Ref(name, f"{NAMESPACE}/{name}") for name in names(jobs)]
    yield Emulated(BrainppCluster("lab", options), calls, refs)


@contextmanager
def kubernetes(folder: Path, jobs: int) -> Iterator[Emulated]:
    """The tests' API server, with a Job and a pod that fits nowhere just now for each."""
    emulator = Emulator(control_plane=False)
    try:
        emulator.node("n1", cpu="64", memory="512Gi", gpu="8", pods="110")
        for name in names(jobs):
            _waiting(emulator, name)
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(emulator.kubeconfig()), encoding="utf-8")
        cluster = KubernetesCluster("lab", {"kubeconfig": str(file), "timeout_s": 60, "root": folder})
        yield Emulated(
            cluster, lambda: len(emulator.calls), [Ref(name, f"lab/{name}") for name in names(jobs)]
        )
    finally:
        emulator.close()


def _waiting(emulator: Emulator, name: str) -> None:
    labels = {MANAGED_BY: MANAGER}
    job = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"parallelism": 1, "completions": 1},
        "status": {"active": 1},
    }
    made = emulator.store.create("jobs", job, "lab")
    owner = {"kind": "Job", "name": name, "uid": made["metadata"]["uid"]}
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
           "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}  # fmt: skip
    asked = {"requests": {"nvidia.com/gpu": "8"}}
    pod = {
        "metadata": {
            "name": f"{name}-x",
            "labels": labels | {"batch.kubernetes.io/job-name": name},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "main", "resources": asked}]},
        "status": {"phase": "Pending", "conditions": [why]},
    }
    emulator.store.create("pods", pod, "lab")


@contextmanager
def ray(folder: Path, jobs: int) -> Iterator[Emulated]:
    """A dashboard that has every job in its list."""
    at_ms = int(START.timestamp() * 1000)
    records = [
        {"type": "SUBMISSION", "submission_id": name, "job_id": None, "status": "PENDING",
         "entrypoint": "python a.py", "message": "Job has not started yet.", "start_time": at_ms, "end_time": None,
         "metadata": {}}
        for name in names(jobs)
    ]  # fmt: skip
    node = {"node_id": "f" * 56, "node_name": "n1", "state": "ALIVE", "is_head_node": True,
            "resources_total": {"CPU": 64.0, "GPU": 8.0}, "start_time_ms": at_ms}  # fmt: skip
    bodies = {"/api/jobs/": records, "/api/v0/nodes": {"data": {"result": {"result": [node]}}}}
    with _served({path: json.dumps(body).encode() for path, body in bodies.items()}) as (address, calls):
        yield Emulated(
            RayCluster("lab", {"address": address}), lambda: len(calls), [Ref(n, n) for n in names(jobs)]
        )


@contextmanager
def _served(bodies: dict[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    calls: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            calls.append(path)
            body = bodies[path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", calls
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def real_slurm(folder: Path, jobs: int) -> Iterator[Emulated]:
    """A real one, with held jobs; what it costs is in the calls' own time, too."""
    engine = Slurm(folder)
    try:
        engine.start()
        refs = [Ref(name, engine.sbatch("--hold", "-J", name)) for name in names(jobs)]
        cluster = SlurmCluster("lab", {"conf": str(engine.conf)})
        started: list[str] = []
        run = cluster.commands.run
        cluster.commands.run = lambda program, *words, **given: (  # type: ignore[method-assign]
            started.append(program),
            run(program, *words, **given),
        )[1]
        yield Emulated(cluster, lambda: len(started), refs)
    finally:
        engine.stop()


def real_slurm_is_here() -> bool:
    """The programs, and the rights to start them."""
    import os

    return os.geteuid() == 0 and all(
        shutil.which(program, path=PATH) for program in ("slurmctld", "slurmd", "munged")
    )


# --- the waves -------------------------------------------------------------------------------------------

Answering = Callable[[Path, int], Any]
KINDS: dict[str, Answering] = {"slurm": slurm, "brainpp": brainpp, "kubernetes": kubernetes, "ray": ray}


class Cost(NamedTuple):
    """Of one wave, the least of some rounds. looked_at: jobs that the wave looked at."""

    calls: int
    cpu_s: float
    wall_s: float
    looked_at: int


def cost(answering: Answering, jobs: int) -> Cost:
    """Of a wave in which nothing changed, after one that found everything as it is."""
    with ExitStack() as stack:
        desk_folder, folder = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        emulated: Emulated = stack.enter_context(answering(folder, jobs))
        desk = _watching(desk_folder, emulated)
        stack.callback(desk.store.close)
        _wave(desk, emulated)
        rounds = [_wave(desk, emulated) for _ in range(ROUNDS)]
    return Cost(*(min(one[place] for one in rounds) for place in range(3)), looked_at=rounds[-1].looked_at)


def _wave(desk: Desk, emulated: Emulated) -> Cost:
    desk.clock.step(121)
    calls, cpu_s, wall_s = emulated.calls(), time.thread_time(), time.perf_counter()
    moved = wave(desk.ports)
    spent = time.thread_time() - cpu_s, time.perf_counter() - wall_s
    assert moved == [], f"not a quiet wave: {len(moved)} runs took an event"
    with desk.store.read() as connection:
        looked_at = sum(row.seen_at == desk.clock.now() for row in connection.execute(JOBS.select()))
    return Cost(emulated.calls() - calls, *spent, looked_at)


def _watching(folder: Path, emulated: Emulated) -> Desk:
    """As many runs in the queue as the cluster has jobs; copies of one that got there by itself."""
    desk = desk_in(folder, WAITING, cluster_class=Calm)
    desk.delegate(policy={"queued_ask_s": 1e9})
    desk.settle()
    desk.clock.step(20)
    desk.look()
    seen = emulated.cluster.observe([emulated.refs[0]])[emulated.refs[0].name]
    with desk.store.write() as connection:
        row = dict(connection.execute(JOBS.select()).mappings().one())
        rows = [
            {"id": f"{row['id']}-{n}", "request_id": None, "attempt_name": ref.name,
             "cluster_job_id": ref.cluster_job_id, "story": story(seen)}
            for n, ref in enumerate(emulated.refs)
        ]  # fmt: skip
        connection.execute(JOBS.update().values({**rows[0], "id": row["id"]}))
        if others := [{**row, **changes} for changes in rows[1:]]:
            connection.execute(JOBS.insert(), others)
    desk.ports = replace(desk.ports, clusters={"lab": emulated.cluster})
    return desk


def figures(sizes: Sequence[int] = SIZES) -> Iterator[Figure]:
    """Calls, CPU and wall time for each kind and size."""
    for kind, answering in KINDS.items():
        for jobs in sizes:
            yield from _figures(f"{kind}: a wave of {jobs:,} quiet jobs", cost(answering, jobs))
    for jobs in REAL_SIZES if real_slurm_is_here() else ():
        if jobs in sizes:
            yield from _figures(f"real Slurm: a wave of {jobs:,} quiet jobs", cost(real_slurm, jobs))


def _figures(what: str, found: Cost) -> Iterator[Figure]:
    yield Figure(what, found.calls, "calls")
    yield Figure(what, found.cpu_s * 1000, "ms CPU")
    yield Figure(what, found.wall_s * 1000, "ms")


def main() -> None:
    """Print each figure as it is taken."""
    for figure in figures():
        print(f"{figure.what:<52} {figure.value:>12,.1f} {figure.unit}", flush=True)


if __name__ == "__main__":
    main()
