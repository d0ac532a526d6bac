"""Commands that stay until a run has ended: `run`, `follow`, `watch`, and the resident agent itself, `serve`.

Ctrl-C (and a terminal that goes away) leaves the run delegated and watched: by the resident agent, which is started
first where there is none.

Never: end while a delegated run is left without anybody watching.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.completion import complete_run
from agent.cli.output import ClusterName, Exit, Fault, JsonFlag, emit, hint, opened, show
from agent.cli.page import HOST, page_of
from agent.cli.requests import request_of, takes_a_request

if TYPE_CHECKING:
    from agent.app import App
    from states.job import Job

log = logging.getLogger("agent.serve")

PANEL = "A whole run"
Detach = Annotated[
    bool, typer.Option("--detach", "-d", help="Delegate and return; it is watched all the same.")
]
TICK_S = 0.2
IDLE_TICKS = 5
"""`serve --until-idle` asks the store once a second whether anything is left."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(rich_help_panel=PANEL)(run)
    app.command(rich_help_panel=PANEL)(follow)
    app.command(rich_help_panel=PANEL)(watch)
    app.command(rich_help_panel=PANEL)(serve)


@takes_a_request
def run(
    ctx: typer.Context,
    detach: Detach = False,
    request_id: Annotated[
        str,
        typer.Option(
            help="Your own key: the same one again gives the same run.", metavar="KEY", show_default=False
        ),
    ] = "",
    json_wanted: JsonFlag = False,
    **_: Any,
) -> None:
    """Delegate a run and follow it to its end.

    The request is a YAML file, flags with a command after `--`, or both: wk run job.yaml, wk run --gpu 1 -- python
    train.py. Ctrl-C leaves the run delegated and watched.
    """
    app = opened()
    request = request_of(ctx, app)
    with leaving() as leave:
        taken = app.service.delegate(request, workspace=request.workspace, request_id=request_id)
        if not taken.new and not json_wanted:
            hint(f"{request_id} was delegated before, as {taken.job.id}; nothing was delegated again.")
        _attend(app, taken.job, leave, detach=detach, json_wanted=json_wanted)


def follow(
    run: Annotated[
        str, typer.Argument(help="A run: its id or a beginning of it.", autocompletion=complete_run)
    ],
    json_wanted: JsonFlag = False,
) -> None:
    """Follow a run to its end, and carry it on if nobody else does."""
    app = opened()
    with leaving() as leave:
        _attend(app, app.service.job(run), leave, detach=False, json_wanted=json_wanted)


def watch(
    job: Annotated[str, typer.Argument(help="A job that is on the cluster already: its name or id.")],
    cluster: ClusterName = "",
    may_stop: Annotated[
        bool, typer.Option("--may-stop", help="Stop it without asking where it is clearly lost.")
    ] = False,
    detach: Detach = False,
    json_wanted: JsonFlag = False,
) -> None:
    """Watch a job that is on the cluster already, to its end.

    It is never resubmitted, and stopped without asking only with --may-stop.
    """
    app = opened()
    with leaving() as leave:
        taken = app.service.watch_text(job, cluster=cluster, may_stop=may_stop)
        _attend(app, taken.job, leave, detach=detach, json_wanted=json_wanted)


def serve(
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when nothing is left to watch; without the page.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Where the page listens; this machine alone unless given.")
    ] = HOST,
    port: Annotated[
        int | None,
        typer.Option(
            help="Of the page, if not 8787; 0 takes a free one.", min=0, max=65535, show_default=False
        ),
    ] = None,
    no_web: Annotated[bool, typer.Option("--no-web", help="Without the page and the API.")] = False,
    root_path: Annotated[
        str, typer.Option(help="What a reverse proxy puts before every path, as /wk.", show_default=False)
    ] = "",
    json_wanted: JsonFlag = False,
) -> None:
    """Be the resident agent, which carries every run, and serve the page and the API.

    A signal ends it; turns under way are finished first.
    """
    from agent.app import log_to_stderr
    from agent.carry import Carrier

    app = opened()
    log_to_stderr(app)
    with leaving() as leave:
        if not app.resident.claim():
            _is_resident_already(app, until_idle, json_wanted)
            return
        carrier, page = Carrier(app), None
        try:
            carrier.start()
            app.resident.ready()
            if not (no_web or until_idle):
                page = page_of(app, host=host, port=port, prefix=root_path, json_wanted=json_wanted)
            log.info("resident; live runs: %d", len(app.store.live_ids()))
            if json_wanted:
                emit({"event": "serving", "at": app.clock.now(), "live": len(app.store.live_ids())})
            _reside(app, carrier, leave, until_idle)
        finally:
            if page is not None:
                page.close()
            carrier.close()
            app.resident.release()
    log.info("ended; live runs: %d", len(app.store.live_ids()))
    if json_wanted:
        emit({"event": "ended", "at": app.clock.now(), "live": len(app.store.live_ids())})


@contextmanager
def leaving() -> Iterator[Event]:
    """Set by Ctrl-C, SIGTERM or a terminal that goes away; a second signal does not wait any longer.

    A signal that is ignored already (`nohup`) stays ignored.
    """
    leave = Event()

    def asked(number: int, frame: FrameType | None) -> None:
        if leave.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        leave.set()

    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {
        number: signal.signal(number, asked)
        for number in wanted
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield leave
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _attend(app: App, job: Job, leave: Event, *, detach: bool, json_wanted: bool) -> None:
    """Follow a delegated run, or leave it to the resident agent."""
    if detach:
        _hand_over(app, job, json_wanted)
        return
    from agent.app import log_to_file
    from agent.carry import Carrier
    from agent.follow import follow as follow_it

    log_to_file(app)
    carrier, ended = Carrier(app), None
    try:
        ended = follow_it(app, job.id, _view(job, json_wanted), carrier, leave)
        if ended is None:
            _say_left(job, json_wanted)
    finally:
        left_to = carrier.leave()
        if left_to is not None:
            hint(
                f"Watched in the background by process {left_to.pid}, which ends when nothing is left to watch."
            )
    raise typer.Exit(code_of(ended) if ended is not None else Exit.interrupted)


def code_of(job: Job) -> Exit:
    """The exit code for a run that has ended."""
    return {"succeeded": Exit.ok, "failed": Exit.failed}.get(str(job.state), Exit.not_done)


def _view(job: Job, json_wanted: bool) -> Any:
    from agent.cli import views

    if json_wanted:
        return views.JsonLines()
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return views.Lines()
    return views.Region(f"Ctrl-C leaves it running and watched; back with: wk follow {job.id}")


def _hand_over(app: App, job: Job, json_wanted: bool) -> None:
    from agent.background import ensure

    present, _ = ensure(app.env, app.state_dir, app.clock)
    document = {"run": job.id, "state": str(job.state), "watched_by": present.pid}
    show(
        json_wanted,
        document,
        f"{job.id} is delegated and watched in the background (process {present.pid}).",
        f"Follow it: wk follow {job.id}   How it stands: wk show {job.id}",
    )


def _say_left(job: Job, json_wanted: bool) -> None:
    if json_wanted:
        emit({"event": "left", "run": job.id})
    hint(f"{job.id} stays delegated. Follow it again: wk follow {job.id}   Stop it: wk stop {job.id}")


def _is_resident_already(app: App, until_idle: bool, json_wanted: bool) -> None:
    present = app.resident.holder()
    words = (
        f"process {present.pid}, since {present.started_at}" if present and present.pid else "just starting"
    )
    if not until_idle:
        raise Fault(Exit.refused, f"a resident agent is here already ({words}); one carries every run.")
    show(json_wanted, {"event": "present", "pid": present.pid if present else None})


def _reside(app: App, carrier: Any, leave: Event, until_idle: bool) -> None:
    """Until a signal, or until nothing is left. The place is given back before the last look at what is left, so that
    a run that is delegated in this very moment either sees no resident or is seen here."""
    from agent.carry import is_busy

    ticks = 0
    while not leave.wait(TICK_S):
        carrier.tend()
        ticks += 1
        if until_idle and ticks % IDLE_TICKS == 0 and not is_busy(app):
            app.resident.release()
            if not is_busy(app) or not app.resident.claim():
                return
            app.resident.ready()
