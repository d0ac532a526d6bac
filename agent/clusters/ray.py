"""The Ray cluster: the Jobs API over HTTP, with what the state API adds about nodes and logs. No Ray is needed here.

The attempt's name is the submission id, of which Ray takes each only once: a second lock beside our own. What a job
asked for, its fingerprint, owner and folder stand in its metadata. docs/clusters/ray.md says what was seen on a real
Ray; options are in `ray_options`, the words' meaning in `ray_states`.

Never: take a missing record for an outcome; take a dashboard that answers for a head that knows its jobs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from agent.clock import SystemClock
from agent.clusters import ray_delete, ray_logs, ray_nodes, ray_request, ray_runs, wrapper
from agent.clusters.base import (
    ClusterError,
    JobLine,
    LogPiece,
    NotThere,
    Ref,
    Refused,
    Submission,
    Submitted,
    Unclear,
    Unreachable,
)
from agent.clusters.ray_delete import JOBS
from agent.clusters.ray_doctor import Finding, examine
from agent.clusters.ray_http import Answer, Http, last_line
from agent.clusters.ray_nodes import Node, moment
from agent.clusters.ray_options import Options
from agent.clusters.ray_states import normalise
from agent.paths import state_dir
from states.observation import Capabilities, Capacity, Match, NativeEvent, Observation
from states.spec import Spec

__all__ = ["RayCluster", "normalise"]

INNER_STATUS = re.compile(r"Request failed with status code (\d+)")
"""The head hands a submit to an agent and wraps that one's answer into a 500 of its own."""
CLOCKS_APART = timedelta(seconds=5)
"""A head that began less than this after the submit may be the one that took it."""
NODES_MAX = 10_000

Record = Mapping[str, Any]


class RayCluster:
    """The `Cluster` protocol on Ray. Raises Unreachable where the dashboard or what stands behind it is away.

    options: see `Options`; `secrets`: name -> value, given by the composition root, asked only for `token`.
    """

    kind: ClassVar[str] = "ray"

    def __init__(self, name: str = "ray", options: Mapping[str, Any] | None = None) -> None:
        given = dict(options or {})
        secret: Callable[[str], str | None] = given.pop("secrets", lambda _: None)
        self.name = name
        self.options = Options.model_validate(given)
        self.http = Http(self.options, secret)
        self._notes = ray_runs.Notes(self.options.root or state_dir() / "ray" / name)
        self.capabilities = Capabilities(
            name_is_unique=True,
            visible_within_s=0.0,
            submit_timeout_s=self.options.submit_timeout_s + 5.0,
            wrapper=self.options.workspace_visible,
            lanes=("normal",),
            keeps_ended_s=None,
            tells_log_time=self.options.workspace_visible,
            own_defaults=True,
            needs_credentials=(self.options.token,) if self.options.token else (),
        )

    # --- asking about jobs ---------------------------------------------------------------------------------

    def find(self, name: str, *, fingerprint: str = "", owner: str = "") -> Sequence[Match]:
        """The one job of that submission id, if the head knows it."""
        record = self._record(name) if ray_request.SAFE_NAME.fullmatch(name) else None
        if record is None:
            return ()
        seen = normalise(_native(record, None, SystemClock().now()))
        return (
            Match(
                cluster_job_id=name,
                name=name,
                phase=seen["phase"],
                ours=ray_request.is_ours(record, fingerprint, owner),
                submitted_at=moment(record.get("start_time")),
            ),
        )

    def observe(self, refs: Sequence[Ref]) -> Mapping[str, Observation]:
        """One call for all jobs and one for the nodes; without that one it goes on, and tells less."""
        at = SystemClock().now()
        records = {str(record["submission_id"]): record for record in self._records()}
        nodes = self._nodes_if_told()
        head = next((node for node in nodes or () if node.head and node.alive), None)
        seen = {}
        for ref in refs:
            record = records.get(ref.cluster_job_id or ref.name)
            native = self._native(record, nodes, at) if record else self._missing(ref, head, at)
            seen[ref.name] = Observation(taken_at=at, **normalise(native))
        return seen

    def list(self, *, everyone: bool = False) -> Sequence[JobLine]:
        """Jobs that a Watchkeeper submitted, or all that were submitted; Ray itself knows no persons."""
        at = SystemClock().now()
        records = sorted(self._records(), key=lambda record: record.get("start_time") or 0)
        nodes = self._nodes_if_told()
        lines = []
        for record in records:
            ours = ray_request.FINGERPRINT in (record.get("metadata") or {})
            if ours or everyone:
                name = str(record["submission_id"])
                seen = Observation(taken_at=at, **normalise(self._native(record, nodes, at)))
                lines.append(JobLine(cluster_job_id=name, name=name, observation=seen, ours=ours))
        return tuple(lines)

    def logs(self, ref: Ref, *, lines: int = 200, cursor: str = "", head: bool = False) -> LogPiece:
        """From the run's folder where the workspace is visible (also when the head forgot the job), else from the
        node's driver log through the head."""
        try:
            record = self._known(ref)
        except NotThere:
            name = ref.cluster_job_id or ref.name
            folder = self._notes.folder(name) if ray_request.SAFE_NAME.fullmatch(name) else None
            if folder is None:
                raise
            record = {"submission_id": name, "metadata": {ray_runs.FOLDER: str(folder)}}
        return ray_logs.read(
            self.http, record, lines=lines, cursor=cursor, head=head, now=SystemClock().now()
        )

    def events(self, ref: Ref) -> Sequence[NativeEvent]:
        """Submitted, started, ended: Ray keeps no other story of a job."""
        record = self._known(ref)
        seen = normalise(_native(record, None, SystemClock().now()))
        submitted = moment(record.get("start_time"))
        waits = str(record.get("message") or "")[:300] if record["status"] == "PENDING" else ""
        told = [NativeEvent(at=submitted, kind="Submitted", message=waits)]
        if (began := seen.get("started_at")) is not None:
            # The wrapper writes whole seconds, and may be "before" the submit of the same second.
            told.append(NativeEvent(at=max(began, submitted or began), kind="Started", message=seen["node"]))
        if (ended := seen.get("ended_at")) is not None:
            words = ": ".join(filter(None, (seen["native"], seen.get("reason", ""))))
            told.append(NativeEvent(at=ended, kind="Ended", message=words))
        return tuple(told)

    def capacity(self, group: str | None = None) -> Capacity:
        """Of the nodes that are alive; groups mean nothing here. What tasks use is some seconds old."""
        nodes = self._nodes()
        told = ray_nodes.used_by_autoscaler(self.http.get("/api/cluster_status").json())
        records = self._records()
        running = [
            (str(record.get("driver_node_id")), ray_request.request_of(record))
            for record in records
            if record["status"] == "RUNNING"
        ]
        waiting = [record for record in records if record["status"] == "PENDING"]
        queued = sum("withdrawn" not in ray_runs.facts(ray_runs.folder_of(record)) for record in waiting)
        return ray_nodes.capacity(nodes, told, running, queued).model_copy(update={"group": group or ""})

    # --- acting on jobs ------------------------------------------------------------------------------------

    def submit(self, submission: Submission) -> Submitted:
        """One POST. A submission id that this very job has already is the answer of an earlier call."""
        sent = self._body(submission)
        workspace = _workspace(submission.spec)
        if self.options.workspace_visible:
            try:
                wrapper.stage(workspace)
                folder = wrapper.run_dir(workspace, submission.name)
                folder.mkdir(exist_ok=True)
                self._notes.keep(submission.name, folder)
            except OSError as error:
                reason = f"{error.filename or workspace} cannot be written: {error.strerror}"
                raise Refused(f"{reason}; give another workspace", cause="mount.permission") from None
        answer = self.http.send("POST", JOBS, sent, timeout_s=self.options.submit_timeout_s)
        if answer.status == 200:
            return Submitted(submission.name, ray_request.note(sent, submission.spec, self.options))
        if "already exists" in answer.text:
            return self._adopted(submission)
        raise self._not_accepted(answer)

    def stop(self, ref: Ref) -> None:
        """TERM to every process of the job, and KILL after Ray's own grace (3 s). One that waits is withdrawn first:
        Ray alone would start it and stop it then."""
        record = self._known(ref)
        if record["status"] in ray_logs.TERMINAL:
            return
        folder = ray_runs.folder_of(record)
        if record["status"] == "PENDING" and folder is not None and folder.is_dir():
            try:
                ray_runs.withdraw(folder, SystemClock().now())
            except OSError as error:
                raise Unreachable(f"the folder {folder} cannot be written: {error.strerror}") from None
        answer = self.http.send("POST", f"{JOBS}{record['submission_id']}/stop")
        if answer.status not in (200, 404):
            raise self.http.failure(answer)

    def delete(self, ref: Ref) -> None:
        """Remove the record, and what Ray leaves in its place; what lies in the workspace stays."""
        record = self._known(ref, left_over=True)
        ray_delete.remove(self.http, record, SystemClock().now())
        self._notes.drop(str(record["submission_id"]))

    # --- before a job --------------------------------------------------------------------------------------

    def predict(self, submission: Submission) -> str:
        """Whether a node could ever take it, and whether one has room now. Ray itself makes no predictions."""
        request = ray_request.request_of(self._body(submission))
        totals = [node.total for node in self._nodes() if node.alive]
        if why := ray_nodes.too_large(request, totals):
            return f"it {why}" + ("; the autoscaler would have to add one" if self.options.autoscales else "")
        free = self.capacity()
        asked = ", ".join(ray_nodes.shown(*part) for part in request.items())
        room = (free.free_cpu or 0) >= request.get("CPU", 0) and (free.block_gpu or 0) >= request.get(
            "GPU", 0
        )
        return f"it fits ({asked}); " + ("there is room now" if room else "it would wait for room")

    def render(self, submission: Submission) -> str:
        """The call and its JSON body, without the values of variables."""
        return ray_request.rendered(self._body(submission), submission.spec, self.options)

    def doctor(self) -> Sequence[Finding]:
        """Dashboard, version, clock, Jobs API, nodes: what is fine, and how to mend the rest."""
        return examine(self.http, self._nodes, SystemClock().now())

    # --- parts ---------------------------------------------------------------------------------------------

    def _body(self, submission: Submission) -> dict[str, Any]:
        spec = submission.spec
        at_home = submission.model_copy(
            update={"spec": spec.model_copy(update={"workspace": _workspace(spec)})}
        )
        ray_request.check(at_home, self.options)
        script = ray_runs.script_at(_workspace(spec)) if self.options.workspace_visible else None
        sent = ray_request.body(at_home, self.options, script=script)
        if spec.exclude_nodes:
            request = ray_request.request_of(sent)
            excluded = ray_nodes.avoided(spec.exclude_nodes, request, self._nodes())
            sent = ray_request.body(at_home, self.options, script=script, excluded=excluded)
        return sent

    def _adopted(self, submission: Submission) -> Submitted:
        record = self._record(submission.name)
        if record is not None and ray_request.is_ours(record, submission.fingerprint, submission.owner):
            return Submitted(submission.name, "Ray had it already: an earlier call had arrived")
        raise Refused(f"another job has the submission id {submission.name}; nothing was created")

    def _not_accepted(self, answer: Answer) -> ClusterError:
        inner = INNER_STATUS.findall(answer.text)
        said = f"Ray: {last_line(answer.text)}"
        if answer.status == 400 or inner[-1:] == ["400"]:
            return Refused(said)
        if answer.status in (404, 405):
            return Refused(f"nothing at {self.options.address} speaks Ray's Jobs API; check `address:`")
        if answer.status in (429, 502, 503, 504) or "No available agent" in answer.text:
            return Unreachable(said, retry_after_s=15.0)
        return Unclear(f"{said}; the job may exist")

    def _records(self) -> Sequence[Record]:
        """All jobs that were submitted (programs that connect by themselves are not jobs, nor is what a deleted one
        left over). Raises Unreachable."""
        found = self.http.get(JOBS).json()
        if not isinstance(found, list):
            raise Unclear("Ray's list of jobs cannot be read; check `address:`")
        jobs = [record for record in found if record.get("submission_id") and record.get("status")]
        return [record for record in jobs if not ray_delete.is_left_over(record)]

    def _record(self, name: str, *, left_over: bool = False) -> Record | None:
        answer = self.http.get(f"{JOBS}{name}")
        record = answer.json() if answer.status == 200 else None
        if answer.status == 404 and "does not exist" not in answer.text:
            raise Unreachable(
                f"what answers at {self.options.address} is not Ray's Jobs API; check `address:`"
            )
        if not record or record.get("submission_id") != name:
            return None
        return record if left_over or not ray_delete.is_left_over(record) else None

    def _known(self, ref: Ref, *, left_over: bool = False) -> Record:
        name = ref.cluster_job_id or ref.name
        safe = ray_request.SAFE_NAME.fullmatch(name)
        record = self._record(name, left_over=left_over) if safe else None
        if record is None:
            raise NotThere(f"no job {name} on {self.name}")
        return record

    def _nodes(self) -> Sequence[Node]:
        return ray_nodes.nodes(self.http.get("/api/v0/nodes", detail="1", limit=str(NODES_MAX)).json())

    def _nodes_if_told(self) -> Sequence[Node] | None:
        try:
            return self._nodes()
        except (Unreachable, Unclear):
            return None

    def _native(self, record: Record, nodes: Sequence[Node] | None, at: datetime) -> dict[str, Any]:
        own = {"autoscales": self.options.autoscales, "beat_s": self.options.heartbeat_s}
        return {**_native(record, nodes, at), **own}

    def _missing(self, ref: Ref, head: Node | None, at: datetime) -> dict[str, Any]:
        """The head keeps the table of jobs, and loses it with itself unless it has a store outside. The program may
        have outlived it; where its folder lies is noted here."""
        name = ref.cluster_job_id or ref.name
        began = head.started_at if head else None
        younger = (
            began is not None and ref.submitted_at is not None and began > ref.submitted_at + CLOCKS_APART
        )
        known = ray_runs.facts(self._notes.folder(name) if ray_request.SAFE_NAME.fullmatch(name) else None)
        return {
            "missing": True, "head_younger": younger, "now": at, "beat_s": self.options.heartbeat_s, **known
        }  # fmt: skip


def _native(record: Record, nodes: Sequence[Node] | None, at: datetime) -> dict[str, Any]:
    """Ray's record and what is known beside it, as `normalise` reads them."""
    native = {
        **record,
        **ray_runs.facts(ray_runs.folder_of(record)),
        "request": ray_request.request_of(record),
        "now": at,
    }
    native["time_limit_s"] = (record.get("metadata") or {}).get(ray_request.LIMIT)
    native["node"] = {"name": record.get("driver_node_id") or ""}
    if nodes is not None:
        native["nodes"] = [node.total for node in nodes if node.alive]
        where = next((node for node in nodes if node.id == record.get("driver_node_id")), None)
        if where is not None:
            native["node"] = {"name": where.name, "alive": where.alive}
    return native


def _workspace(spec: Spec) -> str:
    return os.path.abspath(os.path.expanduser(spec.workspace or "."))
