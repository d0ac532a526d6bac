"""No word of a request becomes another word, a flag, a line or a program, on any cluster: it arrives or is refused.

What each cluster is sent is read back as its own receiver reads it: an argv by place, a line for a shell by a shell's
rules, a manifest by the kubelet's expansion.

Never: a hostile request that is sent changed; a check by the code that built it.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as some

from agent.clusters import brainpp_argv, kubernetes_manifest, local_request, ray_request, slurm_script
from agent.clusters.base import Refused, Submission
from agent.clusters.brainpp_argv import Site
from agent.clusters.kubernetes_options import Options as KubernetesOptions
from agent.clusters.local_slots import Slots
from agent.clusters.ray_options import Options as RayOptions
from agent.clusters.slurm_options import Options as SlurmOptions
from states.credentials import Pair
from states.spec import Spec
from tests.clusters.kubernetes.kubelet import expanded

EVIL = (
    "", " ", "--", "-", "-x", "--namespace=evil", "--image=evil", "$(touch x)", "`id`", "${HOME}", "$HOME", "$$",
    "$(A)", "a\nb", "a\r\nb", "\n#SBATCH --account=evil", "'", '"', "'; touch x; '", "\\", "\\'", "a;b", "a&&b", "|",
    ">x", "*", "~", "!!", "\x1b[31m", "\u202etxt", "\u2028", "é", "任务", "{}", "{{x}}", "%s", "%j", "#", "=", "A=1",
    "a:b", ":ro", "END", "EOF", "<<END", "../..", "/etc/passwd", "https://x/y?z=1&w", "\x7f", "\t", "\x00", "a\x00b",
    "\ud83d",
)  # fmt: skip
"""What a shell, a flag parser, a template or a terminal would take for more than a word."""

WORD = (
    some.sampled_from(EVIL)
    | some.text(max_size=20)
    | some.lists(some.sampled_from(EVIL), max_size=3).map("".join)
)
NAME = WORD | some.sampled_from(["A", "_B2", "LONG_NAME", "a-b", "1A", "A B", "PATH"])
MOUNT = WORD | some.builds("{}:/{}".format, WORD, WORD) | some.builds("/data/{}:/x/{}:ro".format, WORD, WORD)
GOOD: dict[str, Any] = {
    "command": ("python", "train.py"), "env": {"A": "1"}, "mounts": ("/data/set:/x",), "image": "reg/img:1",
    "workspace": "/ws/run", "environment": "/ws/env", "proxy": "http://proxy:80", "group": "",
    "exclude_nodes": ("n1",), "extra_args": (),
}  # fmt: skip
HOSTILE: dict[str, some.SearchStrategy[Any]] = {
    "command": some.lists(WORD, min_size=1, max_size=4).map(tuple),
    "env": some.dictionaries(NAME, WORD, max_size=3),
    "mounts": some.lists(MOUNT, max_size=2).map(tuple),
    "image": WORD,
    "workspace": some.builds("/ws/{}".format, WORD),
    "environment": some.builds("/ws/{}".format, WORD),
    "proxy": WORD,
    "group": WORD,
    "exclude_nodes": some.lists(WORD, max_size=2).map(tuple),
    "extra_args": some.lists(WORD, max_size=2).map(tuple),
}
"""Everything that a person writes. `Request.name` and the attempt's name are patterns of their own."""


@some.composite
def specs(draw: some.DrawFn) -> Spec:
    """A good spec with one to three hostile fields: a whole of them would be refused for the first."""
    fields = draw(some.lists(some.sampled_from(sorted(HOSTILE)), min_size=1, max_size=3, unique=True))
    evil = {field: draw(HOSTILE[field]) for field in fields}
    return Spec(**GOOD | evil, replicas=draw(some.sampled_from([1, 2])), gpu=draw(some.sampled_from([0, 2])))


SPECS = specs()
MANY = settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])


def sent(spec: Spec, name: str = "demo-a0-12345678") -> Submission:
    return Submission(name=name, fingerprint="12345678", owner="some one", spec=spec)


def shell_words(line: str) -> list[str]:
    """A line as a POSIX shell splits it. `shlex` reads by the same rules, and no expansion is left to do."""
    return shlex.split(line)


# --- the names that we make ourselves ------------------------------------------------------------------------


@given(WORD)
def test_a_name_is_a_name_or_refused_on_every_cluster(name: str) -> None:
    plain = name.isascii() and name.replace("-", "").replace(".", "").replace("_", "").isalnum()
    assume(not plain)
    spec = Spec(command=("true",), image="i:1", workspace="/ws/run")
    checks: Sequence[Callable[[Submission], Any]] = (
        brainpp_argv.check,
        local_request.check,
        lambda s: slurm_script.check(s, SlurmOptions()),
        lambda s: kubernetes_manifest.check(s, KubernetesOptions()),
        lambda s: ray_request.check(s, RayOptions(address="http://127.0.0.1:1")),
    )
    for check in checks:
        with pytest.raises(Refused):
            check(sent(spec, name))


# --- Brain++: an argument list -------------------------------------------------------------------------------


@MANY
@given(SPECS)
@example(Spec(command=("x",), image="i", workspace="/ws/run", extra_args=("--", "evil")))
@example(Spec(command=("x",), image="i\n--namespace=evil", workspace="/ws/run"))
def test_brainpp(spec: Spec) -> None:
    pair = Pair("lab-a", "team")
    try:
        argv = brainpp_argv.submit_argv(
            sent(spec), pair, Site({"/ws": "gpfs://fs/me", "/data": "gpfs://fs/data"})
        )
    except Refused:
        return
    assert not any("\0" in word for word in argv)
    split = argv.index("--")
    flags, inside = argv[:split], argv[split + 1 :]
    assert tuple(inside[-len(spec.command) :]) == spec.command
    assert inside[:3] == ["sh", "-c", brainpp_argv.ENTRY]
    own = flags[: len(flags) - len(spec.extra_args)]
    assert tuple(flags[len(own) :]) == spec.extra_args
    assert own.count("--namespace=lab-a") == own.count("--charged-group=team") == 1
    assert f"--image={spec.image}" in own
    values = [own[place + 1] for place, word in enumerate(own) if word == "-e"]
    assert {f"{name}={value}" for name, value in spec.env.items()} <= set(values)
    rest = [word for place, word in enumerate(own) if word != "-e" and own[place - 1] != "-e"]
    assert all(word.startswith("--") for word in rest[1:])
    taken = ("--name", "--metadata-name", "--namespace", "--charged-group", "--group")
    assert not [word for word in spec.extra_args if word.partition("=")[0] in taken]


# --- Slurm: arguments and a script on stdin ------------------------------------------------------------------


@MANY
@given(SPECS)
@example(Spec(command=("x",), workspace="/ws/run", env={"A": "1\n#SBATCH --account=evil\ntouch x"}))
@example(Spec(command=("x",), workspace="/ws/run", proxy="a'; touch x; '", replicas=2))
def test_slurm(spec: Spec) -> None:
    options = SlurmOptions(container=("apptainer", "exec"))
    submission = sent(spec)
    try:
        slurm_script.check(submission, options)
        native = slurm_script.native(
            submission, options, wrapper="/ws/w.sh", folder="/ws/run/.wk", user_script=""
        )
    except Refused:
        return
    assert not any("\0" in word for word in (*native.words, native.script))
    assert all(word.startswith("-") for word in native.words[: len(native.words) - len(spec.extra_args)])
    assert not any(line.startswith("#SBATCH") for line in native.script.split("\n")[1:2])
    lines = logical_lines(native.script)
    last = shell_words(lines[-1])
    assert last[0] == "exec"
    assert tuple(last[-len(spec.command) :]) == spec.command
    exported = {word for line in lines for word in line if line[:1] == "export"}
    told = [shell_words(line) for line in lines]
    given = {word for words in told if words[:1] == ["export"] for word in words[1:]}
    assert {f"{name}={value}" for name, value in spec.env.items()} <= given
    assert exported == set()
    heads = {words[0] for words in told if words and not words[0].startswith("#")}
    assert heads <= {"export", "exec", "[", "MASTER_ADDR=$(scontrol"}


def logical_lines(script: str) -> list[str]:
    """The script's commands: a quoted word may hold line breaks."""
    commands: list[str] = []
    held = ""
    for line in script.rstrip("\n").split("\n")[1:]:
        held = f"{held}\n{line}" if held else line
        try:
            shlex.split(held)
        except ValueError:
            continue
        commands.append(held)
        held = ""
    assert not held, "a quote is left open"
    return commands


@MANY
@given(some.lists(WORD, min_size=1, max_size=5))
def test_a_login_node_behind_ssh_gets_one_word(words: list[str]) -> None:
    """ssh joins its words with blanks for a shell on the other side, which must read the same words again."""
    assume("\0" not in "".join(words))
    assert shell_words(shlex.join(["env", "SLURM_TIME_FORMAT=%s", "sbatch", *words]))[3:] == words


# --- Kubernetes: a manifest ----------------------------------------------------------------------------------


@MANY
@given(SPECS)
@example(
    Spec(command=("x",), image="i", workspace="/ws/run", extra_args=('{"metadata": {"namespace": "evil"}}',))
)
def test_kubernetes(spec: Spec) -> None:
    options = KubernetesOptions(storage={"/ws": "claim:work", "/data": "claim:data"})
    try:
        manifest = kubernetes_manifest.job(sent(spec), options)
    except Refused:
        return
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Job", "demo-a0-12345678")
    assert "namespace" not in manifest["metadata"]
    if spec.extra_args:
        return  # what is laid over is the person's own; whose job it is stands
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    arrived = [expanded(word, {"HOME": "/evil", "A": "evil"}) for word in container["command"]]
    assert tuple(arrived[-len(spec.command) :]) == spec.command
    assert container["image"] == spec.image
    values = {one["name"]: expanded(one["value"], {}) for one in container["env"] if "value" in one}
    assert {name: values[name] for name in spec.env} == spec.env
    assert all(mount["mountPath"].startswith("/") for mount in container.get("volumeMounts", ()))
    sub_paths = [mount.get("subPath", "") for mount in container.get("volumeMounts", ())]
    assert not [path for path in sub_paths if path.startswith("/") or ".." in path.split("/")]


# --- Ray: a line for a shell ---------------------------------------------------------------------------------


@MANY
@given(SPECS)
def test_ray(spec: Spec) -> None:
    options = RayOptions(address="http://127.0.0.1:1", image_uri=True)
    spec = spec.model_copy(update={"mounts": (), "replicas": 1, "extra_args": ()})
    try:
        ray_request.check(sent(spec), options)
    except Refused:
        return
    made = ray_request.body(sent(spec), options, script=None)
    assert made["entrypoint"].startswith(ray_request.GUARD)
    words = shell_words(made["entrypoint"].removeprefix(ray_request.GUARD))
    assert words == ["exec", *spec.command]
    told = made["runtime_env"]["env_vars"]
    assert {name: ray_expanded(told[name], told) for name in spec.env if name != "PATH"} == {
        name: value for name, value in spec.env.items() if name != "PATH"
    }


def ray_expanded(value: str, known: dict[str, str]) -> str:
    """Ray's replacing of variables, as far as ours can meet it."""
    return value.replace(f"${{{ray_request.DOLLAR}}}", known.get(ray_request.DOLLAR, ""))


def test_ray_as_a_shell_reads_it(tmp_path: Path) -> None:
    """One real shell for all words that could be more than words."""
    words = [word for word in EVIL if "\0" not in word and word.isprintable() | word.isspace() | (word > " ")]
    words = [word for word in words if not any("\ud800" <= sign <= "\udfff" for sign in word)]
    spec = Spec(command=("printf", "%s\\0", *words), workspace=str(tmp_path))
    line = ray_request.body(sent(spec), RayOptions(address="http://127.0.0.1:1"), script=None)["entrypoint"]
    ran = subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, capture_output=True, check=True, timeout=20)
    assert ran.stdout.decode().split("\0")[:-1] == words
    assert list(tmp_path.iterdir()) == []


# --- this machine: an argument list and an environment -------------------------------------------------------


@MANY
@given(SPECS)
def test_local(spec: Spec) -> None:
    spec = spec.model_copy(update={"workspace": "/tmp", "environment": "", "replicas": 1, "extra_args": ()})
    try:
        local_request.check(sent(spec))
    except Refused:
        return
    made = local_request.job_of(sent(spec), "7", Slots(8.0, 1 << 20, 8))
    assert made.command == spec.command
    assert {name: made.env[name] for name in spec.env} == spec.env
    assert not any("\0" in word for word in (*made.command, *made.env, *made.env.values()))
