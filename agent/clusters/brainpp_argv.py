"""A submission as the words of one `rjob submit`: flags, mounts, variables, and the command as it is run inside.

Flags and their spelling: RJOB 2 (those that at least two public projects use). Every value that comes from a
request is one word of its own or stands behind `=`, so none can be taken for a flag; the command is passed as it
was written, behind a fixed shell text that knows it only as "$@".

Never: put a word of a request into a shell text; let extra arguments change whose job it is or where it lives;
put a key into an argument.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from agent.clusters import wrapper
from agent.clusters.base import Refused, Submission, refuse_odd_texts
from states.credentials import Pair
from states.spec import Spec

PrivateMachine = Literal["group", "yes", "no"]
KEYS = ("BRAINPP_ACCESS_KEY_ID", "BRAINPP_SECRET_ACCESS_KEY")
PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy")
WORKSPACE_WAIT_S = 60
"""How long the job waits for its mounts: they may be empty for the first seconds (RJOB 7)."""
NO_WORKSPACE_CODE = 97
"""The job's exit status when the workspace did not appear: nothing was run."""
KILL_AFTER_S = 30
TIMED_OUT_CODE = 124
"""What `timeout` ends with when the limit was reached."""

ENTRY = (
    "w=$1 e=$2 s=$3 f=$4 d=$5; shift 5; i=0; "
    f'until [ -d "$w" ] && [ -e "${{s:-$w}}" ]; do i=$((i+1)); if [ "$i" -gt {WORKSPACE_WAIT_S} ]; then '
    'echo "watchkeeper: $w is not as it was prepared: is it mounted?" >&2; '
    f'exit {NO_WORKSPACE_CODE}; fi; sleep 1; done; cd "$w" || exit {NO_WORKSPACE_CODE}; '
    'if [ -n "$e" ]; then PATH=$e/bin:$PATH VIRTUAL_ENV=$e; export PATH VIRTUAL_ENV; fi; '
    'if [ -z "$s" ]; then exec "$@"; fi; '
    'case "${DISTRIBUTED_JOB:+${NODE_RANK:-$(uname -n)}}" in ""|0) ;; '
    "*) d=$d/rank-${NODE_RANK:-$(uname -n)} ;; esac; "
    'exec sh "$s" $f "$d" -- "$@"'
)
"""What runs in each replica: wait for the workspace, go there, put the environment first, run the wrapper.

$1 workspace, $2 environment or "", $3 wrapper or "", $4 its flags, $5 its folder (each replica but the first has
one of its own), then the command.
"""

_WHOSE = (
    "--name",
    "--metadata-name",
    "--namespace",
    "--charged-group",
    "--group",
    "--predict-only",
    "--dry-run",
)
_RESTARTS = ("-r", "--restart-policy", "--auto-restart", "--backoff_limit", "--enable-self-health")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SOURCE = re.compile(r"[a-z][a-z0-9+.-]{0,40}://[^:\s]{1,1000}:/[^:\s]{0,1000}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Site(NamedTuple):
    """What the settings say of the place. storage: path as people write it -> source that is mounted there,
    "" where it is in every job by itself."""

    storage: Mapping[str, str] = {}
    private_machine: PrivateMachine = "group"


def submit_argv(
    submission: Submission,
    pair: Pair,
    site: Site,
    *,
    script: str = "",
    only: str = "",
    hide_values: bool = False,
) -> list[str]:
    """The words behind `rjob`. script: path of the staged wrapper, "" for none. only: `--predict-only` or
    `--dry-run`, which create nothing. hide_values: variables without their values, for showing.

    Raises Refused for what cannot be said to this platform; nothing was created then.
    """
    spec = submission.spec
    check(submission)
    lane = ["--task-type=idle"] if spec.lane == "idle" else [
        "--task-type=normal", f"--priority={spec.priority}", f"--private-machine={site.private_machine}"
    ]  # fmt: skip
    own = "" if _asks_for_restarts(spec.extra_args) else "--restart-policy=never"
    together = "--gang-start=true" if spec.replicas > 1 else ""
    avoid = ",".join(f"node/{node}" for node in spec.exclude_nodes)
    words = [
        "submit",
        f"--name={submission.name}",
        f"--metadata-name={submission.name}",
        f"--namespace={pair.namespace}",
        f"--charged-group={pair.group}",
        f"--image={spec.image}",
        f"--gpu={spec.gpu}",
        f"--cpu={math.ceil(spec.cpu)}",
        f"--memory={spec.memory_mib}",
        f"--replica={spec.replicas}",
        *lane,
        own,
        together,
        f"--negative-tags={avoid}" if avoid else "",
        *(f"--mount={mount}" for mount in mounts(spec, site.storage)),
    ]
    for name, value in variables(submission).items():
        words += ["-e", f"{name}={'(hidden)' if hide_values else value}"]
    words = [*filter(None, words), *([f"{only}=true"] if only else []), *spec.extra_args]
    return [*words, "--", *command(submission, script)]


def check(submission: Submission) -> None:
    """Refuse what would be misread, rather than send it."""
    spec = submission.spec
    if not _NAME.fullmatch(submission.name):
        raise Refused(
            f"{submission.name!r} cannot be a job's name here: at most 40 of a-z, 0-9 and `-`, a letter first"
        )
    if not spec.command:
        raise Refused("there is no command to run")
    if not spec.image:
        raise Refused(
            "Brain++ runs every job in a container image; name it with `image:`", cause="image.not_found"
        )
    if not spec.workspace.startswith("/"):
        raise Refused("the workspace must be an absolute path, as it is seen inside the job")
    shown = [spec.image, spec.workspace, spec.environment, *spec.mounts, *spec.exclude_nodes]
    if any(_CONTROL.search(word) for word in shown):
        raise Refused("an image, path, mount or node has a line break or another control character in it")
    refuse_odd_texts(spec)
    for name in spec.env:
        if not _VARIABLE.fullmatch(name):
            raise Refused(f"{name!r} cannot be the name of a variable: letters, digits and `_` only")
        if name in KEYS:
            raise Refused(f"{name} must not be in a job's environment; take it out of `env` (rule B4)")
    _check_extra(spec.extra_args)


def _check_extra(extra: Sequence[str]) -> None:
    """Extra arguments go through verbatim, but for what decides whose job it is, or ends the options."""
    for word in extra:
        flag = word.partition("=")[0]
        if word in ("--", "---"):
            raise Refused(f"{word} cannot be among the extra arguments: it ends the options")
        # The tool may take the beginning of a flag for the flag.
        begins = flag.startswith("--") and len(flag) > 2
        taken = next((whose for whose in _WHOSE if begins and whose.startswith(flag)), "")
        if taken:
            raise Refused(
                f"{flag} cannot be among the extra arguments: {taken} is set from the run's name and its group;"
                " use `group:` for another configured group"
            )


def _asks_for_restarts(extra: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in _RESTARTS for word in extra)


def may_be_restarted(spec: Spec) -> bool:
    """Can the platform run it again under the same name? Then the wrapper replaces the earlier record."""
    return spec.lane == "idle" or _asks_for_restarts(spec.extra_args)


# --- mounts ------------------------------------------------------------------------------------------------


def mounts(spec: Spec, storage: Mapping[str, str]) -> list[str]:
    """`source:/path` of each mount, the workspace's first; the same one once.

    A mount is given as a path (seen in the job as it is written), as `path:/path in the job`, or as the
    platform's own `gpfs://...:/path`, which goes through as it is. The workspace brings the whole folder that the
    settings map, so that an environment beside it is there too. Raises Refused for a path that nothing maps.
    """
    found = dict.fromkeys(_workspace_mounts(spec, storage))
    found |= dict.fromkeys(_as_given(mount, storage) for mount in spec.mounts)
    return [mount for mount in found if mount]


def _workspace_mounts(spec: Spec, storage: Mapping[str, str]) -> Iterator[str]:
    for path in (spec.workspace, spec.environment):
        path = posixpath.normpath(path) if path else ""
        home = _home(path, storage)
        if home is not None:
            yield f"{storage[home]}:{_trimmed(home)}" if storage[home] else ""
        elif path == posixpath.normpath(spec.workspace):
            raise _unmapped(path)


def _as_given(mount: str, storage: Mapping[str, str]) -> str:
    if "://" in mount:
        if not _SOURCE.fullmatch(mount):
            raise Refused(f"the mount {mount!r} is not source://path:/path in the job", cause="mount.missing")
        return mount
    path, _, inside = mount.partition(":")
    path = posixpath.normpath(path)
    inside = posixpath.normpath(inside) if inside else path
    if not path.startswith("/") or not inside.startswith("/") or ":" in inside:
        raise Refused(
            f"the mount {mount!r} is not an absolute path, or path:/path in the job", cause="mount.missing"
        )
    home = _home(path, storage)
    if home is None:
        raise _unmapped(path)
    if not storage[home] and inside != path:
        raise Refused(f"{path} is in every job already, and only under that path", cause="mount.missing")
    rest = path[len(_trimmed(home)) :]
    return f"{storage[home].rstrip('/')}{rest}:{inside}" if storage[home] else ""


def _home(path: str, storage: Mapping[str, str]) -> str | None:
    """The longest mapped folder that holds the path."""
    holding = (home for home in storage if f"{path}/".startswith(f"{_trimmed(home)}/"))
    return max(holding, key=len, default=None) if path else None


def _trimmed(home: str) -> str:
    return home.rstrip("/")


def _unmapped(path: str) -> Refused:
    return Refused(
        f"it is not known where {path} lives for the cluster: map it in the cluster's options, as"
        " `storage: {/shared: gpfs://fs1/team/shared}` (or to an empty text if every job has it already)",
        cause="mount.missing",
    )


# --- inside the job ----------------------------------------------------------------------------------------


def variables(submission: Submission) -> dict[str, str]:
    """The job's variables: the distributed switch for several replicas, the proxy, the run's own, its name."""
    spec = submission.spec
    found = {"DISTRIBUTED_JOB": "true"} if spec.replicas > 1 else {}
    if spec.proxy:
        found |= {spelt: spec.proxy for low in PROXY_NAMES for spelt in (low, low.upper())}
    return {**found, **spec.env, wrapper.ID_VARIABLE: submission.name}


def command(submission: Submission, script: str) -> list[str]:
    """The command as each replica runs it (`ENTRY`), with `timeout` before it where the run has a limit."""
    spec = submission.spec
    limit = (
        ["timeout", "-k", str(KILL_AFTER_S), str(math.ceil(spec.time_limit_s))]
        if spec.time_limit_s is not None
        else []
    )
    workspace = posixpath.normpath(spec.workspace)
    folder = str(wrapper.run_dir(workspace, submission.name)) if script else ""
    flags = "-r" if may_be_restarted(spec) and script else ""
    inside = [workspace, spec.environment, script, flags, folder]
    return ["sh", "-c", ENTRY, "watchkeeper", *inside, *limit, *spec.command]


def asked(spec: Spec) -> dict[str, float]:
    """What all replicas come to, by kind as quota refusals name them; memory in bytes."""
    each = {"cpu": math.ceil(spec.cpu), "memory": spec.memory_mib * 2.0**20, "gpu": spec.gpu}
    return {kind: figure * spec.replicas for kind, figure in each.items()}
