"""The emulated node agent: it runs a pod's command as a process of this machine, and keeps its log line by line.

`$(NAME)` and `$$` in commands and values are rewritten as the real one does. A volume that is a `hostPath` is the
folder itself, so it must be mounted where it is. A variable comes from a field of the pod or from a Secret. Images
are names only: `missing/...` is not found, `denied/...` may not be pulled, `slow/...` is pulled until the test says
otherwise.

Never: leave a process behind; write a log line before it is whole.
"""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from agent.clusters.local_time import monotonic_s, now, pause
from tests.clusters.kubernetes.controllers import ControlPlane
from tests.clusters.kubernetes.plane import INDEX, is_going, is_over, set_condition
from tests.clusters.kubernetes.store import Object, Store, stamp

GRACE_SHARE = 0.1
"""A second of grace is a tenth of one here."""
TICK_S = 0.01


def expanded(word: str, values: dict[str, str]) -> str:
    """`$$` is `$`; `$(NAME)` is the variable's value, or stays when there is none."""
    out, place = "", 0
    while place < len(word):
        if word[place] != "$" or place + 1 == len(word):
            out, place = out + word[place], place + 1
        elif word[place + 1] == "$":
            out, place = out + "$", place + 2
        elif word[place + 1] == "(" and (end := word.find(")", place)) > 0:
            name = word[place + 2 : end]
            out, place = out + values.get(name, word[place : end + 1]), end + 1
        else:
            out, place = out + word[place : place + 2], place + 2
    return out


class Container:
    """One process with its log: (time, bytes with their line end) each."""

    def __init__(self, argv: list[str], env: dict[str, str], folder: str) -> None:
        self.lines: list[tuple[str, bytes]] = []
        self._last = datetime.min.replace(tzinfo=UTC)
        self.process = subprocess.Popen(
            argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def kill(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._last = max(now(), self._last + timedelta(microseconds=1))
            self.lines.append((self._last.strftime("%Y-%m-%dT%H:%M:%S.%f000Z"), line))


class Kubelet:
    """Looks after all pods that have a node. `settle` is told when one changed."""

    def __init__(self, store: Store, plane: ControlPlane, settle: Callable[[], None]) -> None:
        self.store, self.plane, self._settle = store, plane, settle
        self.containers: dict[str, Container] = {}
        self.dead_nodes: set[str] = set()
        self._seen: set[str] = set()
        self._killed: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for container in self.containers.values():
            container.kill(signal.SIGKILL)
            container.process.wait()
            container.reader.join()
            if container.process.stdout is not None:
                container.process.stdout.close()

    def log(self, pod: Object) -> list[tuple[str, bytes]] | None:
        """Lines so far; None while no container was started."""
        found = self.containers.get(pod["metadata"]["uid"])
        return None if found is None else found.lines

    def _loop(self) -> None:
        while not self._stop.is_set():
            with self.store.lock:
                before = self.store.version
                for pod in self.store.all("pods"):
                    node = pod["spec"].get("nodeName")
                    if node and node not in self.dead_nodes and not is_over(pod):
                        self._look_after(pod)
                self._settle()
                changed = self.store.version != before
            pause(0.0 if changed else TICK_S)

    def _look_after(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self.containers:
            if is_going(pod):
                self._end(pod, {"exitCode": 137, "reason": "ContainerStatusUnknown"})
            else:
                self._start(pod)
            return
        container = self.containers[uid]
        code = container.process.poll()
        if code is not None:
            container.kill(signal.SIGKILL)
            container.reader.join(timeout=1)
            began = (
                pod["status"]["containerStatuses"][0]["state"].get("running", {}).get("startedAt", stamp())
            )
            code = code if code >= 0 else 128 - code
            end = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "startedAt": began}
            self._end(pod, end)
        elif is_going(pod):
            self._terminate(pod, container)
        elif self._is_late(pod):
            said = "Pod was active on the node longer than the specified deadline"
            pod["status"] |= {"reason": "DeadlineExceeded", "message": said}
            self._terminate(pod, container)

    def _start(self, pod: Object) -> None:
        spec = pod["spec"]["containers"][0]
        image = spec["image"]
        status: Object = {
            "name": spec["name"],
            "image": image,
            "restartCount": 0,
            "ready": False,
            "lastState": {},
        }
        pod["status"].setdefault("startTime", stamp())
        trouble = self._pull(pod, image)
        if trouble is not None:
            self._tell(pod, {**status, "state": {"waiting": trouble}})
            return
        try:
            values = self._values(pod, spec)
        except LookupError as error:
            trouble = {"reason": "CreateContainerConfigError", "message": str(error.args[0])}
            self._tell(pod, {**status, "state": {"waiting": trouble}})
            return
        argv = [expanded(word, values) for word in spec.get("command", [])]
        for volume in pod["spec"].get("volumes", []):
            mounts = [
                one["mountPath"] for one in spec.get("volumeMounts", []) if one["name"] == volume["name"]
            ]
            assert "hostPath" not in volume or mounts == [volume["hostPath"]["path"]], "mount it where it is"
        try:
            made = Container(argv, values, spec.get("workingDir") or "/")
        except (FileNotFoundError, PermissionError) as error:
            why = (
                "permission denied"
                if isinstance(error, PermissionError)
                else "executable file not found in $PATH"
            )
            said = f'container process could not be started: exec: "{argv[0]}": {why}'
            never = "1970-01-01T00:00:00Z"
            self._end(pod, {"exitCode": 128, "reason": "StartError", "message": said, "startedAt": never})
            return
        self.containers[pod["metadata"]["uid"]] = made
        set_condition(pod, "Ready", "True", "", "")
        self._tell(
            pod, {**status, "ready": True, "started": True, "state": {"running": {"startedAt": stamp()}}}
        )

    def _pull(self, pod: Object, image: str) -> Object | None:
        kind = image.partition("/")[0]
        if kind not in ("missing", "denied", "slow"):
            return None
        if kind == "slow":
            return {"reason": "ContainerCreating"}
        said = f'pull access denied for "{image}"'
        if kind == "missing":
            said = f'failed to pull image "{image}": not found'
        if pod["metadata"]["uid"] not in self._seen:
            self._seen.add(pod["metadata"]["uid"])
            self.plane.event(pod, "Pod", "Failed", said, warning=True)
            return {"reason": "ErrImagePull", "message": said}
        return {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}": {said}'}

    def _values(self, pod: Object, spec: Object) -> dict[str, str]:
        """The container's variables. Raises LookupError, in the real one's words, for a Secret that is not there."""
        path = os.environ.get("PATH", "/usr/bin:/bin")
        values = {"PATH": path, "HOSTNAME": pod["metadata"]["name"], "HOME": "/"}
        declared: dict[str, str] = {}
        for one in spec.get("env", []):
            if "valueFrom" in one:
                declared[one["name"]] = self._told(pod, one["valueFrom"])
            else:
                declared[one["name"]] = expanded(one.get("value", ""), declared)
        if INDEX in pod["metadata"]["annotations"]:
            declared.setdefault("JOB_COMPLETION_INDEX", pod["metadata"]["annotations"][INDEX])
        return {**values, **declared}

    def _told(self, pod: Object, source: Object) -> str:
        if "fieldRef" in source:
            path = source["fieldRef"]["fieldPath"]
            metadata = pod["metadata"]
            return str(metadata["annotations"][INDEX] if INDEX in path else metadata[path.rpartition(".")[2]])
        wanted = source["secretKeyRef"]
        secret = self.store.get("secrets", wanted["name"], pod["metadata"]["namespace"])
        if secret is None:
            raise LookupError(f'secret "{wanted["name"]}" not found')
        return base64.b64decode(secret["data"][wanted["key"]]).decode()

    def _terminate(self, pod: Object, container: Container) -> None:
        uid = pod["metadata"]["uid"]
        grace_s = pod["spec"].get("terminationGracePeriodSeconds", 30) * GRACE_SHARE
        if uid not in self._killed:
            self._killed[uid] = monotonic_s()
            container.kill(signal.SIGTERM)
        elif monotonic_s() - self._killed[uid] >= grace_s:
            container.kill(signal.SIGKILL)

    @staticmethod
    def _is_late(pod: Object) -> bool:
        limit = pod["spec"].get("activeDeadlineSeconds")
        began = pod["status"]["containerStatuses"][0]["state"].get("running", {}).get("startedAt")
        if limit is None or began is None:
            return False
        return now() - datetime.fromisoformat(began) >= timedelta(seconds=limit)

    def _tell(self, pod: Object, status: Object) -> None:
        phase = "Running" if "running" in status["state"] else "Pending"
        if pod["status"].get("containerStatuses") != [status] or pod["status"]["phase"] != phase:
            pod["status"] |= {"containerStatuses": [status], "phase": phase}
            self.store.changed("pods", pod)

    def _end(self, pod: Object, end: Object) -> None:
        spec = pod["spec"]["containers"][0]
        state = {"terminated": {**end, "finishedAt": stamp()}}
        before = (pod["status"].get("containerStatuses") or [{"restartCount": 0}])[0]
        known = {"name": spec["name"], "image": spec["image"], "lastState": {}, **before}
        status = {**known, "ready": False, "state": state}
        pod["status"] |= {
            "containerStatuses": [status],
            "phase": "Failed" if end["exitCode"] else "Succeeded",
        }
        set_condition(pod, "Ready", "False", "PodCompleted", "")
        if is_going(pod):
            pod["metadata"]["deletionGracePeriodSeconds"] = 0
        self.store.changed("pods", pod)
        if is_going(pod):
            self.plane.vanish(pod)
