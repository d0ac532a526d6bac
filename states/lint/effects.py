"""Lines without effect: settings that no program gets, changes that end with the shell they were made in.

Never: object where the variable is used, exported later, or where the line is more than set-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding, Level
from states.lint.shell import Command, all_scripts

_READ_BY_PROGRAMS = re.compile(
    r"(?:CUDA|NCCL|OMP|MKL|HF|TRANSFORMERS|WANDB|PYTORCH|TORCH|TOKENIZERS|TF|XLA|JAX|NVIDIA|GLOO|UCX|VLLM|DS|OPENBLAS)_[A-Z_0-9]+"
    r"|PYTHONUNBUFFERED|PYTHONPATH|HTTP_PROXY|HTTPS_PROXY|https?_proxy|NO_PROXY"
)
_ONLY_HERE = frozenset(
    "cd export source . module ml unset ulimit set alias shopt umask pushd conda deactivate declare".split()
)
_GONE = frozenset({"cd", "export", "module", "ml", "ulimit"})
_STARTERS = frozenset({"srun", "mpirun", "ssh", "timeout", "nohup", "time"})
_PROFILES = re.compile(
    r"(?:.{0,200}/)?(?:activate|\.bashrc|\.bash_profile|conda\.sh|set_?env\.sh|env\.sh|setup_?env\w*\.sh)"
)


def find(walked: Walked) -> Iterator[Finding]:
    """One finding a line."""
    for unit in walked.units:
        said: set[int] = set()
        for line, level, why, mend in (*_unexported(unit), *_in_child(unit), *_runs(unit), *_unreached(unit)):
            if line not in said:
                said.add(line)
                yield Finding("no_effect", level, line, why, mend, unit.file)


Said = tuple[int, Level, str, str]


def _unexported(unit: Unit) -> Iterator[Said]:
    exported = {
        arg.text for run in unit.runs if run.args[:1] and run.args[0].text == "export" for arg in run.args[1:]
    }
    if re.search(r"^[ \t]*set[ \t]+(?:-\w*a|-o[ \t]+allexport)", unit.text, re.MULTILINE):
        return
    exported |= {name for run in unit.runs for name, value in run.env.items() if value.exported}
    for script in all_scripts(unit.script):
        for node in script.nodes:
            if not isinstance(node, Command) or node.words:
                continue
            for given in node.assignments:
                name = given.name
                used = re.search(rf"\$\{{?{re.escape(name)}\b", unit.text) if name else None
                if _READ_BY_PROGRAMS.fullmatch(name) and name not in exported and not used:
                    why = f"{name} is set for the shell alone; no program gets it"
                    yield (
                        unit.at(given.line),
                        "warn",
                        why,
                        f"Write `export {name}=...`, or put it in front of the command.",
                    )


def _in_child(unit: Unit) -> Iterator[Said]:
    """`srun bash -c "cd ..."`, `srun module load`: gone when that shell ends."""
    mend = "Do it in the job's own shell, or in the same `bash -c` as the work."
    if unit.how == "inline" and unit.via and unit.via[-1].name not in ("eval",):
        names = {run.args[0].text for run in unit.runs if run.args}
        if names and names <= _ONLY_HERE and not any(r.where.substitution for r in unit.runs):
            yield unit.at(1), "warn", "it changes only the shell that ends with it", mend
    for run in unit.runs:
        own = run.via[len(unit.via) :]
        first = run.args[0].text if run.args else ""
        if not own:
            continue
        if first in _GONE and not run.outer and any(wrapper.name in _STARTERS for wrapper in own):
            yield run.line, "warn", "it changes only a process that ends at once", mend
        plain = run.outer and own[-1].name in ("bash", "sh") and not own[-1].options
        if plain and _PROFILES.fullmatch(first):
            why = "a child shell is set up and ends at once"
            yield run.line, "warn", why, "Read it in with `source`."


def _runs(unit: Unit) -> Iterator[Said]:
    shell = unit.text.split("\n", 1)[0]
    aliases = {
        run.args[1].text.partition("=")[0]: run
        for run in unit.runs
        if run.name == "alias" and len(run.args) > 1
    }
    for run in unit.runs:
        words = [arg.text for arg in run.args]
        if words[:2] in (["conda", "init"], ["mamba", "init"]):
            yield (
                run.line,
                "note",
                "it edits a profile and changes nothing in this shell",
                "Leave it out; use the hook.",
            )
        own = run.via[len(unit.via) :]
        if own and own[-1].name == "ssh" and run.name == "ssh" and not run.outer and not _carries(run):
            why = "ssh without a command: what follows runs here and not there"
            yield run.line, "warn", why, "Give ssh the command, or use `srun --ntasks-per-node=1`."
        first = run.command.words[0].literal if run.command.words else None
        if first in aliases and first and "bash" in shell and "expand_aliases" not in unit.text:
            yield (
                aliases[first].line,
                "warn",
                "aliases are not expanded in a batch bash",
                "Use a variable or a function.",
            )


def _carries(run: Run) -> bool:
    """Whether ssh has something to do all the same: a here-document, a pipe, a tunnel."""
    options = run.via[-1].options if run.via else {}
    return bool(run.command.redirects) or bool(
        options.keys() & {"N", "f", "L", "R", "D", "O", "W", "V", "Q", "G", "K"}
    )


def _unreached(unit: Unit) -> Iterator[Said]:
    """What stands behind a top-level `exit` or `exec program`."""
    nodes = list(unit.script.nodes)
    for node, after in pairwise(nodes):
        if isinstance(node, Command) and (
            node.name == "exit" or (node.name == "exec" and len(node.words) > 1)
        ):
            if isinstance(after, Command) and after.words and unit.how != "sourced":
                yield (
                    unit.at(after.line),
                    "note",
                    f"it is never reached: `{node.name}` stands before it",
                    "Move or remove it.",
                )
            return
