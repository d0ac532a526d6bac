"""What a submission becomes as the body of `POST /api/jobs/`: refused, or one JSON object.

Ray takes the command as a line for a shell, so it is built word by word with `shlex`. It replaces `$NAME` and
`${NAME}` in the values of variables, so a `$` is sent as a variable of its own that holds one.

Never: a word of the request that reaches the shell unquoted; a package install at the start of a job (C12).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.clusters import ray_runs, wrapper
from agent.clusters.base import Refused, Submission, refuse_odd_texts
from agent.clusters.ray_nodes import MIB
from agent.clusters.ray_options import Options
from states.spec import Spec

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Ray makes a file name of it, and keeps a dead record for ever where that fails."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DOLLAR = "0DOLLAR"
"""Sorts before every variable that a job can have, and so is set before any of them is looked at."""
RAY_REMOVES = re.compile(r"\$\{[A-Z0-9_]+\}")
PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy")
KILL_AFTER_S = 30
GUARD = (
    '(while if read -r _ _ _ up _ </proc/self/stat; then [ "$up" = $$ ]; else kill -0 $$; fi; do sleep 1; done;'
    " kill -9 -$$) </dev/null >/dev/null 2>&1 & "
)
"""Stands before the command. When a raylet dies, Ray ends the process that it started and no other; what that one had
started would run on beside its successor. The guard ends the whole group once the first process is gone. A dead one
that nobody took in still answers `kill -0`, so the guard looks at who its own parent is."""
NODE_LABEL = "ray.io/node-id"

FINGERPRINT, OWNER = "watchkeeper_fingerprint", "watchkeeper_owner"
REQUEST, LIMIT = "watchkeeper_request", "watchkeeper_time_limit_s"
OURS = (FINGERPRINT, OWNER, REQUEST, LIMIT, ray_runs.FOLDER)
SWITCHES: Mapping[str, str] = {
    "entrypoint-num-cpus": "entrypoint_num_cpus",
    "entrypoint-num-gpus": "entrypoint_num_gpus",
    "entrypoint-memory": "entrypoint_memory",
    "entrypoint-resources": "entrypoint_resources",
    "entrypoint-label-selector": "entrypoint_label_selector",
    "runtime-env-json": "runtime_env",
    "metadata-json": "metadata",
    "working-dir": "working_dir",
}
"""Switches of `ray job submit` that `extra_args` may hold, and the field of the body that each becomes."""
MAPPINGS = ("entrypoint_resources", "entrypoint_label_selector", "runtime_env", "metadata")


def check(submission: Submission, options: Options) -> None:
    """Raises Refused for what Ray could not do as asked."""
    spec = submission.spec
    if not SAFE_NAME.fullmatch(submission.name):
        raise Refused(f"{submission.name!r} cannot be a job's id here: letters, digits, `.`, `_`, `-` only")
    if not spec.command:
        raise Refused("there is no command to run")
    refuse_odd_texts(spec)
    if odd := [name for name in spec.env if not VARIABLE.fullmatch(name)]:
        raise Refused(f"{odd[0]!r} cannot be the name of a variable")
    if taken := [name for name, value in spec.env.items() if RAY_REMOVES.search(value)]:
        raise Refused(
            f"Ray would replace the ${{NAME}} in the value of {taken[0]}; set that variable in the command instead"
        )
    if spec.replicas != 1:
        raise Refused(
            "Ray starts one driver, which asks for its workers itself: set replicas to 1, and ask for the others in"
            " the program (a placement group, or ScalingConfig(num_workers=...))",
            cause="scheduling.unsatisfiable",
        )
    if spec.lane != "normal":
        raise Refused("Ray has no idle lane; leave `lane` out")
    if spec.mounts or (spec.image and not options.image_uri):
        raise Refused(
            "a job on this Ray cluster sees what its nodes see: leave image and mounts out, or set `image_uri: true`"
            " for the cluster where the nodes can start an image"
        )
    if options.workspace_visible and not Path(spec.workspace).is_dir():
        raise Refused(
            f"the workspace {spec.workspace!r} is not a folder; make it, or give another one",
            cause="mount.missing",
        )


def body(
    submission: Submission, options: Options, *, script: Path | None, excluded: Sequence[str] = ()
) -> dict[str, Any]:
    """The object to be sent. script: where the wrapper lies in a visible workspace, None for no wrapper. excluded:
    ids of the nodes to stay away from. Raises Refused for an extra argument that Ray's own command has not."""
    spec = submission.spec
    given = _given(spec.extra_args)
    working_dir = given.pop("working_dir", options.working_dir)
    sent: dict[str, Any] = {
        "submission_id": submission.name,
        "entrypoint": _entrypoint(submission, script),
        "entrypoint_num_cpus": spec.cpu,
        "entrypoint_num_gpus": spec.gpu,
        "entrypoint_memory": spec.memory_mib * MIB,
    }
    if excluded:
        nodes = ",".join(excluded)
        sent["entrypoint_label_selector"] = {NODE_LABEL: f"!in({nodes})" if excluded[1:] else f"!{nodes}"}
    runtime_env: dict[str, Any] = {**given.pop("runtime_env", {})}
    metadata: dict[str, str] = {**given.pop("metadata", {})}
    if installs := _installs(runtime_env):
        raise Refused(
            f"runtime_env: {installs} installs at the start of the job; build the environment before"
        )
    runtime_env["env_vars"] = {**runtime_env.get("env_vars", {}), **variables(spec, submission.name)}
    if script is not None and options.heartbeat_s != wrapper.BEAT_S:
        runtime_env["env_vars"]["WATCHKEEPER_HEARTBEAT_S"] = f"{options.heartbeat_s:g}"
    if working_dir:
        runtime_env["working_dir"] = working_dir
    if spec.image:
        runtime_env["image_uri"] = spec.image
    for key, value in given.items():
        sent[key] = {**sent.get(key, {}), **value} if key in MAPPINGS else value
    sent["runtime_env"] = runtime_env
    sent["metadata"] = metadata | _kept(submission, sent, script)
    return sent


def variables(spec: Spec, name: str) -> dict[str, str]:
    """The job's variables as Ray wants them; PATH keeps what the node has behind the environment's own."""
    plain = {"WATCHKEEPER_ID": name, "WATCHKEEPER_JOB": name}
    if spec.proxy:
        plain |= {spelt: spec.proxy for low in PROXY_NAMES for spelt in (low, low.upper())}
    plain |= spec.env
    sent = {key: value.replace("$", f"${{{DOLLAR}}}") for key, value in plain.items()}
    if sent != plain:
        sent[DOLLAR] = "$"
    if spec.environment:
        home = spec.environment.rstrip("/")
        sent["VIRTUAL_ENV"] = home
        sent["PATH"] = f"{home}/bin:{sent.get('PATH', '${PATH}')}"
    return sent


def request_of(record: Mapping[str, Any]) -> dict[str, float]:
    """What the entrypoint reserves, as we noted it; {} for a job that was not submitted by us: Ray does not tell."""
    try:
        found = json.loads((record.get("metadata") or {}).get(REQUEST, "{}"))
        return {str(key): float(value) for key, value in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def is_ours(record: Mapping[str, Any], fingerprint: str, owner: str) -> bool:
    """A fingerprint or owner left out agrees with any."""
    metadata = record.get("metadata") or {}
    return fingerprint in ("", metadata.get(FINGERPRINT)) and owner in ("", metadata.get(OWNER))


def note(sent: Mapping[str, Any], spec: Spec, options: Options) -> str:
    """What of the spec means nothing on this cluster, or was left out of what is sent."""
    notes = []
    if spec.exclude_nodes and "entrypoint_label_selector" not in sent:
        notes.append("no other node could take it, so none is left out")
    if not options.workspace_visible:
        notes.append("the nodes do not see the workspace (`workspace_visible: true` where they do)")
    if spec.group:
        notes.append("Ray has no groups")
    if spec.priority != 1:
        notes.append("Ray has no priorities")
    return "; ".join(notes)


def rendered(sent: Mapping[str, Any], spec: Spec, options: Options) -> str:
    """The call for people, without the values of variables (they may be secrets)."""
    shown = json.loads(json.dumps(sent))
    shown["runtime_env"]["env_vars"] = dict.fromkeys(shown["runtime_env"]["env_vars"], "...")
    lines = [f"POST {options.address}/api/jobs/", json.dumps(shown, indent=2, ensure_ascii=False)]
    return "\n".join([*lines, *(f"# {told}" for told in filter(None, [note(sent, spec, options)]))])


def _entrypoint(submission: Submission, script: Path | None) -> str:
    """The command line. In a visible workspace: there, by the wrapper, its output in the run's folder. Ray signals
    every process of a job itself, so the wrapper need not pass signals on."""
    spec = submission.spec
    words = list(spec.command)
    if spec.time_limit_s is not None:
        words = ["timeout", f"--kill-after={KILL_AFTER_S}", f"{spec.time_limit_s:g}", *words]
    if script is None:
        return f"{GUARD}exec {shlex.join(words)}"
    folder = wrapper.run_dir(spec.workspace, submission.name)
    wrapped = wrapper.argv(script, folder, words, whole_group=True, log=True)
    return f"cd {shlex.quote(spec.workspace)} || exit; {GUARD}exec {shlex.join(wrapped)}"


def _kept(submission: Submission, sent: Mapping[str, Any], script: Path | None) -> dict[str, str]:
    """Metadata by which the job is known again and judged: Ray's own record does not tell what a job asked for."""
    spec = submission.spec
    amounts = {
        "CPU": sent["entrypoint_num_cpus"],
        "GPU": sent["entrypoint_num_gpus"],
        "memory": sent["entrypoint_memory"],
        **sent.get("entrypoint_resources", {}),
    }
    kept = {
        FINGERPRINT: submission.fingerprint,
        OWNER: submission.owner,
        REQUEST: json.dumps({resource: amount for resource, amount in amounts.items() if amount}),
    }
    if spec.time_limit_s is not None:
        kept[LIMIT] = f"{spec.time_limit_s:g}"
    if script is not None:
        kept[ray_runs.FOLDER] = str(wrapper.run_dir(spec.workspace, submission.name))
    return kept


def _installs(runtime_env: Mapping[str, Any]) -> str:
    """The field that would install packages; the name of a conda environment that is there installs nothing."""
    conda = runtime_env.get("conda")
    named = conda is None or (isinstance(conda, str) and not conda.endswith((".yml", ".yaml")))
    return next((key for key in ("pip", "uv") if key in runtime_env), "" if named else "conda")


def _given(words: Sequence[str]) -> dict[str, Any]:
    """The extra arguments as fields of the body. Raises Refused."""
    found: dict[str, Any] = {}
    for name, value in _switches(words):
        field = SWITCHES.get(name)
        if field is None:
            known = ", ".join(f"--{switch}" for switch in SWITCHES)
            raise Refused(f"--{name} cannot be passed on; known: {known}", cause="command.bad_argument")
        found[field] = _value(name, field, value)
    if reserved := [key for key in found.get("metadata", {}) if key in OURS]:
        raise Refused(f"metadata: {reserved[0]} is Watchkeeper's own", cause="command.bad_argument")
    return found


def _switches(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            raise Refused(
                f"{word!r} is no switch of `ray job submit`; the command goes into `command`",
                cause="command.bad_argument",
            )
        name, equals, value = word[2:].partition("=")
        yield name, value if equals else next(rest, "")


def _value(name: str, field: str, text: str) -> Any:
    if field == "working_dir":
        if "://" not in text:
            raise Refused(f"--{name}: {text!r} is not uploaded; give a URI that the nodes can read, or none")
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(f"--{name}: {text!r} cannot be read", cause="command.bad_argument") from None
    wanted: tuple[type, ...] = (dict,) if field in MAPPINGS else (int, float)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise Refused(f"--{name}: {text!r} is not what it takes", cause="command.bad_argument")
    return value
