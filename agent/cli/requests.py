"""The flags of a request, shared by `run` and `submit`, and the request that one command line makes.

`wk run job.yaml`, `wk run --gpu 1 --output model.pt -- python train.py`, or both: flags go over the file, which may
as well be a batch script, a submit line of another tool or a manifest (`agent/native`). What is rarely given has no
flag of its own: `--set FIELD=VALUE` reaches every field of a request, a value as in YAML.

Never: a flag for a credential.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from agent.app import App
    from states.spec import Request

RESOURCES = "What it needs"
PLACES = "Where it reads and writes"
MORE = "How it is run"


def _option(panel: str, words: str, metavar: str | None = None, *names: str) -> Any:
    return typer.Option(*names, help=words, metavar=metavar, rich_help_panel=panel, show_default=False)


def _parameter(name: str, kind: Any, option: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


FILE = _parameter(
    "file",
    Path | None,
    typer.Argument(
        help="The request: a YAML file, a batch script, a submit line, or a Job manifest.",
        metavar="FILE",
        show_default=False,
    ),
)
FLAGS = (
    _parameter("name", str | None, _option(MORE, "A short name; the run's id begins with it.", "NAME")),
    _parameter("purpose", str | None, _option(MORE, "What kind of work it is (the library's key).", "TEXT")),
    _parameter(
        "gpu", str | None, _option(RESOURCES, "GPUs of each replica; 0 for a CPU job; `auto` sizes it.", "N")
    ),
    _parameter("cpu", float | None, _option(RESOURCES, "CPU cores of each replica.", "N")),
    _parameter("memory_mib", int | None, _option(RESOURCES, "Memory of each replica, MiB.", "N")),
    _parameter("replicas", int | None, _option(RESOURCES, "Nodes; 1 unless given.", "N")),
    _parameter("image", str | None, _option(RESOURCES, "Container image.", "IMAGE")),
    _parameter(
        "environment", str | None, _option(RESOURCES, "A working environment in the workspace.", "PATH")
    ),
    _parameter("lane", str | None, _option(MORE, "normal, idle (can be preempted), auto, cheap.", "LANE")),
    _parameter("priority", int | None, _option(MORE, "1 to 9; only if it must move.", "N")),
    _parameter("group", str | None, _option(MORE, "The group that is billed, if not the default.", "GROUP")),
    _parameter("cluster", str | None, _option(MORE, "A configured cluster, if not the default.", "CLUSTER")),
    _parameter(
        "workspace", str | None, _option(PLACES, "The folder it works in; this one unless given.", "DIR")
    ),
    _parameter(
        "outputs",
        list[str],
        _option(PLACES, "A file that must exist at the end (repeat).", "PATH", "--output"),
        [],
    ),
    _parameter(
        "mounts", list[str], _option(PLACES, "An extra mount, as given (repeat).", "MOUNT", "--mount"), []
    ),
    _parameter(
        "env", list[str], _option(MORE, "A variable of the job, NAME=VALUE (repeat).", "NAME=VALUE"), []
    ),
    _parameter("cadence_s", float | None, _option(MORE, "Seconds between signs of progress.", "S")),
    _parameter("time_limit_s", float | None, _option(MORE, "Limit of its running time.", "S")),
    _parameter(
        "insist",
        bool,
        _option(MORE, "Run it though it looks like a light, quick step.", None, "--insist"),
        False,
    ),
    _parameter(
        "settings",
        list[str],
        _option(
            MORE,
            "Any field of a request: --set max_restarts=0, --set policy.poll_s=5.",
            "FIELD=VALUE",
            "--set",
        ),
        [],
    ),
)
FIELDS = tuple(flag.name for flag in FLAGS if flag.name not in ("env", "settings"))


def takes_a_request(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the file, the flags and `ctx`, from which `request_of` makes the request."""
    own = inspect.signature(command, eval_str=True)
    kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in kept]
    command.__signature__ = own.replace(parameters=[FILE, *FLAGS, *parameters])  # type: ignore[attr-defined]
    return command


def request_of(ctx: typer.Context, app: App) -> Request:
    """The request of this command line. Raises UserFileError with all that is wrong in it."""
    from agent.cli.output import hint
    from agent.requestfile import pairs, request_from

    given = ctx.params
    configured = {"local": {}, **app.settings.clusters}
    kinds = {name: str(options.get("kind", name)) for name, options in configured.items()}
    return request_from(
        given["file"],
        flags={field: given[field] for field in FIELDS},
        env=pairs(given["env"], "--env"),
        settings=given["settings"],
        command=ctx.obj,
        default_workspace=app.settings.workspace,
        cwd=Path.cwd(),
        clusters=kinds,
        default_cluster=app.settings.cluster,
        tell=hint,
    )
