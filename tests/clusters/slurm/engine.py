"""Starts a real Slurm on this machine in a folder of its own, and ends everything of it, come what may.

munged, (mariadbd and slurmdbd), slurmctld, one slurmd for each virtual node. Needs root and the Debian packages in
PACKAGES. Whatever it started, and every job of it, carries its slurm.conf in its environment, and is found by that.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from agent.clusters.local_time import monotonic_s, pause
from tests.clusters.slurm.configuration import ASSOCIATIONS, NODES, write

PACKAGES = "slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"
PACKAGES_FOR_ACCOUNTING = "slurmdbd mariadb-server"
REQUIRED = os.environ.get("WATCHKEEPER_REQUIRE_ENGINES") == "1"
"""Set where these tests must run; read when this file is imported, since the tests drop such variables."""
STRANGER = "games"
"""A login that Debian always has: the tests' second person, who creates no account on the machine."""
AS_STRANGER = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def need(*programs: str, packages: str) -> None:
    """Skip the test, with the reason, where a real Slurm cannot be started; fail where it is required."""
    missing = [program for program in programs if shutil.which(program, path=PATH) is None]
    why = f"no {missing[0]} on this machine (apt-get install {packages})" if missing else ""
    why = why or ("a real Slurm can be started by root only" if os.geteuid() != 0 else "")
    if why and REQUIRED:
        pytest.fail(f"a real Slurm is required here: {why}")
    if why:
        pytest.skip(why)


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]


class Slurm:
    """One cluster. conf: its slurm.conf."""

    def __init__(self, root: Path, *, accounting: bool = False) -> None:
        self.root, self.accounting = root, accounting
        self.cgroups = accounting and _memory_can_be_bounded()
        self.ports = free_ports(3 + len(NODES))
        host = socket.gethostname().partition(".")[0]
        self.conf = write(root, host, self.ports, accounting=accounting, cgroups=self.cgroups)
        # The same cluster, except that nobody listens at the controller's port.
        self.nowhere = write(
            root, host, [*free_ports(1), *self.ports[1:]],
            accounting=False, cgroups=False, name="nowhere.conf", message_timeout_s=1,
        )  # fmt: skip
        self.env = {"PATH": PATH, "HOME": str(root), "SLURM_CONF": str(self.conf)}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    # --- life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        for folder in ("state", *(f"spool.{node}" for node in NODES)):
            (self.root / folder).mkdir()
        self._munge()
        if self.accounting:
            self._database()
        self.controller()
        for node in NODES:
            self._daemon(f"slurmd.{node}", "slurmd", "-D", "-N", node)
        self.wait(lambda: self.ok("scontrol", "ping"))
        if self.accounting:
            self.wait(lambda: "gpu" in self.out("sacctmgr", "-n", "list", "tres", "format=type,name%20"))
            self._run("sacctmgr", "-i", "-Q", stdin=ASSOCIATIONS.format(stranger=STRANGER))
        self.wait(self.is_idle)
        if self.accounting:
            self.wait(self._start_is_recorded)
            self.wait(self.is_idle)

    def _start_is_recorded(self) -> bool:
        """A controller that is not registered yet loses the starts of jobs: one is tried until it arrives."""
        job_id = self.sbatch("--job-name=first", script="#!/bin/sh\n")
        for _ in range(100):
            if "first" in self.out("sacct", "-X", "-n", "-P", "-j", job_id, "-o", "JobName"):
                return True
            pause(0.1)
        return False

    def stop(self) -> None:
        """End every daemon and job; nothing of this cluster is left when it returns."""
        for daemon in self._daemons.values():
            with contextlib.suppress(ProcessLookupError):
                daemon.send_signal(signal.SIGCONT)
                daemon.kill()
        while left := [process for process in psutil.process_iter() if self._is_ours(process)]:
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            pause(0.02)
        for daemon in self._daemons.values():
            daemon.wait()
        for folder in Path("/sys/fs/cgroup").glob(f"*/slurm_{NODES[0][:1]}*") if self.cgroups else ():
            for inner, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(inner)

    def controller(self, *words: str) -> None:
        """Start slurmctld (again)."""
        self._daemon("slurmctld", "slurmctld", "-D", "-i", *words)

    def end(self, daemon: str) -> None:
        """End one daemon as the system does it, so that it writes down what it knows."""
        self._daemons[daemon].terminate()
        self._daemons[daemon].wait(120)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """The controller stands still, as on a machine that swaps."""
        self._daemons["slurmctld"].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._daemons["slurmctld"].send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def without(self, daemon: str) -> Iterator[None]:
        """The daemon is away for a while; its state is on the disk."""
        self.end(daemon)
        try:
            yield
        finally:
            if daemon == "slurmctld":
                self.controller()
                self.wait(lambda: self.ok("scontrol", "ping"))
            else:
                self._accounting_daemon()

    def forget(self, *, recycle: bool = False) -> None:
        """The controller forgets every job. recycle: with its last id too, so that it counts from 1 again."""
        self.end("slurmctld")
        for file in (self.root / "state").glob("job_state*") if recycle else ():
            file.unlink()
        self.controller(*([] if recycle else ["-c"]))
        self.wait(lambda: self.ok("scontrol", "ping"))
        self.wait(self.is_idle)

    @contextlib.contextmanager
    def hiding_jobs(self) -> Iterator[None]:
        """The site shows nobody the jobs of others (root it does)."""
        said = self.conf.read_text()
        try:
            self._configure(f"{said}PrivateData=jobs\n", "jobs")
            yield
        finally:
            self._configure(said, "none")

    def _configure(self, text: str, private: str) -> None:
        self.conf.write_text(text)
        assert self.ok("scontrol", "reconfigure")
        self.wait(lambda: re.search(rf"PrivateData *= {private}\b", self.out("scontrol", "show", "config")))

    def clear(self) -> None:
        """No job lives, every node is free and up."""
        for user in ("root", STRANGER):
            self.ok("scancel", "--signal=KILL", "--full", "-u", user)
            self.ok("scancel", "-u", user)
        for node in NODES:
            if (
                not self.out("sinfo", "-h", "-N", "-n", node, "-o", "%t")
                .split()[0]
                .startswith(("idle", "mix", "alloc", "comp"))
            ):
                self.ok("scontrol", "update", f"nodename={node}", "state=resume")
        self.wait(lambda: not self.out("squeue", "-h", "-a", "-o", "%i") and self.is_idle())

    # --- asking --------------------------------------------------------------------------------------------

    def out(self, *argv: str) -> str:
        """What a command printed, whatever its status."""
        return self._run(*argv).stdout

    def ok(self, *argv: str) -> bool:
        return self._run(*argv).returncode == 0

    def sbatch(
        self,
        *words: str,
        script: str = "#!/bin/sh\nexec sleep 600\n",
        cwd: Path | None = None,
        stranger: bool = False,
    ) -> str:
        """Submit behind Watchkeeper's back, or as somebody else; the id."""
        who = AS_STRANGER if stranger else ()
        ran = self._run(*who, "sbatch", "--parsable", *words, stdin=script, cwd=cwd or self.root)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def has_recorded(self, job_id: str, *states: str) -> bool:
        """Whether accounting has these states of the job's tasks, newest record of each, and knows its name: it is
        behind the controller, and an end may reach it before the start does."""
        told = self.out("sacct", "-X", "-n", "-P", "-j", job_id, "-o", "State,JobName").splitlines()
        rows = [line.split("|", 1) for line in told]
        return [state.split()[0] for state, name in rows if name != "allocation"] == list(states)

    def is_idle(self) -> bool:
        states = self.out("sinfo", "-h", "-N", "-o", "%N %t").split("\n")
        return all(state.split()[1] == "idle" for state in states if state) and len(states) > len(NODES)

    def wait(self, look: Callable[[], object], within_s: float = 120.0) -> None:
        until = monotonic_s() + within_s
        while not look():
            if monotonic_s() > until:
                tail = "".join(
                    f"\n--- {log.name}\n{log.read_text(errors='replace')[-1500:]}"
                    for log in self.root.glob("*.log")
                )
                raise TimeoutError(f"the tests' Slurm is not there after {within_s:g} s{tail}")
            pause(0.05)

    # --- parts ---------------------------------------------------------------------------------------------

    def _run(self, *argv: str, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, env=self.env, input=stdin, capture_output=True, text=True, errors="replace", check=False,
            cwd=cwd or self.root, timeout=60,
        )  # fmt: skip

    def _daemon(self, name: str, *argv: str) -> None:
        with (self.root / f"{name}.out.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                argv, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.root,
                start_new_session=True,
            )  # fmt: skip

    def _munge(self) -> None:
        key = self.root / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.root.chmod(0o755)
        files: dict[str, str] = {
            "key-file": key.name,
            "socket": "munge.socket",
            "pid-file": "munge.pid",
            "seed-file": "munge.seed",
            "log-file": "munge.log",
        }
        words = [f"--{switch}={self.root / file}" for switch, file in files.items()]
        self._daemon("munged", "munged", "--foreground", "--force", "--num-threads=2", *words)
        self.wait((self.root / "munge.socket").exists)

    def _database(self) -> None:
        data, where = self.root / "database", self.root / "database.socket"
        scratch = self.root / "scratch"  # two databases being made at once would share names in one
        scratch.mkdir()
        bare = [
            "--no-defaults",
            "--user=root",
            f"--datadir={data}",
            f"--tmpdir={scratch}",
            "--skip-name-resolve",
        ]
        made = self._run(
            "mariadb-install-db", *bare, "--auth-root-authentication-method=normal", "--skip-test-db"
        )
        assert made.returncode == 0, made.stderr
        small = [
            "--innodb-buffer-pool-size=64M",
            "--innodb-log-file-size=16M",
            "--innodb-flush-log-at-trx-commit=0",
        ]
        self._daemon(
            "mariadbd", "mariadbd", *bare, *small, f"--socket={where}", "--bind-address=127.0.0.1",
            f"--port={self.ports[2]}", "--innodb-lock-wait-timeout=900", "--skip-log-bin",
        )  # fmt: skip
        self.wait(lambda: self.sql("select 1"))
        who = "slurm@'127.0.0.1'"
        grant = f"create user {who} identified by 'slurm'; grant all on slurm_acct_db.* to {who}"
        assert self.sql(f"create database slurm_acct_db; {grant}")
        self._accounting_daemon()
        assert self.ok("sacctmgr", "-i", "-Q", "add", "cluster", "test")

    def sql(self, statement: str) -> bool:
        """Change the database behind everybody's back."""
        socket_ = str(self.root / "database.socket")
        return self.ok("mariadb", "--no-defaults", "-uroot", "-S", socket_, "-e", statement)

    def _accounting_daemon(self) -> None:
        self._daemon("slurmdbd", "slurmdbd", "-D")
        self.wait(lambda: self.ok("sacctmgr", "-n", "list", "cluster"))

    def _is_ours(self, process: psutil.Process) -> bool:
        """slurmstepd writes its title over its environment: it is known by the log that it holds open."""
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            if process.name().startswith("slurmstepd"):
                return any(Path(file.path).is_relative_to(self.root) for file in process.open_files())
            return process.environ().get("SLURM_CONF") in (str(self.conf), str(self.nowhere))
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            return False


def _memory_can_be_bounded() -> bool:
    """Whether there is a writable memory controller of cgroups v1."""
    return os.access("/sys/fs/cgroup/memory/memory.limit_in_bytes", os.R_OK) and os.access(
        "/sys/fs/cgroup/memory", os.W_OK
    )


def running(root: Path, *, accounting: bool) -> Iterator[Slurm]:
    """A cluster for a session. Skips, or fails, where there can be none."""
    need("slurmctld", "slurmd", "munged", "sbatch", packages=PACKAGES)
    if accounting:
        need("slurmdbd", "mariadbd", "mariadb-install-db", packages=PACKAGES_FOR_ACCOUNTING)
    slurm = Slurm(root, accounting=accounting)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
