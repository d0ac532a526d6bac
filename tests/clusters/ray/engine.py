"""Starts a real Ray on this machine in a PID namespace of its own, so that one kill ends every daemon and every job.

Ray comes from a virtual environment of its own (`make engines` puts it into .engines/ray, from the hashed pins beside
this file), so that the product's environment stays without it.

Never: `ray stop`, which would end every Ray of the machine; a port among those that Ray's workers take.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.clusters.base import ClusterError
from agent.clusters.local_time import monotonic_s, pause
from agent.clusters.ray_http import Http
from agent.clusters.ray_nodes import Node, nodes
from agent.clusters.ray_options import Options

ROOT = Path(__file__).parents[3]
RAY = Path(os.environ.get("WATCHKEEPER_RAY", ROOT / ".engines" / "ray" / "bin" / "ray"))
REQUIRED = os.environ.get("WATCHKEEPER_REQUIRE_ENGINES") == "1"
"""Set where these tests must run; read when this file is imported, since the tests drop such variables."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PORTS = range(20_500, 29_000)
"""Workers take 10002 to 19999; the system gives its own from 32768 on."""
NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
START_S = 90.0
STORE_BYTES = 80_000_000


def need() -> None:
    """Skip the test, with the reason, where a real Ray cannot be started; fail where it is required."""
    why = ""
    if not RAY.exists():
        why = "Ray is not installed for the tests (make engines)"
    elif shutil.which("unshare", path=PATH) is None or subprocess.run([*namespace(), "true"]).returncode:
        why = (
            "this machine lets no PID namespace be made, and a Ray without one could not be ended for certain"
        )
    if why and REQUIRED:
        pytest.fail(f"a real Ray is required here: {why}")
    if why:
        pytest.skip(why)


@contextlib.contextmanager
def running(*figures: Mapping[str, int], **variables: str) -> Iterator[Ray]:
    """A `Ray` from its start to its end; skips or fails as `need`."""
    need()
    ray = Ray(*figures, **variables)
    try:
        ray.start()
        yield ray
    finally:
        ray.close()


def namespace() -> list[str]:
    return NAMESPACE if os.geteuid() == 0 else [*NAMESPACE, "--user", "--map-root-user"]


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, begun at a place that differs between processes."""
    found: list[int] = []
    offset = os.getpid() * 37 % len(PORTS)
    for port in [*PORTS[offset:], *PORTS[:offset]]:
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")


class Ray:
    """One cluster. address: URL of its dashboard. nodes: figures of each node, the head first (`num_cpus=2`, ...);
    each is called `n1`, `n2`, ... variables: for the daemons."""

    def __init__(self, *figures: Mapping[str, int], **variables: str) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="wkray"))  # sockets lie below it: the path must be short
        self.figures, self.variables = figures, variables
        self.ports = free_ports(4 + len(figures))
        self.address = f"http://127.0.0.1:{self.ports[2]}"
        self.http = Http(Options(address=self.address), lambda _: None)
        self._process: subprocess.Popen[bytes] | None = None

    # --- life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the head and its nodes, and wait until all of them are known. Fails with the last of the output."""
        script = self.root / "start.sh"
        # The first process of a namespace inherits orphans, and a shell that waits takes their ends in: one that is
        # dead and not taken in still counts as alive for Ray's own watchers.
        script.write_text(" && \\\n".join([*self._commands(), "while sleep 0.5; do :; done"]) + "\n")
        with (self.root / "start.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*namespace(), "sh", str(script)],
                env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.wait(lambda: len(self.alive()) == len(self.figures), START_S)

    def close(self) -> None:
        """End everything of it, and remove its folder."""
        self._kill()
        shutil.rmtree(self.root, ignore_errors=True)

    def start_anew(self) -> None:
        """End everything of it at once, and start its head again at the same address; nothing is left of its jobs."""
        self._kill()
        self.figures = self.figures[:1]
        self.start()

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": PATH, "HOME": str(self.root), "RAY_USAGE_STATS_ENABLED": "0", "LANG": "C.UTF-8",
            "AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_JOB_STOP_WAIT_TIME_S": "1", **self.variables,
        }  # fmt: skip

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.wait(lambda: not self._listening(), 10.0)

    def _commands(self) -> list[str]:
        gcs, client, dashboard, agent = self.ports[:4]
        common = f"--object-store-memory={STORE_BYTES} --disable-usage-stats"
        found = []
        for place, figures in enumerate(self.figures):
            given = " ".join(f"--{key.replace('_', '-')}={value}" for key, value in figures.items())
            if place == 0:
                where = (
                    f"--head --node-ip-address=127.0.0.1 --port={gcs} --ray-client-server-port={client}"
                    f" --dashboard-host=127.0.0.1 --dashboard-port={dashboard} --temp-dir={self.root}/r"
                )
            else:
                where = f"--address=127.0.0.1:{gcs} --node-ip-address=127.0.0.1"
            name = f"--node-name=n{place + 1} --dashboard-agent-listen-port={agent + place}"
            found.append(f"{RAY} start {where} {name} {given} {common}")
        return found

    # --- what others do with it ------------------------------------------------------------------------------

    def job_submit(self, *words: str) -> str:
        """What somebody else types: `ray job submit WORDS`, without waiting for the job. Returns its output."""
        argv = [str(RAY), "job", "submit", f"--address={self.address}", "--no-wait", *words]
        ran = subprocess.run(argv, env=self._environment(), capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    # --- what happens to it --------------------------------------------------------------------------------

    def kill(self, pattern: str) -> int:
        """KILL to its own processes whose command line holds the text; how many there were."""
        hit = self.processes(pattern)
        for pid in hit:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(hit)

    def processes(self, pattern: str) -> list[int]:
        """Its own processes whose command line holds the text."""
        return [pid for pid in self._inside() if pattern in _words(pid)]

    def _inside(self) -> list[int]:
        """Its processes, as this machine numbers them: all below the one that was started."""
        assert self._process is not None
        parents = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        found = {self._process.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return sorted(found)

    # --- what it says --------------------------------------------------------------------------------------

    def alive(self) -> list[Node]:
        try:
            told = nodes(self.http.get("/api/v0/nodes", detail="1").json())
            self.http.get("/api/jobs/")
        except ClusterError:
            return []
        return [node for node in told if node.alive]

    def wait(self, look: Any, within_s: float) -> None:
        until = monotonic_s() + within_s
        while not look():
            if monotonic_s() > until:
                log = (self.root / "start.log").read_text(errors="replace")[-2000:]
                pytest.fail(f"Ray: not within {within_s:g} s\n{log}")
            if self._process is not None and self._process.poll() is not None:
                pytest.fail(f"Ray ended:\n{(self.root / 'start.log').read_text(errors='replace')[-2000:]}")
            pause(0.05)

    def _listening(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.ports[2])) == 0


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
