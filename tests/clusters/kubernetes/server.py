"""The emulated API over real HTTP: routes, lists in pieces, watches, patches, dry runs, and the errors' exact bodies.

Never: answer what a real API server would refuse; write an answer in two packets (Nagle makes that 40 ms).
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from agent.clusters.local_time import monotonic_s, pause
from tests.clusters.kubernetes.asked import log_bytes, merged, selected, with_defaults
from tests.clusters.kubernetes.controllers import ControlPlane
from tests.clusters.kubernetes.failure import Failure
from tests.clusters.kubernetes.kubelet import Kubelet
from tests.clusters.kubernetes.schema import faults_of_a_job, strict_faults
from tests.clusters.kubernetes.store import Object, Store, copy, stamp

TOKEN = "a-token-of-the-tests"
WATCH_S = 0.1
"""A server may end a watch before its time; this one does, so that tests are quick."""

GROUPS = {
    "/api/v1": ("pods", "events", "services", "nodes", "resourcequotas"),
    "/apis/batch/v1": ("jobs",),
    "/apis/scheduling.k8s.io/v1": ("priorityclasses",),
    "/apis/kueue.x-k8s.io/v1beta1": ("workloads", "localqueues"),
}
_PATH = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?")


class Call(NamedTuple):
    """One request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


class Target(NamedTuple):
    """What a path means."""

    kind: str
    namespace: str | None
    name: str
    sub: str
    group: str


class Emulator:
    """One cluster. calls: every request so far. forbidden: (verb, kind) that the account may not."""

    def __init__(self, *, control_plane: bool = True) -> None:
        self.store = Store()
        self.plane = ControlPlane(self.store)
        self.calls: list[Call] = []
        self.forbidden: set[tuple[str, str]] = set()
        self.before: list[Callable[[Call], None]] = []
        """Each is called with the request, and may raise Failure or ConnectionError (no answer)."""
        self.after: list[Callable[[Call], None]] = []
        """The same once the request was carried out: an answer that is lost."""
        self.kubelet = Kubelet(self.store, self.plane, self.plane.settle) if control_plane else None
        handler = type("Handler", (_Handler,), {"emulator": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self._thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def kubeconfig(self) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": TOKEN}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": "lab"}}],
        }

    def write_kubeconfig(self, file: Path, url: str = "") -> str:
        """The kubeconfig into the file, whose path is given back. url: of another server than this one."""
        told = self.kubeconfig()
        told["clusters"][0]["cluster"]["server"] = url or self.url
        file.write_text(json.dumps(told), encoding="utf-8")
        return str(file)

    def close(self) -> None:
        if self.kubelet is not None:
            self.kubelet.close()
        self.http.shutdown()
        self.http.server_close()
        self._thread.join()

    def node(self, name: str, **allocatable: str) -> Object:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": stamp()}
        offers = {kind.replace("gpu", "nvidia.com/gpu"): value for kind, value in allocatable.items()}
        status = {"allocatable": offers, "conditions": [ready]}
        return self.store.create("nodes", {"metadata": {"name": name}, "spec": {}, "status": status})

    def lose_node(self, name: str) -> None:
        """Its kubelet falls silent: nothing on it changes any more, and its pods are to go."""
        with self.store.lock:
            assert self.kubelet is not None
            self.kubelet.dead_nodes.add(name)
            node = self.store.get("nodes", name)
            assert node is not None
            node["status"]["conditions"] = [
                {
                    "type": "Ready",
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "lastTransitionTime": stamp(),
                }
            ]
            self.store.changed("nodes", node)
            for pod in self.store.all("pods"):
                if pod["spec"].get("nodeName") == name:
                    self.plane.remove(pod)

    # --- requests ------------------------------------------------------------------------------------------

    def answer(self, call: Call) -> Object | bytes:
        """The body of the answer. Raises Failure."""
        if call.path == "/version":
            return {"major": "1", "minor": "36", "gitVersion": "v1.36.0-emulated"}
        if call.path == "/apis/kueue.x-k8s.io" and self.plane.kueue:
            return {"kind": "APIGroup", "preferredVersion": {"version": "v1beta1"}}
        if call.path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
            asked = call.body["spec"]["resourceAttributes"]
            return {"status": {"allowed": (asked["verb"], asked["resource"]) not in self.forbidden}}
        target = self._target(call.path)
        with self.store.lock:
            self._check_rights(call, target)
            made: Callable[[Call, Target], Object | bytes] = {
                "GET": self._read, "POST": self._create, "PATCH": self._patch, "DELETE": self._delete,
            }[call.method]  # fmt: skip
            done = copy(found) if isinstance(found := made(call, target), dict) else found
            if call.method != "GET":
                self.plane.settle()
            return done

    def _target(self, path: str) -> Target:
        found = _PATH.fullmatch(path)
        if found is None or found[3] not in GROUPS.get(found[1], ()):
            raise Failure(404, "NotFound", "the server could not find the requested resource")
        group = found[1].split("/")[2] if found[1].startswith("/apis") else ""
        return Target(found[3], found[2], unquote(found[4] or ""), found[5] or "", group)

    def _check_rights(self, call: Call, target: Target) -> None:
        verb = {"GET": "get" if target.name else "list", "POST": "create"}.get(
            call.method, call.method.lower()
        )
        if (verb, target.kind) in self.forbidden:
            where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
            said = f'User "me" cannot {verb} resource "{target.kind}" in API group "{target.group}" {where}'
            raise Failure(403, "Forbidden", f"{target.kind} is forbidden: {said}", {"kind": target.kind})

    def _found(self, target: Target) -> Object:
        item = self.store.get(target.kind, target.name, target.namespace or "")
        if item is None:
            what = f"{target.kind}.{target.group}" if target.group else target.kind
            details = {"name": target.name, "group": target.group, "kind": target.kind}
            raise Failure(404, "NotFound", f'{what} "{target.name}" not found', details)
        return item

    def _read(self, call: Call, target: Target) -> Object | bytes:
        if target.sub == "log":
            return self._log(call, self._found(target))
        if target.name:
            return self._found(target)
        chosen = selected(self.store.all(target.kind, target.namespace), call.query)
        start = 0
        version = self.store.version
        if token := call.query.get("continue"):
            version, start = json.loads(base64.b64decode(token))
            if version < self.store.oldest:
                said = "The provided continue parameter is too old to display a consistent list result"
                raise Failure(410, "Expired", said)
        limit = int(call.query.get("limit", 0)) or len(chosen)
        metadata: Object = {"resourceVersion": str(version)}
        if start + limit < len(chosen):
            metadata["continue"] = base64.b64encode(json.dumps([version, start + limit]).encode()).decode()
            metadata["remainingItemCount"] = len(chosen) - start - limit
        return {
            "kind": "List",
            "apiVersion": "v1",
            "metadata": metadata,
            "items": chosen[start : start + limit],
        }

    def _log(self, call: Call, pod: Object) -> bytes:
        if not pod["spec"].get("nodeName"):
            return b""
        node = pod["spec"]["nodeName"]
        if self.kubelet is None or node in self.kubelet.dead_nodes:
            raise Failure(
                500, "InternalError", f"Get https://{node}:10250/containerLogs: dial tcp: no route to host"
            )
        lines = self.kubelet.log(pod)
        name = pod["metadata"]["name"]
        if lines is None:
            state = (pod["status"].get("containerStatuses") or [{"state": {}}])[0]["state"]
            if "terminated" in state:
                return b""
            why = state.get("waiting", {}).get("reason", "ContainerCreating")
            raise Failure(400, "BadRequest", f'container "main" in pod "{name}" is waiting to start: {why}')
        if call.query.get("container") not in ("main", None):
            raise Failure(
                400, "BadRequest", f"container {call.query['container']} is not valid for pod {name}"
            )
        return log_bytes(list(lines), call.query)

    def _create(self, call: Call, target: Target) -> Object:
        body, name = call.body, call.body.get("metadata", {}).get("name", "")
        odd = strict_faults(target.kind, body)
        if odd and call.query.get("fieldValidation") == "Strict":
            what = f'{body.get("kind")} in version "v1" cannot be handled as a {body.get("kind")}'
            raise Failure(400, "BadRequest", f"{what}: strict decoding error: {', '.join(odd)}")
        if body.get("metadata", {}).get("namespace", target.namespace) != target.namespace:
            raise Failure(
                400, "BadRequest", "the namespace of the provided object does not match the namespace sent"
            )
        if target.kind == "jobs":
            self._check_job(body, name)
        if self.store.get(target.kind, name, target.namespace or "") is not None:
            what = f"{target.kind}.{target.group}" if target.group else target.kind
            details = {"name": name, "group": target.group, "kind": target.kind}
            raise Failure(409, "AlreadyExists", f'{what} "{name}" already exists', details)
        made = with_defaults(body, self.store.uid()) if target.kind == "jobs" else copy(body)
        if call.query.get("dryRun") == "All":
            return made
        answer: Object = copy(self.store.create(target.kind, made, target.namespace or ""))
        return answer

    def _check_job(self, body: Object, name: str) -> None:
        faults = faults_of_a_job(body)
        if faults:
            causes = [{"reason": reason, "message": said, "field": path} for path, reason, said in faults]
            told = [f"{path}: {said}" for path, _, said in faults]
            said = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
            details = {"name": name, "group": "batch", "kind": "Job", "causes": causes}
            raise Failure(422, "Invalid", f'Job.batch "{name}" is invalid: {said}', details)
        for quota in self.store.all("resourcequotas"):
            hard = quota["spec"]["hard"].get("count/jobs.batch")
            if hard is not None and len(self.store.all("jobs")) >= int(hard):
                said = f"exceeded quota: {quota['metadata']['name']}, requested: count/jobs.batch=1, used: "
                said += f"count/jobs.batch={hard}, limited: count/jobs.batch={hard}"
                raise Failure(403, "Forbidden", f'jobs.batch "{name}" is forbidden: {said}', {"name": name})

    def _patch(self, call: Call, target: Target) -> Object:
        item = self._found(target)
        changed = merged(copy(item), call.body)
        if target.kind == "jobs" and changed["spec"]["template"] != item["spec"]["template"]:
            said = f'Job.batch "{target.name}" is invalid: spec.template: Invalid value: {{}}: field is immutable'
            raise Failure(422, "Invalid", said)
        if changed.get("spec") != item.get("spec"):
            changed["metadata"]["generation"] = item["metadata"].get("generation", 1) + 1
        item.clear()
        item.update(changed)
        return self.store.changed(target.kind, item)

    def _delete(self, call: Call, target: Target) -> Object:
        item = self._found(target)
        wanted = (call.body or {}).get("preconditions", {}).get("uid")
        if wanted and wanted != item["metadata"]["uid"]:
            raise Failure(409, "Conflict", f"Precondition failed: UID in precondition: {wanted}")
        if target.kind == "pods":
            self.plane.remove(item)
        else:
            self.store.remove(target.kind, item)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """Buffered, so that head and body leave together."""
    emulator: Emulator

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        call = Call(self.command, parts.path, query, json.loads(data) if data else None)
        self.emulator.calls.append(call)
        try:
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                raise Failure(401, "Unauthorized", "Unauthorized")
            for hook in self.emulator.before:
                hook(call)
            if query.get("watch") == "true":
                self._watch(call)
                return
            body = self.emulator.answer(call)
            for hook in self.emulator.after:
                hook(call)
            code = 201 if call.method == "POST" else 200
        except Failure as failure:
            body, code = failure.body, failure.code
        except ConnectionError:
            self.close_connection = True
            return
        raw = isinstance(body, bytes)
        self._send(
            code, body if isinstance(body, bytes) else json.dumps(body).encode(), "text/plain" if raw else ""
        )

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

    def _send(self, code: int, body: bytes, kind: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind or "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _watch(self, call: Call) -> None:
        """Changes as lines, then a bookmark, then the end."""
        target = self.emulator._target(call.path)
        version = int(call.query["resourceVersion"])
        until = monotonic_s() + min(WATCH_S, float(call.query.get("timeoutSeconds", 60)))
        lines: list[bytes] = []
        while True:
            try:
                changes = list(self.emulator.store.since(target.kind, version))
            except LookupError as error:
                body = Failure(410, "Expired", str(error)).body
                lines.append(json.dumps({"type": "ERROR", "object": body}).encode())
                break
            for change in changes:
                version = change.version
                same = target.namespace in (None, change.item["metadata"].get("namespace"))
                if same and selected([change.item], call.query):
                    lines.append(json.dumps({"type": change.what, "object": change.item}).encode())
            if monotonic_s() >= until:
                mark = {"metadata": {"resourceVersion": str(version)}}
                lines.append(json.dumps({"type": "BOOKMARK", "object": mark}).encode())
                break
            pause(0.01)
        self._send(200, b"\n".join(lines) + b"\n")
