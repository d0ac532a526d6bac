"""What a soak stands on: a home of its own, `wk serve` processes over it, clusters, and an end of everything.

Every process of a soak is known by the folder: it stands in its words, its environment or where it works.

Never: a process that outlives `close`; a stand-in for an agent or a cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from agent.app import App, build
from agent.clock import SystemClock
from agent.clusters.local_time import pause
from agent.peek import Peek
from agent.resident import Resident
from agent.secrets import Secrets
from tests.cli.program import ROOT
from tests.clusters.slurm.configuration import NODES
from tests.clusters.slurm.engine import PATH, Slurm
from tests.soak.trainee import WORD

CANARY = "marmalade-kestrel-5521-thursday"
"""A key's value, made up: leaky jobs print it, and nothing may keep it."""

CONFIG = """
wave_s: 0.1
sweep_s: 1
keyring: off
clusters:
  local:
    cpu: 6
    memory_mib: 100000
    stop_grace_s: 1
{slurm}policy:
  poll_s: 0.5
  queued_poll_s_first: 0.5
  queued_poll_s_max: 1
  look_s_first: 0.5
  look_s_min: 0.5
  look_s_max: 2
  second_look_s: 2
  unshown_s: 8
  stop_retry_s: 1
  collect_retry_s: 1
  settle_s: 2
  look_up_s: 0.5
  late_look_s: 30
  late_look_retry_s: 2
  submit_retry_s: 1
  unreachable_poll_s_max: 2
  answer_s: 8
  answer_s_no_submit: 5
  answer_s_queue: 2
"""
"""Nights become seconds: the numbers are small, and nothing else is another than in life."""
SLURM = "  slurm:\n    kind: slurm\n    conf: {conf}\n    partition: normal\n    requeue: false\n"


class OnCluster(NamedTuple):
    """One job as a cluster has it. ended: "" while it lives, else good, bad or lost."""

    cluster: str
    id: str
    name: str
    ended: str


class Told(NamedTuple):
    """What a program was told: its kind, and the name of its attempt."""

    kind: str
    name: str


class SoakedSlurm(Slurm):
    """A Slurm whose daemons are killed and come back."""

    def kill(self, daemon: str) -> None:
        """SIGKILL: nothing is written down that was not before."""
        self._daemons[daemon].kill()
        self._daemons[daemon].wait()

    def again(self, daemon: str) -> None:
        """The daemon once more, if it is not there."""
        if self._daemons[daemon].poll() is None:
            return
        if daemon == "slurmctld":
            self.controller()
        else:
            self._daemon(daemon, "slurmd", "-D", "-N", daemon.partition(".")[2])

    @property
    def daemons(self) -> tuple[str, ...]:
        """Those that may be killed."""
        return ("slurmctld", *(f"slurmd.{node}" for node in NODES[1:]))

    def revive(self) -> None:
        """Give drained nodes back, as their administrator would: one whose job the controller forgot is drained."""
        for line in self.out("sinfo", "-h", "-N", "-o", "%N %T").splitlines():
            node, state = line.split()
            if state.startswith(("drain", "down")):
                self.ok("scontrol", "update", f"nodename={node}", "state=resume")

    def cancelled(self) -> set[str]:
        """Ids of jobs whose cancel the controller took, though it may have been killed before it wrote that down."""
        log = self.root / "slurmctld.log"
        return set(re.findall(r"REQUEST_KILL_JOB JobId=(\d+)", log.read_text(errors="replace")))

    def told(self) -> list[OnCluster] | None:
        """What the controller has, ended or not; None while it is away."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            ran = self._run("squeue", "-h", "-a", "-t", "all", "-o", "%i|%j|%T")
            if ran.returncode == 0:
                rows = [row.split("|") for row in ran.stdout.splitlines()]
                return [OnCluster("slurm", id_, name, _ENDED.get(state, "")) for id_, name, state in rows]
        return None


_ENDED = {"COMPLETED": "good", "FAILED": "bad", "CANCELLED": "bad", "NODE_FAIL": "lost", "TIMEOUT": "bad"}


class Ground:
    """One soak's folder and everything that runs over it. slurm: None without."""

    def __init__(self, folder: Path, *, slurm: bool) -> None:
        self.folder, self.home = folder, folder / "home"
        self.workspace, self.log = folder / "workspace", folder / "agent.log"
        self.ledger = folder / "truth" / "ledger"
        for place in (self.workspace, self.ledger.parent):
            place.mkdir(parents=True)
        self.ledger.touch()
        (self.ledger.parent / WORD).write_text(CANARY)
        self.slurm: SoakedSlurm | None = None
        self._served: list[subprocess.Popen[bytes]] = []
        self._slurm_jobs: dict[tuple[str, str], OnCluster] = {}
        if slurm:
            (folder / "slurm").mkdir()
            self.slurm = SoakedSlurm(folder / "slurm")
        self.env = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), PATH]),
            "HOME": str(folder),
            "WATCHKEEPER_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "LC_ALL": "C.UTF-8",
        }

    def open(self) -> None:
        """Settings, the key, the clusters, and the first agent, which is there when this returns."""
        config = self.home / "config"
        config.mkdir(mode=0o700, parents=True)
        conf = SLURM.format(conf=self.slurm.conf) if self.slurm else ""
        (config / "config.yaml").write_text(CONFIG.format(slurm=conf), encoding="utf-8")
        Secrets(config / "keys", env={}, keyring="off").set("SOAK_WORD", CANARY)
        if self.slurm:
            self.slurm.start()
        self.serve()
        while self.agent() is None:
            assert self._served[0].poll() is None, self.log.read_text()
            pause(0.05)

    @cached_property
    def app(self) -> App:
        """The person's own process."""
        return build(self.env)

    # --- the agent -----------------------------------------------------------------------------------------

    def serve(self) -> None:
        """One more `wk serve`: the agent, if there is none yet."""
        self._served = [one for one in self._served if one.poll() is None]
        self._served.append(self.command("serve", "--no-web"))

    def command(self, *words: str) -> subprocess.Popen[bytes]:
        """`wk` with these words, running; what it says goes to the log."""
        with self.log.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "agent", *words], cwd=self.workspace, env=self.env,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def agent(self) -> psutil.Process | None:
        """The process that carries the runs now."""
        held = Resident(self.home / "state", SystemClock()).holder()
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(held.pid) if held is not None and held.pid else None
        return None

    # --- the truth -----------------------------------------------------------------------------------------

    def peek(self) -> Peek:
        """The board, without the agent's word."""
        return Peek(self.home / "state" / "watchkeeper.db")

    def told(self) -> list[dict[str, Any]]:
        """What the jobs themselves wrote down, oldest first."""
        return [json.loads(line) for line in self.ledger.read_text().splitlines()]

    def look(self) -> None:
        """Remember what Slurm has. A controller that is killed forgets what was not written down yet, live jobs too,
        and gives their ids out again."""
        told = self.slurm.told() if self.slurm else None
        if self.slurm is None or told is None:
            return
        self.slurm.revive()
        there = {(job.id, job.name): job for job in told}
        for key, job in self._slurm_jobs.items():
            if key not in there and not job.ended:
                self._slurm_jobs[key] = job._replace(ended="lost")
        self._slurm_jobs |= there

    def on_clusters(self) -> list[OnCluster]:
        """Every job that any cluster ever had, from the clusters' own records.

        A controller that was killed may call a job alive whose end it had not written down: one that began and of
        which no process is left, or whose cancel it took, has no end that Slurm knows.
        """
        root = self.home / "state" / "local"
        files = [*(root / "jobs").glob("*~*.json"), *(root / "ended").glob("*~*.json")]
        over = {line["name"] for line in self.told()} - {told.name for _, told in self.programs()}
        cancelled = self.slurm.cancelled() if self.slurm else set()
        slurm = [
            job._replace(ended="lost") if not job.ended and (job.name in over or job.id in cancelled) else job
            for job in self._slurm_jobs.values()
        ]
        return [*map(_local, files), *slurm]

    def said_alive(self) -> frozenset[str]:
        """Names of the jobs that Slurm calls alive, as it was last asked."""
        return frozenset(job.name for job in self._slurm_jobs.values() if not job.ended)

    def programs(self) -> Iterator[tuple[psutil.Process, Told]]:
        """The jobs' own programs that live now, and what each was told."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                words = process.cmdline()
                if words[1:4] == ["-s", "-m", "tests.soak.trainee"]:
                    yield process, Told(words[4], process.environ().get("WATCHKEEPER_JOB", ""))

    # --- the end -------------------------------------------------------------------------------------------

    def processes(self) -> Iterator[psutil.Process]:
        """Whatever lives over this folder, without this process."""
        return living(self.folder)

    def close(self) -> None:
        """Kill everything, until nothing is left."""
        if "app" in vars(self):
            self.app.store.close()
        while left := list(self.processes()):
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            pause(0.02)
        if self.slurm:
            self.slurm.stop()
        for one in self._served:
            one.wait()


def living(folder: Path) -> Iterator[psutil.Process]:
    """Processes in whose words, environment or place the folder stands, without this one."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                told = (process.cwd(), *process.cmdline(), *process.environ().values())
                if any(str(folder) in word for word in told):
                    yield process


def _local(file: Path) -> OnCluster:
    job_id, _, name = file.name.removesuffix(".json").partition("~")
    end = json.loads(file.read_bytes())["end"]
    word = "" if end is None else {"succeeded": "good", "lost": "lost"}.get(end[0], "bad")
    return OnCluster("local", job_id, name, word)
