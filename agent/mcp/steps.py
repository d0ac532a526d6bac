"""The eight operations as tools: capacity, submit, list, get, logs, events, stop, delete.

Each makes exactly the calls it needs, and leaves no record and no timer (RULES A1, A2). Where the name is a run of
Watchkeeper's, a step is about its present attempt, and a stop or a delete goes through the run's own machine. The
docstrings are what a chat agent's model reads, so they are short.

Never: a delete whose name was not spelled out (A7); a log without its fence (I2).
"""

from __future__ import annotations

import re
from typing import Annotated, Unpack

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from agent.clusters.base import JobLine, NotThere
from agent.mcp import shapes
from agent.mcp.desk import Desk
from agent.mcp.fence import fenced
from agent.mcp.wanted import Wanted, request_of
from states.job import Job
from states.observation import Observation, Phase
from states.words.wording import plain

TAIL_LINES = 200
"""E2."""
TAIL_LINES_MAX = 2000
TailLines = Annotated[int, Field(ge=1, le=TAIL_LINES_MAX)]
ATTEMPT = re.compile(r"(?P<run>.+)-a\d+-[0-9a-f]{8}")
"""An attempt's name begins with its run's id (`states/naming.py`)."""
EVENT_CHARS_MAX = 400
LIST_MAX = 200


class Steps:
    """The tools, over one desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def capacity(self, charged_group: str = "", cluster: str = "") -> shapes.Free:
        """Free GPUs, CPU and memory of your group, or of a group the task names."""
        where = self._desk.service.cluster(cluster)
        free = where.capacity(charged_group or None)
        return shapes.Free(cluster=where.name, **free.model_dump())

    def submit(
        self, *, predict_only: bool = False, dry_run: bool = False, **wanted: Unpack[Wanted]
    ) -> shapes.Sent:
        """Submit one job that nobody watches. For a whole run use delegate. predictOnly and dryRun only preview."""
        service = self._desk.service
        request, place = self._desk.placed(request_of(wanted))
        if predict_only or dry_run:
            seen = service.preview_once(request, workspace=place, how="render" if dry_run else "predict")
            text = fenced(seen.note, "the cluster's words")
            return shapes.Sent(submitted=False, cluster=seen.cluster, name=seen.name, text=text)
        sent = service.submit_once(request, workspace=place)
        note = plain(sent.note)
        return shapes.Sent(
            submitted=True, cluster=sent.cluster, name=sent.name, job=sent.cluster_job_id, note=note
        )

    def list(self, everyone: bool = False, cluster: str = "") -> shapes.Jobs:
        """Jobs on the cluster (yours), and the live delegated runs."""
        service = self._desk.service
        found = service.cluster(cluster).list(everyone=everyone)[:LIST_MAX]
        known = {row["id"] for row in service.ports.store.boards(limit=LIST_MAX)}
        live = tuple(row["id"] for row in service.ports.store.boards(live=True, limit=LIST_MAX))
        return shapes.Jobs(jobs=tuple(_line(line, known) for line in found), runs=live)

    def get(self, job: str, cluster: str = "") -> shapes.Got:
        """One job's status, phase and replicas."""
        ours = self._desk.ours(job)
        run = self._desk.shown(ours.id) if ours else None
        if ours is not None and not ours.attempts:
            return shapes.Got(run=run)
        _, where, ref = self._desk.meant(job, cluster)
        seen = where.observe([ref]).get(ref.name)
        if seen is not None and seen.phase is not Phase.gone:
            return shapes.Got(job=job_of(ref.cluster_job_id or ref.name, ref.name, seen, ours), run=run)
        if run is None:
            raise NotThere(f"{where.name} has no job {job!r}; the tool list shows what is there")
        return shapes.Got(run=run)

    def logs(
        self,
        job: str,
        tail_lines: TailLines = TAIL_LINES,
        cursor: str = "",
        cluster: str = "",
    ) -> shapes.Log:
        """The end of a job's log. Raise tailLines only when it does not settle the matter."""
        _, where, ref = self._desk.meant(job, cluster)
        piece = where.logs(ref, lines=tail_lines, cursor=cursor)
        text = fenced(self._desk.service.ports.redact(piece.text), f"log of {job}")
        return shapes.Log(
            job=job, ready=piece.ready, truncated=piece.truncated, cursor=piece.cursor, text=text
        )

    def events(self, job: str, cluster: str = "") -> shapes.Events:
        """A job's scheduling and lifecycle events, oldest first."""
        _, where, ref = self._desk.meant(job, cluster)
        return shapes.Events(
            job=job,
            events=tuple(
                shapes.Event(
                    at=one.at,
                    kind=plain(one.kind),
                    message=plain(one.message, EVENT_CHARS_MAX),
                    count=one.count,
                )
                for one in where.events(ref)[-LIST_MAX:]
            ),
        )

    def stop(self, job: str, reason: str = "", cluster: str = "") -> shapes.Done:
        """Halt a job or a run. Its record stays."""
        ours = self._desk.ours(job)
        if ours is not None:
            self._desk.service.stop(ours.id, by=self._desk.by, reason=reason)
            run = self._desk.carried(ours.id)
            return shapes.Done(asked="stop", job=ours.id, state=run.state, note=run.note)
        _, where, ref = self._desk.meant(job, cluster)
        where.stop(ref)
        return shapes.Done(asked="stop", job=job)

    def delete(self, job: str, name: str, cluster: str = "") -> shapes.Done:
        """Remove an ended job's record. Only on an explicit request; name spells the job's name out."""
        ours = self._desk.ours(job)
        names = {ours.id, *(attempt.name for attempt in ours.attempts)} if ours else {job}
        if name not in names:
            raise ToolError(
                f"nothing was deleted: name must spell out {ours.id if ours else job!r}, word for word, and only a "
                "person's explicit request deletes a record"
            )
        if ours is not None:
            self._desk.service.delete(ours.id, name=name, by=self._desk.by)
            note = self._desk.carry(ours.id)
            return shapes.Done(asked="delete", job=ours.id, note=note)
        _, where, ref = self._desk.meant(job, cluster)
        where.delete(ref)
        return shapes.Done(asked="delete", job=job)


def job_of(job: str, name: str, seen: Observation, ours: Job | None) -> shapes.ClusterJob:
    """One observation, its words made safe."""
    words = ", ".join(filter(None, (plain(seen.native, 80), plain(seen.reason))))
    return shapes.ClusterJob(
        job=job,
        name=name,
        phase=str(seen.phase),
        words=words,
        node=plain(seen.node, 80),
        replicas=seen.replicas,
        replicas_ready=seen.replicas_ready,
        exit_code=seen.exit_code,
        run=ours.id if ours else "",
    )


def _line(line: JobLine, known: set[str]) -> shapes.ClusterJob:
    told = job_of(line.cluster_job_id, plain(line.name, 80), line.observation, None)
    belongs = ATTEMPT.fullmatch(line.name)
    run = belongs["run"] if belongs and belongs["run"] in known else ""
    return told.model_copy(update={"run": run})
