"""The single steps on a cluster: `submit`, `check`, `capacity`, `list`, `get`, `logs`, `events`, `stop`, `delete`.

Each makes exactly the calls it needs and leaves no record and no timer (A1, A2, A3). Where the name is a run of ours,
a step is about its present attempt, and a stop or a delete goes through the run's own machine.

Never: a delete whose name was not spelled out (A7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.acting import carried_on
from agent.cli.completion import complete_run
from agent.cli.output import ClusterName, Exit, Fault, JsonFlag, emit, opened, say, show, table
from agent.cli.requests import request_of, takes_a_request

if TYPE_CHECKING:
    from agent.app import App
    from agent.clusters.base import Cluster, Ref
    from states.job import Job

PANEL = "Single steps"
JobName = Annotated[
    str, typer.Argument(help="A run of yours, or any job's name or id.", autocompletion=complete_run)
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(rich_help_panel=PANEL)(submit)
    app.command(rich_help_panel=PANEL)(check)
    app.command(rich_help_panel=PANEL)(capacity)
    app.command("list", rich_help_panel=PANEL)(list_jobs)
    app.command(rich_help_panel=PANEL)(get)
    app.command(rich_help_panel=PANEL)(logs)
    app.command(rich_help_panel=PANEL)(events)
    app.command(rich_help_panel=PANEL)(stop)
    app.command(rich_help_panel=PANEL)(delete)


@takes_a_request
def submit(ctx: typer.Context, json_wanted: JsonFlag = False, **_: Any) -> None:
    """Submit once and return; nobody watches.

    Nothing is recorded and no timer is set: `wk run` takes the whole run.
    """
    app = opened()
    request = request_of(ctx, app)
    sent = app.service.submit_once(request, workspace=request.workspace or "")
    show(
        json_wanted,
        sent._asdict(),
        f"Submitted to {sent.cluster}: {sent.name} (cluster job {sent.cluster_job_id}).",
        sent.note,
        f"Nobody watches it. One look: wk check {sent.cluster_job_id}   To its end: wk watch {sent.cluster_job_id}",
    )


def check(
    job: JobName,
    cluster: ClusterName = "",
    lines: Annotated[int, typer.Option("--lines", "-n", help="Of its log.", min=1)] = 200,
    json_wanted: JsonFlag = False,
) -> None:
    """Look once at a job and judge how it does."""
    from agent.glance import glance
    from agent.readfile import result
    from states.policy import Policy
    from states.reading import Track

    app = opened()
    ours, where, ref = _meant(app, job, cluster)
    at = app.clock.now()
    seen = glance(
        where,
        ref,
        at=at,
        lines=lines,
        redact=app.redactor.text,
        policy=ours.policy if ours else Policy(),
        before=ours.track if ours else Track(),
    )
    judged = result(seen.looked) if seen.looked is not None else None
    observation = seen.observation.model_dump(mode="json")
    if json_wanted:
        emit({"job": job, "run": ours.id if ours else None, "observation": observation, "judged": judged})
        return
    say(*_checked_words(job, seen, judged))


def _checked_words(name: str, seen: Any, judged: dict[str, Any] | None) -> list[str]:
    from states.words.wording import number, plain

    shown = seen.observation
    words = ", ".join(filter(None, (plain(shown.native, 80), plain(shown.reason))))
    lines = [f"{name}: {shown.phase.value}" + (f" on {plain(shown.node, 80)}" if shown.node else "")]
    lines.append(f"the cluster's words: {words}" if words else "")
    if judged is None:
        return [*lines, f"log: {seen.log_said}"]
    progress = judged["progress"]
    if progress["step"] is not None:
        total = f"/{progress['total']}" if progress["total"] is not None else ""
        loss = f", loss {number(float(progress['loss']))}" if progress["loss"] is not None else ""
        lines.append(f"progress: {progress['unit'] or 'step'} {progress['step']}{total}{loss}")
    because = f" ({', '.join(judged['because'])})" if judged["because"] else ""
    lines.append(f"judged: {judged['verdict']}: {plain(judged['summary'])}{because}")
    if judged["cause"] != "none":
        lines.append(f"cause: {judged['cause']} ({judged['owner']})")
        lines += [f"  log line {quote['line']} | {plain(quote['text'])}" for quote in judged["evidence"][:4]]
    lines.append(f"advice: {plain(judged['advice'])}" if judged["advice"] else "")
    return lines


def capacity(
    group: Annotated[str, typer.Argument(help="A group, if not your own.", show_default=False)] = "",
    cluster: ClusterName = "",
    json_wanted: JsonFlag = False,
) -> None:
    """Show what is free now."""
    app = opened()
    where = _cluster(app, cluster)
    free = where.capacity(group or None)
    if json_wanted:
        emit({"cluster": where.name, **free.model_dump(mode="json")})
        return
    rows: list[tuple[str, float | None, float | None]] = [
        ("GPUs", free.free_gpu, free.total_gpu),
        ("CPU cores", free.free_cpu, free.total_cpu),
        ("memory MiB", free.free_memory_mib, free.total_memory_mib),
    ]
    cells = [[what, *("?" if n is None else f"{n:g}" for n in figures)] for what, *figures in rows]
    say(f"{where.name}" + (f", group {free.group}" if free.group else ""))
    say(*table(["", "FREE", "TOTAL"], cells, right=(1, 2)))
    say(f"largest block on one node: {free.block_gpu} GPUs" if free.block_gpu else "")
    say(f"queued: {free.queued}" if free.queued is not None else "")


def list_jobs(
    everyone: Annotated[bool, typer.Option("--everyone", help="Not only your own.")] = False,
    cluster: ClusterName = "",
    json_wanted: JsonFlag = False,
) -> None:
    """List the jobs that are on the cluster."""
    app = opened()
    found = _cluster(app, cluster).list(everyone=everyone)
    if json_wanted:
        emit(app.redactor.value([line.model_dump(mode="json") for line in found]))
        return
    if not found:
        say("The cluster has no job of yours.")
        return
    redact = app.redactor.text
    cells = [
        [j.cluster_job_id, redact(j.name), j.observation.phase.value, redact(j.observation.native)[:60]]
        for j in found
    ]
    say(*table(["ID", "NAME", "PHASE", "THE CLUSTER'S WORDS"], cells))


def get(job: JobName, cluster: ClusterName = "", json_wanted: JsonFlag = False) -> None:
    """Show one job as the cluster tells it."""
    app = opened()
    _, where, ref = _meant(app, job, cluster)
    seen = where.observe([ref]).get(ref.name)
    if seen is None or seen.phase.value == "gone":
        raise Fault(Exit.not_found, f"{where.name} has no job {job!r}; `wk list` shows what is there")
    told = seen.model_dump(mode="json", exclude_defaults=True) | {"phase": seen.phase.value}
    data: dict[str, Any] = app.redactor.value(told)
    show(
        json_wanted,
        data,
        f"{job}: {seen.phase.value}",
        *(f"{k}: {v}" for k, v in data.items() if k != "phase"),
    )


def logs(
    job: JobName,
    lines: Annotated[int, typer.Option("--lines", "-n", help="At most so many.", min=1)] = 200,
    head: Annotated[bool, typer.Option("--head", help="The beginning, not the end.")] = False,
    cursor: Annotated[
        str, typer.Option(help="Read on from where an earlier --json answer ended.", show_default=False)
    ] = "",
    cluster: ClusterName = "",
    json_wanted: JsonFlag = False,
) -> None:
    """Show the end of a job's log."""
    app = opened()
    _, where, ref = _meant(app, job, cluster)
    piece = where.logs(ref, lines=lines, cursor=cursor, head=head)
    text = app.redactor.text(piece.text)
    if json_wanted:
        emit(piece.model_dump(mode="json") | {"text": text})
    elif not piece.ready:
        say(f"{job} has no log yet.")
    else:
        say("\n".join(text.splitlines()), as_it_is=True)  # each state of a progress bar is a line


def events(job: JobName, cluster: ClusterName = "", json_wanted: JsonFlag = False) -> None:
    """Show the cluster's events about a job, oldest first."""
    app = opened()
    _, where, ref = _meant(app, job, cluster)
    found = where.events(ref)
    if json_wanted:
        emit(app.redactor.value([event.model_dump(mode="json") for event in found]))
        return
    for event in found:
        times = f" (x{event.count})" if event.count > 1 else ""
        when = event.at.isoformat(timespec="seconds") if event.at else "?"
        say(app.redactor.text(f"{when}  {event.kind}{times}  {event.message}".replace("\n", " ")))
    if not found:
        say("The cluster tells no events.")


def stop(
    job: JobName,
    reason: Annotated[str, typer.Option(help="Said in the reports.", show_default=False)] = "",
    cluster: ClusterName = "",
    json_wanted: JsonFlag = False,
) -> None:
    """Halt a job. Its record stays."""
    app = opened()
    if _run(app, job) is not None:
        applied = app.service.stop(job, reason=reason)
        carried_on(app, applied.job.id)
        now = app.store.load(applied.job.id)
        state = str(now.state)
        show(
            json_wanted,
            {"run": now.id, "state": state},
            f"{now.id}: {state.replace('_', ' ')}. Its record stays; the end is reported: wk follow {now.id}",
        )
        return
    _, where, ref = _meant(app, job, cluster)
    where.stop(ref)
    show(
        json_wanted, {"job": job, "asked": "stop"}, f"{where.name} was asked to stop {job}. Its record stays."
    )


def delete(
    job: JobName,
    name: Annotated[
        str, typer.Option("--name", help="The same name once more, spelled out.", show_default=False)
    ] = "",
    cluster: ClusterName = "",
    json_wanted: JsonFlag = False,
) -> None:
    """Remove the record of a job that has ended.

    Its name must be spelled out once more: --name.
    """
    app = opened()
    ours = _run(app, job)
    spelled = ours.id if ours else job
    if name not in ({ours.id, *(a.name for a in ours.attempts)} if ours else {job}):
        said = (
            f"{name!r} is not its name" if name else "a record is removed only when its name is spelled out"
        )
        raise Fault(Exit.refused, f"{said}: wk delete {job} --name {spelled}")
    if ours:
        applied = app.service.delete(job, name=name)
        carried_on(app, applied.job.id)
        show(
            json_wanted,
            {"run": ours.id, "asked": "delete"},
            f"The cluster's record of {ours.id} is being removed.",
        )
        return
    _, where, ref = _meant(app, job, cluster)
    where.delete(ref)
    show(json_wanted, {"job": job, "asked": "delete"}, f"{where.name} removed its record of {job}.")


def _cluster(app: App, name: str) -> Cluster:
    """The cluster that is asked about as a whole: the database is not even opened for it."""
    wanted = name or app.settings.cluster
    if wanted not in app.clusters:
        known = ", ".join(sorted(app.clusters))
        raise Fault(Exit.refused, f"there is no cluster {wanted!r}; configured: {known}")
    return app.clusters[wanted]


def _meant(app: App, text: str, cluster: str) -> tuple[Job | None, Cluster, Ref]:
    """The run of ours, if it is one, and where and how the job is known to its cluster. No call is made (A1)."""
    from agent.clusters.base import Ref

    ours = _run(app, text)
    if ours is None:
        return None, _cluster(app, cluster), Ref(text, text)
    where, ref = app.service.resolve(ours.id, cluster)
    return ours, where, ref


def _run(app: App, text: str) -> Job | None:
    """The run of ours that is meant, if it is one. The store is opened only for one that may be there."""
    from agent.peek import Peek

    peek = Peek.of(app.env)
    if peek is not None and not peek.may_know(text):
        return None
    from agent.store import Unknown

    try:
        job: Job = app.service.job(text)
    except Unknown:
        return None
    return job
