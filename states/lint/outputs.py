"""Outputs that do not outlive the job (RULES C11, D6): on one machine's own disk, outside the workspace, or nowhere.

The node's own space is right for intermediates: where another output is kept, or what was written is copied off
afterwards, nothing is said.

Never: judge a path whose beginning is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from states.lint.directives import read
from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding
from states.lint.options import names_output, options
from states.lint.python_code import Code
from states.lint.scene import PLACES_OF_A_NODE, Scene
from states.lint.words import Arg, resolve
from states.lint.work import is_work

_MEND = (
    "Write results below the workspace; keep only intermediates on the node, and copy what counts at the end."
)
_NODE_VARIABLES = re.compile(
    r"\$\{?(?:TMPDIR|TMP|TEMP|SLURM_TMPDIR|LOCAL_SCRATCH|LOCALSCRATCH|JOBFS|PBS_JOBFS|TMP_DIR|LSCRATCH|NODE_SCRATCH)\b"
)
_COPIES = frozenset(
    {
        "cp",
        "mv",
        "rsync",
        "tar",
        "zip",
        "aws",
        "gsutil",
        "scp",
        "rclone",
        "azcopy",
        "ossutil",
        "s5cmd",
        "install",
    }
)
_MAYBE = re.compile(
    r"(?:cache|tmp|temp|scratch|offload|bottleneck|extract|intermediate|hub|home|shm|lock|socket)"
)


def find(walked: Walked, scene: Scene) -> Iterator[Finding]:
    """The first lost output of each run."""
    copied = [arg.text for run in walked.runs if run.name in _COPIES for arg in run.args[1:]]
    copied += [
        word for run in walked.runs if run.name == "trap" for arg in run.args for word in arg.text.split()
    ]
    for unit in walked.units:
        yield from _stream(unit)
        for run in unit.runs:
            if is_work(run):
                yield from _run(run, scene, copied)
                yield from _none_named(run)


def _stream(unit: Unit) -> Iterator[Finding]:
    for directive in read(unit.text) if unit.how in ("file", "heredoc") else ():
        if directive.option in ("o", "output") and directive.value.startswith(
            ("/tmp/", "/var/tmp/", "/dev/shm/")
        ):
            why = "the job's output stays on the node it ran on"
            yield Finding("output_node_local", "warn", unit.at(directive.line), why, _MEND, unit.file)


def _outputs(run: Run) -> Iterator[tuple[Arg, int]]:
    """Places that the run writes to, with their lines."""
    for option in options(run):
        value = option.value
        if value is None or not names_output(option.name) or _MAYBE.search(option.name):
            continue
        if "/" in value.text or value.text.startswith("$"):
            yield value, option.flag.line
    for redirect in run.command.redirects:
        if (
            redirect.operator in (">", ">>", "&>", "&>>")
            and redirect.descriptor != "2"
            and redirect.target is not None
        ):
            text = redirect.target.shown.replace("${", "$").replace("}", "")
            if text != "/dev/null" and not text.startswith("/dev/std"):
                yield resolve(redirect.target, run.env, run.unit.lines)[0], run.unit.at(redirect.line)


def _run(run: Run, scene: Scene, copied: list[str]) -> Iterator[Finding]:
    found = list(_outputs(run))
    lost = [(arg, line) for arg, line in found if is_lost(arg.text, run.cwd, scene)]
    kept = [arg for arg, _ in found if not is_lost(arg.text, run.cwd, scene)]
    for arg, line in lost:
        head = arg.text.rstrip("/")
        if kept or any(text.startswith(head) or head.startswith(text.rstrip("/*") or "-") for text in copied):
            continue
        yield Finding("output_node_local", "warn", line, _why(arg.text, scene), _MEND, run.unit.file)
        return


def _why(path: str, scene: Scene) -> str:
    if _on_node(path):
        return f"{path} is on the node's own disk and gone with it"
    return f"{path} lies outside the workspace ({', '.join(scene.workspace)})"


def _on_node(path: str) -> bool:
    return any(path == place or path.startswith(place + "/") for place in PLACES_OF_A_NODE) or bool(
        _NODE_VARIABLES.match(path)
    )


def is_lost(path: str, cwd: str | None, scene: Scene) -> bool:
    """Whether what is written there is gone or unseen when the job has ended."""
    if not path.startswith(("/", "$", "~")):
        return cwd is not None and cwd.startswith("/") and _on_node(cwd) and not scene.keeps(cwd)
    if scene.keeps(path):
        return False
    if _on_node(path):
        return True
    return (
        path.startswith("/")
        and bool(scene.workspace)
        and not any(w in (".", "") or w.startswith("$") for w in scene.workspace)
    )


def _none_named(run: Run) -> Iterator[Finding]:
    """lm_eval keeps its scores only where --output_path says."""
    first = run.args[0].text if run.args else ""
    if run.name in ("lm_eval", "lm-eval") or (run.module and first == "lm_eval"):
        given = {option.name for option in options(run)}
        if not given & {"output_path", "o", "output", "wandb_args"} and not given & {"help", "h"}:
            mend = "Add `--output_path` with a folder below the workspace."
            yield Finding(
                "output_node_local", "warn", run.line, "the scores are only printed", mend, run.unit.file
            )


def find_in_code(code: Code, scene: Scene) -> Iterator[Finding]:
    """`output_dir="/tmp/..."` and saves to a node's own disk in Python."""
    for call in code.calls:
        last = call.name.rsplit(".", 1)[-1]
        for keyword in call.node.keywords:
            if keyword.arg and names_output(keyword.arg.lower()) and not _MAYBE.search(keyword.arg):
                text = code.string(keyword.value)
                if text and _on_node(text) and not scene.keeps(text):
                    yield Finding(
                        "output_node_local", "warn", code.at(keyword), _why(text, scene), _MEND, code.file
                    )
        if last in ("save", "save_pretrained", "to_csv", "dump", "save_model", "savez"):
            place = call.argument(1 if call.name == "torch.save" else 0, "f", "path")
            text = code.string(place)
            if text and _on_node(text) and not scene.keeps(text):
                yield Finding(
                    "output_node_local", "warn", code.at(call.node), _why(text, scene), _MEND, code.file
                )
