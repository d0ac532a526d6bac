"""A small Brain++ behind the fake `rjob` and `brainctl`: jobs, queues and their processes, all of it on disk.

One folder (FAKE_BRAINPP) holds `switches.json` (how it misbehaves, see SWITCHES), `jobs.json`, the jobs' logs and
exit codes, and `calls.jsonl`: one line for each call of a tool, with the identity it acted under. Each call does
one scheduling step under a lock; replicas are real processes that outlive it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from typing import Any

Job = dict[str, Any]
LANES = ("normal", "idle")
SWITCHES: dict[str, Any] = {
    "away": "",  # these calls (or "all") end with rc 1 and a network error
    "hang_s": 0.0,  # submit creates the job, then gives no answer for so long
    "queues": {"lab-a": ["team_gpu", "team_cpu"]},  # namespace -> groups with a queue
    "workspace_groups": ["home_group"],  # quota groups of the wrong kind
    "cpu": 2, "gpu": 2, "memory_mib": 8192,  # what each queue has
    "accounts": None,  # access key ids with a right to the namespace; None: any
    "unknown_for_inqueue": False,
    "starting_calls": 0,  # looks at a started job that still say Starting
    "stderr_noise": True,
    "created_but_failed": False,  # submit creates the job and ends with rc 1
    "no_answer": False,  # submit creates the job and says nothing of it
    "ignores_metadata_name": False,
    "priority": None, "group": None,  # what the created object has instead of what was asked
    "create_fails": False,  # the platform cannot create the replicas
    "log_after_s": 0.0,  # the log lags this far behind
    "late_lines": 0,  # logs calls after the end that still miss the last line
    "short_queues": 0,  # calls of `brainctl get queues` that come cut short
    "preempted_as": "Stopped",  # the word of a preempted idle job; "requeue": it goes back to the queue
    "grace_s": 0.3,
    "missing_is_an_error": False,  # get of a missing name: rc 1, `not found`, nothing else
    "gibberish": False,  # get prints what nobody can read
    "predict_old": False,  # counts as N/M
    "sends_to": None,  # one text instead of any refusal at submit, rc 1
}  # fmt: skip

LIVE = ("Created", "Inqueue", "Starting", "Running", "Restarting", "Killing")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def now() -> float:
    """Seconds since 1970."""
    return time.time()  # noqa: TID251 - a program of its own


class Platform:
    """The state, under its lock from `__enter__` to `__exit__`."""

    def __init__(self) -> None:
        self.root = os.environ["FAKE_BRAINPP"]
        self.jobs: dict[str, Job] = {}

    def path(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    def __enter__(self) -> Platform:
        self.lock = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.switches: dict[str, Any] = {**SWITCHES, **(self._load("switches.json") or {})}
        self.jobs = self._load("jobs.json") or {}
        return self

    def __exit__(self, *error: object) -> None:
        self._store("jobs.json", self.jobs)
        os.close(self.lock)

    def use(self, name: str) -> bool:
        """Count a numbered switch down; was it still above 0?"""
        left = self.switches[name]
        if left:
            self.switches[name] = left - 1
            self._store("switches.json", self.switches)
        return bool(left)

    def _load(self, name: str) -> Any:
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def _store(self, name: str, value: object) -> None:
        with open(self.path(name + ".new"), "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(self.path(name + ".new"), self.path(name))

    # --- who calls --------------------------------------------------------------------------------------

    def identity(self) -> str:
        """Whose keys are used: the caller's, or, when they are empty, those that lie on the host (RJOB 6)."""
        key, secret = (os.environ.get(f"BRAINPP_{n}") for n in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
        return f"key:{key}" if key and secret else "host"

    def note_call(self, tool: str, argv: list[str]) -> None:
        line = {"tool": tool, "argv": argv, "identity": self.identity(), "variables": sorted(os.environ)}
        with open(self.path("calls.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def greet(self, tool: str, argv: list[str]) -> None:
        """What every call meets first: the record, a proxy in the way, a network that is away."""
        self.note_call(tool, argv)
        if any(os.environ.get(name) for name in PROXIES):
            sys.exit(say_error("HTTP 407 Proxy Authentication Required"))
        away = self.switches["away"]
        if away == "all" or (away and argv and argv[0] in away.split(",")):
            sys.exit(say_error("Max retries exceeded: Temporary failure in name resolution"))
        accounts = self.switches["accounts"]
        if accounts is not None and self.identity() not in [f"key:{account}" for account in accounts]:
            sys.exit(say_error("this account has no right to operate[use] the namespace"))

    # --- the jobs ---------------------------------------------------------------------------------------

    def create(
        self, name: str, showname: str, at: tuple[str, str], figures: Job, command: list[str], options: Job
    ) -> Job:
        """A job in the queue. at: (namespace, group)."""
        namespace, group = at
        job = {
            "name": name, "showname": showname, "namespace": namespace, "group": group, "command": command,
            "figures": figures, "options": options, "phase": "Inqueue", "created_at": now(), "serial": len(self.jobs),
            "creator": self.identity(), "events": ["job is created", "waiting in the queue"], "ask": "",
            "started_at": None, "ended_at": None, "starting": self.switches["starting_calls"], "runs": 0,
        }  # fmt: skip
        if self.switches["create_fails"]:
            job |= {"phase": "CreatedFailed", "ended_at": now(), "events": ["ErrImagePull: no such image"]}
        self.jobs[f"{namespace}/{name}"] = job
        return job

    def find(self, namespace: str, name: str) -> Job | None:
        return self.jobs.get(f"{namespace}/{name}")

    def used(self, group_of: tuple[str, str], lanes: tuple[str, ...] = LANES) -> dict[str, int]:
        """What is in use in the queue of (namespace, group)."""
        used = {"cpu": 0, "gpu": 0, "memory": 0}
        for job in self.jobs.values():
            busy = job["phase"] in ("Starting", "Running", "Killing") and job["runs"]
            if busy and (job["namespace"], job["group"]) == group_of and job["figures"]["lane"] in lanes:
                for kind in used:
                    used[kind] += job["figures"][kind] * job["figures"]["replicas"]
        return used

    def has(self) -> dict[str, int]:
        return {
            "cpu": self.switches["cpu"], "gpu": self.switches["gpu"], "memory": self.switches["memory_mib"]
        }  # fmt: skip

    def fits(self, job: Job, lanes: tuple[str, ...] = LANES) -> bool:
        used, has = self.used((job["namespace"], job["group"]), lanes), self.has()
        return all(used[k] + job["figures"][k] * job["figures"]["replicas"] <= has[k] for k in used)

    def step(self) -> None:
        """Take note of ends, see kills through, start what fits; a normal job may take an idle one's place."""
        for job in self.jobs.values():
            self._collect(job)
        waiting = [job for job in self.jobs.values() if job["phase"] in ("Inqueue", "Restarting")]
        waiting.sort(key=lambda j: (j["figures"]["lane"] != "normal", -j["figures"]["priority"], j["serial"]))
        for job in waiting:
            job["phase"] = "Inqueue"
            if self.fits(job):
                self._start(job)
            elif job["figures"]["lane"] == "normal" and self.fits(job, ("normal",)):
                self._preempt_for(job)

    def kill(self, job: Job, why: str) -> None:
        if job["phase"] in ("Inqueue", "Restarting", "Created"):
            job |= {"phase": "Stopped", "ended_at": now()}
        elif job["phase"] in LIVE and not job["ask"]:
            job |= {"ask": why, "asked_at": now(), "phase": "Killing"}
            self._signal(job, signal.SIGTERM if why == "stop" else signal.SIGKILL)

    def _preempt_for(self, job: Job) -> None:
        for other in self.jobs.values():
            if other["figures"]["lane"] == "idle" and other["phase"] in ("Starting", "Running"):
                other["events"].append(f"replica is preempted by {job['name']}")
                self.kill(other, "preempt")

    def _start(self, job: Job) -> None:
        job |= {"phase": "Starting", "started_at": now(), "starting": self.switches["starting_calls"]}
        job["runs"] += 1
        job["events"].append("scheduled to node-a1; pulling the image")
        for rank in range(job["figures"]["replicas"]):
            spawn(
                job,
                rank,
                self.file(job, "log", rank),
                self.file(job, "pid", rank),
                self.file(job, "exit", rank),
            )

    def _collect(self, job: Job) -> None:
        if job["phase"] not in LIVE or not job["runs"]:
            return
        codes = [self._read(self.file(job, "exit", rank)) for rank in range(job["figures"]["replicas"])]
        pids = [self._read(self.file(job, "pid", rank)) for rank in range(job["figures"]["replicas"])]
        if job["ask"] and None in codes:
            late = now() - job["asked_at"] > self.switches["grace_s"]
            self._signal(job, signal.SIGKILL if late or job["ask"] == "preempt" else signal.SIGTERM)
        if job["phase"] == "Starting" and None not in pids:
            job["starting"] -= 1
            job["phase"] = "Running" if job["starting"] < 0 else "Starting"
        if any(code not in (None, 0) for code in codes) and None in codes and not job["ask"]:
            self._signal(job, signal.SIGKILL)  # one replica failed: the rest is taken down
        ended = [code for code in codes if code is not None]
        if len(ended) == len(codes):
            self._end(job, ended)

    def _end(self, job: Job, codes: list[int]) -> None:
        job["ended_at"] = now()
        if job["ask"] == "preempt":
            word = self.switches["preempted_as"]
            job |= {"ask": "", "phase": "Restarting" if word == "requeue" else word}
            for rank in range(len(codes)):
                for kind in ("exit", "pid"):
                    os.unlink(self.file(job, kind, rank))
            if word == "requeue":
                job |= {"runs": 0, "ended_at": None}
        elif job["ask"] == "stop":
            job |= {"ask": "", "phase": "Stopped"}
        else:
            job["phase"] = "Failed" if any(codes) else "Succeeded"

    def _signal(self, job: Job, number: int) -> None:
        for rank in range(job["figures"]["replicas"]):
            pid = self._read(self.file(job, "pid", rank))
            if pid is not None and self._read(self.file(job, "exit", rank)) is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, number)

    def file(self, job: Job, kind: str, rank: int) -> str:
        return self.path(f"{job['namespace']}~{job['name']}~{rank}.{kind}")

    def _read(self, path: str) -> int | None:
        try:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        except FileNotFoundError:
            return None


def say_error(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


def spawn(job: Job, rank: int, log: str, pid_file: str, exit_file: str) -> None:
    """A replica as a process of its own, and one beside it that writes down how it ended."""
    middle = os.fork()
    if middle:
        os.waitpid(middle, 0)
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    if os.fork():
        os._exit(0)
    os.closerange(3, 256)  # the lock among them
    replica = os.fork()
    if replica == 0:
        _become(job, rank, log)
    _write(pid_file, replica)
    _, status = os.waitpid(replica, 0)
    _write(exit_file, os.waitstatus_to_exitcode(status) & 0xFF)
    os._exit(0)


def _become(job: Job, rank: int, log: str) -> None:
    try:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir("/")
        env = {"PATH": os.environ["PATH"], "HOME": "/", "HOSTNAME": f"{job['name']}-{rank}"}
        if job["options"]["env"].get("DISTRIBUTED_JOB") == "true":
            env |= {
                "NODE_RANK": str(rank),
                "NODE_COUNT": str(job["figures"]["replicas"]),
                "MASTER_ADDR": "127.0.0.1",
            }
        os.execvpe(job["command"][0], job["command"], {**env, **job["options"]["env"]})
    finally:
        os.write(2, b"exec failed\n")
        os._exit(127)


def _write(path: str, number: int) -> None:
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(str(number))
    os.replace(path + ".new", path)
