"""What stands in front of a program: schedulers, launchers, containers and small wrappers, peeled one at a time.

`peel` takes the outermost one off and says what is inside: a command, a script's text, a script file, or the rest
of a Python call. The tables hold what each program's manual says about its options (srun, mpirun, torchrun, ...).

Never: look into a file; the walk does that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from states.lint.words import Arg

Inside = Literal["command", "text", "file", "python", "nothing"]

SUBMITTERS = frozenset({"sbatch", "qsub", "bsub", "rjob", "rlaunch", "ray", "kubectl", "brainctl", "salloc"})
"""What stands after these runs somewhere else: their own status is not the job's."""

WORKERS = frozenset(
    {"torchrun", "accelerate", "deepspeed", "tune", "composer", "colossalai", "horovodrun", "mpirun", "srun"}
)
"""Programs that start the inner command several times."""

_COMMANDS: Mapping[str, str] = {
    # name -> flags without a value; every other option takes one, joined by = or as the next word
    "srun": "-l --label -u --unbuffered -K --exclusive -v -Q --quiet -O -s -X -E --overlap --pty -k --no-kill -I"
    " --immediate --kill-on-bad-exit --multi-prog --no-container-mount-home --container-mount-home -H --hold",
    "salloc": "--exclusive -K --no-shell -Q -v",
    "mpirun": "--allow-run-as-root --oversubscribe --report-bindings -v --verbose --bynode --tag-output -q"
    " --display-map --use-hwthread-cpus -l --nooversubscribe --enable-recovery",
    "jsrun": "--immediate",
    "horovodrun": "--verbose --disable-cache --gloo --mpi --version",
    "timeout": "--foreground --preserve-status -v --verbose",
    "env": "-i -0 --ignore-environment",
    "nohup": "",
    "nice": "",
    "ionice": "-t",
    "time": "-p -v -a",
    "stdbuf": "",
    "unbuffer": "-p",
    "setsid": "-f -w -c --fork --wait",
    "exec": "-c -l",
    "command": "-p",
    "numactl": "-l --localalloc --show -s --hardware -H",
    "taskset": "-c -a --cpu-list --all-tasks",
    "sudo": "-E -H -n -i -S",
    "xvfb-run": "-a -l --auto-servernum",
    "flock": "-n -x -s -e --nonblock",
    "catchsegv": "",
    "tini": "-s -g -v -w",
    "dumb-init": "-v -c",
    "nsys": "--help",
    "ncu": "-f --force-overwrite --target-processes-all",
    "kernprof": "-l -v -b --line-by-line --view",
    "strace": "-f -c -v -q -y",
    "proxychains4": "-q",
    "conda": "--no-capture-output --live-stream -v",
    "micromamba": "-v",
    "mamba": "--no-capture-output --live-stream",
    "uv": "--isolated --frozen --locked --no-sync --no-project --offline --active --all-extras --no-dev -q -v",
    "poetry": "-q -v -n --no-interaction",
    "pdm": "-q -v",
    "pipenv": "",
    "pixi": "--frozen --locked",
    "hatch": "",
    "apptainer": "--nv --nvccli --rocm --writable-tmpfs --writable -w -e -c -C --cleanenv --contain --containall"
    " -p --pid -i --ipc --no-home --fakeroot -f --userns -u --no-init --compat --vm --silent -s",
    "docker": "--rm -i -t -it -ti -d --init --privileged --detach --interactive --tty --read-only -P",
    "ssh": "-n -t -tt -q -A -a -f -N -T -v -x -X -Y -C -4 -6",
    "kubectl": "-i -t -it --stdin --tty -q --rm --attach",
    "rjob": "--gang-start --store-host-nvme --enable-sshd --preemptible --dry-run --predict-only -h",
    "rlaunch": "--store-host-nvme --enable-sshd",
    "brainctl": "",
    "ray": "--no-wait --verbose -v",
    "torchrun": "--standalone --use_env --use-env --no_python --no-python -m --module --run_path --run-path",
    "accelerate": "--multi_gpu --multi-gpu --cpu --tpu --use_deepspeed --use-deepspeed --use_fsdp --use-fsdp -q"
    " --use_megatron_lm -m --module --no_python --no-python --debug --same_network --same-network --quiet"
    " --ipex --use_xpu --enable_cpu_affinity",
    "deepspeed": "--no_ssh --force_multi -m --module --no_python --no_local_rank --elastic_training --no_ssh_check",
    "tune": "--standalone",
    "composer": "-v --verbose -m --module_mode -c --command_mode",
    "colossalai": "",
    "xargs": "-0 -r -t -p -x --null --no-run-if-empty",
    "parallel": "-k -u --ungroup --keep-order --bar --progress --linebuffer --lb --will-cite --dry-run",
    "ts": "",
}
_ALIASES: Mapping[str, str] = {
    "mpiexec": "mpirun",
    "orterun": "mpirun",
    "mpirun.openmpi": "mpirun",
    "mpiexec.hydra": "mpirun",
    "ibrun": "mpirun",
    "aprun": "mpirun",
    "singularity": "apptainer",
    "podman": "docker",
    "nerdctl": "docker",
    "gtime": "time",
    "xvfb": "xvfb-run",
    "proxychains": "proxychains4",
    "gtimeout": "timeout",
}
_SUBCOMMANDS: Mapping[str, frozenset[str]] = {
    # these programs start a command only under these words
    "conda": frozenset({"run"}),
    "mamba": frozenset({"run"}),
    "micromamba": frozenset({"run"}),
    "uv": frozenset({"run"}),
    "poetry": frozenset({"run"}),
    "pdm": frozenset({"run"}),
    "pipenv": frozenset({"run"}),
    "pixi": frozenset({"run"}),
    "hatch": frozenset({"run"}),
    "apptainer": frozenset({"exec", "run"}),
    "docker": frozenset({"exec", "run"}),
    "kubectl": frozenset({"exec", "run"}),
    "ray": frozenset({"submit", "exec"}),
    "rjob": frozenset({"submit", "create", "run"}),
    "brainctl": frozenset({"launch", "run", "exec"}),
    "accelerate": frozenset({"launch"}),
    "tune": frozenset({"run"}),
    "colossalai": frozenset({"run"}),
    "nsys": frozenset({"profile"}),
}
_OPERANDS: Mapping[str, int] = {"timeout": 1, "taskset": 1, "flock": 1, "apptainer": 1, "docker": 1, "ssh": 1}
"""Words that the wrapper takes for itself before the command starts: a duration, a mask, an image, a host."""

_DASHED = frozenset({"ray", "rjob", "rlaunch", "brainctl", "kubectl"})
"""Only what stands after `--` is the command."""

_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash"})
_PYTHON = re.compile(r"(?:python|pypy)[\d.]{0,6}(?:-intel64)?|py")
_MODULE_LAUNCHERS = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "paddle.distributed.launch": "torchrun",
    "bagua.distributed.launch": "torchrun",
    "composer.cli.launcher": "composer",
}
_PYTHON_FLAGS = frozenset("-u -O -OO -B -E -s -S -I -q -v -b -i -x -P -bb".split())


class Wrapper(NamedTuple):
    """One layer: its program, the options by name without dashes (`-` read as `_`), and its place."""

    name: str
    options: Mapping[str, tuple[Arg, ...]]
    line: int
    operands: tuple[Arg, ...] = ()

    def option(self, *names: str) -> Arg | None:
        """The last value given under one of these names; a flag's value is its own word."""
        for name in names:
            if self.options.get(name):
                return self.options[name][-1]
        return None


class Peeled(NamedTuple):
    """wrapper, and what is inside: `rest` begins with the command, the script's text or file, or Python's script.

    module: rest[0] is a module's name. Inside python: rest[0] is the script, the module, or with code set the code.
    """

    wrapper: Wrapper
    inside: Inside
    rest: tuple[Arg, ...]
    module: bool = False
    code: bool = False


def program(args: tuple[Arg, ...]) -> str:
    """The program's name without its folder."""
    return args[0].text.rsplit("/", 1)[-1] if args else ""


def is_python(name: str) -> bool:
    """Whether this program is a Python interpreter, `$PYTHON` included."""
    return _PYTHON.fullmatch(name) is not None or name.strip("${}").upper().endswith(("PYTHON", "PYTHON_BIN"))


def peel(args: tuple[Arg, ...]) -> Peeled | None:
    """The outermost wrapper off; None when the first word is the program itself."""
    name = program(args)
    if is_python(name):
        return _python(args)
    if name in _SHELLS:
        return _shell(args, name)
    if name in (".", "source"):
        return Peeled(Wrapper("source", {}, args[0].line), "file" if len(args) > 1 else "nothing", args[1:])
    if name == "eval":
        return Peeled(Wrapper("eval", {}, args[0].line), "text" if len(args) > 1 else "nothing", args[1:])
    if name in ("sbatch", "qsub", "bsub"):
        return _batch(args, name)
    name = _ALIASES.get(name, name)
    if name in _COMMANDS:
        return _wrapped(args, name)
    if name.endswith((".sh", ".bash", ".slurm", ".sbatch")):
        return Peeled(Wrapper("bash", {}, args[0].line), "file", args)
    if name.endswith(".py"):
        return Peeled(Wrapper("python", {}, args[0].line), "python", args)
    return None


def split_options(args: tuple[Arg, ...], flags: frozenset[str]) -> tuple[dict[str, tuple[Arg, ...]], int]:
    """Options at the head of `args`, and the place of the first word that is none."""
    found: dict[str, tuple[Arg, ...]] = {}
    at = 0
    while at < len(args):
        text = args[at].text
        if text == "--" or not text.startswith("-") or text == "-":
            break
        name, joined, value = text.partition("=")
        short = not text.startswith("--") and len(name) > 2 and not joined and text[2].isdigit()
        if short:
            name, value, joined = text[:2], text[2:], "="
        key = name.lstrip("-").replace("-", "_")
        if joined:
            got = args[at]._replace(text=value)
        elif text in flags or at + 1 >= len(args) or args[at + 1].text.startswith("--"):
            got = args[at]
        else:
            at += 1
            got = args[at]
        found[key] = (*found.get(key, ()), got)
        at += 1
    return found, at


def _wrapped(args: tuple[Arg, ...], name: str) -> Peeled | None:
    flags = frozenset(_COMMANDS[name].split())
    start, sub = 1, _SUBCOMMANDS.get(name)
    options: dict[str, tuple[Arg, ...]] = {}
    if sub is not None:
        place = next((i for i, arg in enumerate(args[1:4], 1) if arg.text in sub), None)
        if place is None:
            return None
        start = place + 1
    if name in _DASHED:
        return _dashed(args, name, start, flags)
    found, taken = split_options(args[start:], flags)
    options.update(found)
    rest = args[start + taken :]
    operands = rest[: _OPERANDS.get(name, 0)] if name != "taskset" or "c" not in options else rest[:1]
    rest = rest[len(operands) :]
    if name in ("timeout", "nice", "nsys", "apptainer", "srun", "env", "conda", "uv") and rest[:1]:
        while rest and rest[0].text == "--":
            rest = rest[1:]
    if name == "env" or name in ("srun", "mpirun", "sudo"):
        while rest and re.match(r"[A-Za-z_]\w*=", rest[0].text) and name in ("env", "sudo"):
            rest = rest[1:]
    wrapper = Wrapper(name, options, args[0].line, operands)
    if not rest:
        return Peeled(wrapper, "nothing", ())
    if name in ("torchrun", "accelerate", "deepspeed", "composer", "colossalai"):
        if options.keys() & {"no_python", "command_mode"}:
            return Peeled(wrapper, "command", rest)
        return Peeled(wrapper, "python", rest, module=bool(options.keys() & {"m", "module", "module_mode"}))
    if name == "ssh":
        return Peeled(wrapper, "text", rest)
    return Peeled(wrapper, "python" if name in ("kernprof", "tune") else "command", rest)


def _dashed(args: tuple[Arg, ...], name: str, start: int, flags: frozenset[str]) -> Peeled:
    cut = next((i for i in range(start, len(args)) if args[i].text == "--"), len(args))
    options: dict[str, tuple[Arg, ...]] = {}
    rest = args[start:cut]
    while rest:
        found, taken = split_options(rest, flags)
        for key, values in found.items():
            options[key] = (*options.get(key, ()), *values)
        rest = rest[max(taken, 1) :]
    inner = args[cut + 1 :]
    return Peeled(Wrapper(name, options, args[0].line), "command" if inner else "nothing", inner)


def _python(args: tuple[Arg, ...]) -> Peeled:
    """`python [flags] script|-m module|-c code`; a launcher module counts as that launcher."""
    options: dict[str, tuple[Arg, ...]] = {}
    at = 1
    while at < len(args):
        text = args[at].text
        if text in ("-m", "-c") and at + 1 < len(args):
            module, rest = args[at + 1].text, args[at + 1 :]
            launcher = _MODULE_LAUNCHERS.get(module) if text == "-m" else None
            if launcher is not None:
                peeled = _wrapped((rest[0]._replace(text=launcher), *rest[1:]), launcher)
                if peeled is not None:
                    merged = {**peeled.wrapper.options, **options}
                    line = args[0].line
                    return peeled._replace(wrapper=peeled.wrapper._replace(options=merged, line=line))
            return Peeled(
                Wrapper("python", options, args[0].line), "python", rest, module=text == "-m", code=text == "-c"
            )
        if text in ("-W", "-X"):
            at += 2
        elif text in _PYTHON_FLAGS or (text.startswith("-") and len(text) > 1 and text[1:].isalpha()):
            options[text[1:]] = (args[at],)
            at += 1
        elif text.startswith("-") and text != "-":
            at += 1
        else:
            break
    rest = args[at:]
    return Peeled(Wrapper("python", options, args[0].line), "python" if rest else "nothing", rest)


def _shell(args: tuple[Arg, ...], name: str) -> Peeled:
    """`bash [-lc] TEXT`, `bash script`."""
    options: dict[str, tuple[Arg, ...]] = {}
    at = 1
    while at < len(args) and args[at].text.startswith(("-", "+")) and args[at].text != "--":
        text = args[at].text
        if text.startswith("--"):
            options[text[2:].replace("-", "_")] = (args[at],)
        elif text in ("-o", "+o", "-O"):
            at += 1
            if at < len(args):
                options[args[at].text] = (args[at],)
        else:
            for letter in text[1:]:
                options[letter] = (args[at],)
            if text.endswith("o") and at + 1 < len(args):
                at += 1
                options[args[at].text] = (args[at],)
        at += 1
    rest = args[at:]
    wrapper = Wrapper(name if name != "sh" else "bash", options, args[0].line)
    if not rest:
        return Peeled(wrapper, "nothing", ())
    return Peeled(wrapper, "text" if "c" in options else "file", rest)


def _batch(args: tuple[Arg, ...], name: str) -> Peeled:
    """`sbatch [options] script`, `sbatch --wrap TEXT`."""
    flags = frozenset("--exclusive --parsable --wait -W --requeue --no-requeue -H --hold -Q -v -V -k".split())
    options, taken = split_options(args[1:], flags)
    wrapper = Wrapper(name, options, args[0].line)
    if "wrap" in options:
        return Peeled(wrapper, "text", (options["wrap"][-1],))
    rest = args[1 + taken :]
    return Peeled(wrapper, "file" if rest else "nothing", rest)
