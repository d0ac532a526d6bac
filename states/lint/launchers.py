"""What stands in front of a program: schedulers, launchers, containers and small wrappers, peeled one at a time.

`peel` takes the outermost one off and says what is inside: a command, a script's text, a script file, or the rest
of a Python call. What each program's manual says about its options is in `wrappers.py`.

Never: look into a file; the walk does that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from states.lint.words import Arg
from states.lint.wrappers import (
    ALIASES,
    COMMANDS,
    DASHED,
    MODULE_LAUNCHERS,
    OPERANDS,
    PYTHON,
    PYTHON_FLAGS,
    SHELLS,
    SUBCOMMANDS,
)

Inside = Literal["command", "text", "file", "python", "nothing"]


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
    return PYTHON.fullmatch(name) is not None or name.strip("${}").upper().endswith(("PYTHON", "PYTHON_BIN"))


def peel(args: tuple[Arg, ...]) -> Peeled | None:
    """The outermost wrapper off; None when the first word is the program itself."""
    name = program(args)
    if is_python(name):
        return _python(args)
    if name in SHELLS:
        return _shell(args, name)
    if name in (".", "source"):
        return Peeled(Wrapper("source", {}, args[0].line), "file" if len(args) > 1 else "nothing", args[1:])
    if name == "eval":
        return Peeled(Wrapper("eval", {}, args[0].line), "text" if len(args) > 1 else "nothing", args[1:])
    if name in ("sbatch", "qsub", "bsub"):
        return _batch(args, name)
    name = ALIASES.get(name, name)
    if name in COMMANDS:
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
    flags = frozenset(COMMANDS[name].split())
    start, sub = 1, SUBCOMMANDS.get(name)
    options: dict[str, tuple[Arg, ...]] = {}
    if sub is not None:
        place = next((i for i, arg in enumerate(args[1:4], 1) if arg.text in sub), None)
        if place is None:
            return None
        start = place + 1
    if name in DASHED:
        return _dashed(args, name, start, flags)
    found, taken = split_options(args[start:], flags)
    options.update(found)
    rest = args[start + taken :]
    operands = rest[: OPERANDS.get(name, 0)] if name != "taskset" or "c" not in options else rest[:1]
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
            launcher = MODULE_LAUNCHERS.get(module) if text == "-m" else None
            if launcher is not None:
                peeled = _wrapped((rest[0]._replace(text=launcher), *rest[1:]), launcher)
                if peeled is not None:
                    merged = {**peeled.wrapper.options, **options}
                    line = args[0].line
                    return peeled._replace(wrapper=peeled.wrapper._replace(options=merged, line=line))
            return Peeled(
                Wrapper("python", options, args[0].line),
                "python",
                rest,
                module=text == "-m",
                code=text == "-c",
            )
        if text in ("-W", "-X"):
            at += 2
        elif text in PYTHON_FLAGS or (text.startswith("-") and len(text) > 1 and text[1:].isalpha()):
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
