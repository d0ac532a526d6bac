"""Paths that the run needs and that are not there (RULES D1): scripts, configurations, data, folders to write into.

Only what the tree settles is called missing; without a tree a path is missing where its place says so: the home of
root or one machine's own disk, or a folder that the script itself would have had to create.

Never: call a path missing that the job creates, or whose beginning is not known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from states.lint.facts import Run, Walked
from states.lint.finding import Finding
from states.lint.options import names_output, options
from states.lint.scene import PLACES_OF_A_NODE, Scene
from states.lint.words import resolve
from states.lint.work import is_work

_MEND = "Correct the path, or stage the file below the workspace before the run."
_INPUT = re.compile(
    r"config|cfg|conf|yaml|yml|json|data|dataset|input|train|val|eval|test|manifest|annotation|vocab|checkpoint|ckpt|resume"
    r"|pretrain|weight|model|tokenizer|load|init|file|path|recipe|hostfile|list|meta"
)
_FILE = re.compile(
    r"[\w./-]{1,200}\.(?:py|ya?ml|json|jsonl|sh|txt|csv|tsv|parquet|toml|ini|cfg|pt|pth|ckpt|bin|safetensors|npz|npy|h5|tar|pkl)"
)
_PLACEHOLDER = re.compile(r"/?path/to(?:/|$)|/PATH/TO")
_MAKERS = frozenset(
    "mkdir cp mv ln tar unzip git wget curl rsync touch tee install cat scp gunzip huggingface-cli hf".split()
)


def find(walked: Walked, scene: Scene) -> Iterator[Finding]:
    """One finding a path."""
    made = _made(walked)
    said: set[str] = set()
    for run in walked.runs:
        for path, line, why in (
            *_started(run, scene),
            *_inputs(run, scene),
            *_written(run, walked, scene, made),
        ):
            if path not in said and not _is_made(path, made, why):
                said.add(path)
                yield Finding("missing_path", "ask", line, why, _MEND, run.unit.file)


def _made(walked: Walked) -> set[str]:
    """Paths that the job itself brings about."""
    found: set[str] = set(walked.written)
    for run in walked.runs:
        if run.name in _MAKERS:
            found |= {path for arg in run.args[1:] if (path := run.path(arg.text))}
            if run.name == "git" and run.args[1:2] and run.args[1].text == "clone":
                found |= {
                    path
                    for arg in run.args[2:]
                    if (path := run.path(posixpath.basename(arg.text).removesuffix(".git")))
                }
        for option in options(run):
            if option.value is not None and (
                names_output(option.name) or run.name in ("tar", "unzip", "wget", "curl")
            ):
                path = run.path(option.value.text)
                if path:
                    found.add(path)
        for redirect in run.command.redirects:
            if redirect.operator in (">", ">>", "&>") and redirect.target is not None and run.name != "cat":
                path = run.path(resolve(redirect.target, run.env, run.unit.lines)[0].text)
                if path:
                    found.add(path)
    return found


def _is_made(path: str, made: set[str], why: str) -> bool:
    if why.startswith("the folder"):
        return False
    return any(
        path == m or path.startswith(m.rstrip("/") + "/") or posixpath.dirname(m) == path for m in made
    )


Missing = tuple[str, int, str]


def _started(run: Run, scene: Scene) -> Iterator[Missing]:
    """The script or module that is started, or read in."""
    if run.where.conditional and run.where.condition:
        return
    target = run.args[0] if run.args else None
    if target is None or run.code or run.module or not (run.python or run.outer):
        return
    if run.outer and not (run.via and run.via[-1].name in ("bash", "sh", "source", "sbatch", "zsh")):
        return
    if "\n" in target.text or " " in target.text or not _FILE.fullmatch(target.text):
        return
    path = run.path(target.text)
    if path is not None and scene.seen(path) == "absent":
        yield path, target.line, f"{target.text} is not there"


def _inputs(run: Run, scene: Scene) -> Iterator[Missing]:
    """Files that options name, the launcher's own included."""
    if not (is_work(run) or run.outer):
        return
    given = [(o.name, o.value, o.flag.line) for o in options(run) if o.value is not None]
    for held in run.env.values():
        for arg in held.args[:1]:
            if _PLACEHOLDER.match(arg.text):
                yield arg.text, held.line, f"{arg.text} is a placeholder"
    given += [(name, arg, arg.line) for w in run.via for name, args in w.options.items() for arg in args]
    for name, value, line in given:
        if names_output(name) or not _INPUT.search(name):
            continue
        text = value.text
        if _PLACEHOLDER.match(text):
            yield text, line, f"{text} is a placeholder"
            continue
        if _at_one_machine(text) and not scene.keeps(text) and scene.cluster not in ("kubernetes", "local"):
            if _FILE.fullmatch(text) or name.endswith(("config_file", "config")):
                yield text, line, f"{text} lies on one machine; the job may run on another"
            continue
        path = run.path(text)
        if path is not None and _FILE.fullmatch(text) and scene.seen(path) == "absent":
            yield path, line, f"{text} is not there"


def _at_one_machine(path: str) -> bool:
    return any(path.startswith(place + "/") for place in PLACES_OF_A_NODE[:4])


def _written(run: Run, walked: Walked, scene: Scene, made: set[str]) -> Iterator[Missing]:
    """A file written into a folder that no line creates."""
    for redirect in run.command.redirects:
        if redirect.operator not in (">", ">>") or redirect.target is None or redirect.descriptor == "2":
            continue
        text = resolve(redirect.target, run.env, run.unit.lines)[0].text
        path = run.path(text)
        folder = posixpath.dirname(text)
        if path is None or not folder or text.startswith("/"):
            continue
        parent = posixpath.dirname(path)
        known = scene.seen(parent)
        there = any(
            m == parent or m.startswith(parent + "/") for m in made - {path} if m not in walked.written
        )
        creates = any(r.name == "mkdir" for r in walked.runs)
        code = run.name == "cat" and any(r.body for r in run.command.redirects)
        if not there and (known == "absent" or (known == "unknown" and creates and code)):
            yield path, run.line, f"the folder {folder} is created by no line"
