"""Variables that may be blank, and placeholders that were never filled in (RULES D1, C11).

A blank is a warning where it removes or misleads (`rm -rf $X`, a value left empty, a name that is a letter off), a
note where the caller is expected to give it.

Never: object under `set -u`, `${X:?}`, or where the script tests the variable and leaves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding, Level
from states.lint.shell import Part
from states.lint.words import Value
from states.lint.work import is_work

_MEND_RM = "Write `${NAME:?}` so that a blank ends the script, or test it first and leave."
_MEND_SET = "Set it before it is used, or demand it with `${NAME:?what it is}`."
_MEND_FILL = "Fill it in; a token belongs into the environment that the cluster keeps, not into the script."
_GIVEN = re.compile(
    r"(?:SLURM|PBS|LSB|SGE|JOB|OMPI|PMI|MPI|CUDA|NCCL|HF|WANDB|KUBERNETES|RAY|NV|NVIDIA|OMP|CONDA|LC|SSH|XDG|PET|RDZV)_\w+"
    r"|HOME|USER|LOGNAME|PATH|PWD|OLDPWD|SHELL|TMPDIR|TMP|TEMP|HOSTNAME|LANG|RANDOM|SECONDS|UID|EUID|PPID|LINENO"
    r"|BASH\w*"
    r"|PYTHONPATH|LD_LIBRARY_PATH|SCRATCH|WORK|PROJECT|STORE|DATA|ARCHIVE|FUNCNAME|IFS|OPTARG|OPTIND|REPLY|TERM|DISPLAY"
    r"|EDITOR"
    r"|RANK|LOCAL_RANK|WORLD_SIZE|NODE_RANK|MASTER_ADDR|MASTER_PORT|PIPESTATUS|HOSTTYPE|MACHTYPE|OSTYPE|VIRTUAL_ENV"
    r"|MANPATH"
    r"|CPATH|LIBRARY_PATH|LOCAL_SCRATCH|NODE_\w+|POD_\w+|MLP_\w+|EBROOT\w+|[?#!$*@_-]|\d+"
)
_PLACEHOLDER = re.compile(
    r"<[A-Za-z][\w .:/-]{0,60}>|(?:hf|sk|ghp|gh|wandb|key|token|glpat)[_-](?:\.{2,}|x{3,}|X{3,}|\*{3,})|\.{3}"
    r"|[xX]{4,64}"
    r"|[Yy]our[-_ ]?\w[\w -]{0,60}|YOUR[-_]?\w{0,60}"
    r"|(?:changeme|CHANGEME|CHANGE_ME|change_me|TODO|FIXME|REPLACE_ME|REPLACE\w*)"
    r"|[\w/.-]{0,60}\b(?:YOUR|your)_\w{1,40}[\w/.-]{0,60}"
)


def find(walked: Walked) -> Iterator[Finding]:
    """Blanks and placeholders of every unit."""
    for unit in walked.units:
        said: set[int] = set()
        facts = _Facts(unit)
        for run in unit.runs:
            for finding in (
                *_removal(run, facts),
                *_placeholders(run),
                *_left_blank(run),
                *_unset(run, facts),
            ):
                if finding.line not in said:
                    said.add(finding.line)
                    yield finding
        for finding in _assigned(unit):
            if finding.line not in said:
                said.add(finding.line)
                yield finding


_STRICT = re.compile(r"^[ \t]*set[ \t]+(?:-\w+[ \t]+)*-\w*u|nounset", re.MULTILINE)
_HARMLESS = re.compile(
    r"ARGS|OPT|FLAG|EXTRA|SUFFIX|PREFIX|TAG|DEBUG|PARAM|CMD|RESUME|LOAD|NAME|COMMENT", re.IGNORECASE
)


def _left_blank(run: Run) -> Iterator[Finding]:
    """`HEAD=""` and then `--address=$HEAD:$PORT`: the word is there, and its value is not."""
    words = run.command.words
    for n, word in enumerate(words):
        for part in word.parts:
            value = run.env.get(part.text) if part.kind == "var" and not part.operator else None
            if (
                value is None
                or value.array
                or value.text
                or any(w.raw not in ('""', "''") for w in value.words)
            ):
                continue
            if not value.sure or _HARMLESS.search(part.text):
                continue
            behind_option = n > 0 and words[n - 1].raw.startswith("--") and "=" not in words[n - 1].raw
            if run.name not in ("echo", "printf") and (len(word.parts) > 1 or behind_option):
                yield _found("warn", value.line, f"${part.text} is left blank and used", _MEND_SET, run.unit)


class _Facts:
    """What the whole text says about its variables; each name is looked for once."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.strict = "u" in unit.flags or _STRICT.search(unit.text) is not None
        self.leaves = re.search(r"\b(?:exit|return)\b|:\?", unit.text) is not None
        self.unseen = any(r.outer and r.via[-1:] and r.via[-1].name in ("source", "eval") for r in unit.runs)
        self.tested: dict[str, bool] = {}

    def guards(self, name: str) -> bool:
        """Whether the text tests the variable (or the count of arguments) and can leave."""
        if name not in self.tested:
            self.tested[name] = self.leaves and self._tests(name)
        return self.tested[name]

    def _tests(self, name: str) -> bool:
        if (name.isdigit() or name in ("*", "@")) and re.search(r"\$#|\$\{#\}", self.unit.text):
            return True
        quoted = re.escape(name)
        pattern = rf"-[zn][ \t]+\"?\$\{{?{quoted}\b|\$\{{{quoted}:?\?"
        return re.search(pattern, self.unit.text) is not None


def _found(level: Level, line: int, why: str, mend: str, unit: Unit) -> Finding:
    return Finding("blank_variable", level, line, why, mend, unit.file)


def _removal(run: Run, facts: _Facts) -> Iterator[Finding]:
    """`rm -rf` of something that a blank makes larger; a blank that leaves no word at all removes nothing."""
    words = [arg.text for arg in run.args]
    if run.name != "rm" or not any(re.fullmatch(r"-\w*[rR]\w*|--recursive", word) for word in words[1:]):
        return
    for arg in run.args[1:]:
        parts = arg.word.parts if arg.word is not None else ()
        leaf = next(
            (found for part in parts if (found := _doubtful(part, run, facts, len(parts) > 1, 0))), ""
        )
        if leaf:
            why = f"if ${leaf} is blank, more than was meant is removed"
            yield _found("warn", run.line, why, _MEND_RM, run.unit)
            return


def _doubtful(part: Part, run: Run, facts: _Facts, mixed: bool, depth: int) -> str:
    """The name of a variable behind this part that may be blank beside other text, "" if none."""
    if part.kind != "var" or part.operator in (":?", "?", ":-", "-", ":=") or depth > 5:
        return ""
    name, value = part.text, run.env.get(part.text)
    if value is None:
        given = _GIVEN.fullmatch(name) and not (name.isdigit() or name in ("*", "@"))
        return "" if given or facts.strict or not mixed or facts.guards(name) else name
    if name.isdigit() or facts.guards(name):
        return ""
    for word in value.words:
        for inner in word.parts:
            leaf = _doubtful(inner, run, facts, mixed or len(word.parts) > 1, depth + 1)
            if leaf:
                return leaf
    return ""


def _placeholders(run: Run) -> Iterator[Finding]:
    """A value that was never filled in, in a command's words or exported."""
    if run.name in ("echo", "printf", "cat", "sed", "grep", "awk", "read") or run.where.handler:
        return
    given = [(arg.text.rpartition("=")[2], arg.line) for arg in run.args[1:]]
    given += [(arg.text, arg.line) for arg in run.settings.values()]
    for text, line in given:
        if _PLACEHOLDER.fullmatch(text):
            yield _found("warn", line, "the placeholder was never filled in", _MEND_FILL, run.unit)


def _assigned(unit: Unit) -> Iterator[Finding]:
    values: dict[int, Value] = {id(v): v for run in unit.runs for v in run.env.values()}
    values.update({id(v): v for v in unit.env.values()})
    for value in values.values():
        if value.lines is not unit.lines:
            continue
        for arg in value.args:
            if _PLACEHOLDER.fullmatch(arg.text):
                yield _found("warn", value.line, "the placeholder was never filled in", _MEND_FILL, unit)


def _unset(run: Run, facts: _Facts) -> Iterator[Finding]:
    """Names that nothing sets, in the words of the work."""
    if not is_work(run) and run.name not in ("cd", "expr"):
        return
    unit = facts.unit
    for arg in run.args:
        for part in arg.word.parts if arg.word is not None else ():
            if part.kind != "var" or part.operator or part.text in run.env:
                continue
            name = part.text
            if name.isdigit() or name in ("*", "@"):
                if not (facts.strict or part.quote or name == "@" or facts.guards(name)):
                    yield _found("note", arg.line, f"${name} comes from the caller", _MEND_SET, unit)
            elif name == "SLURM_GPUS_PER_NODE":
                if "gpus-per-node" not in unit.text:
                    why = f"${name} is set only with --gpus-per-node"
                    yield _found("note", arg.line, why, _MEND_SET, unit)
            elif not (_GIVEN.fullmatch(name) or facts.strict or facts.guards(name)):
                wrong = (_near(name, run) or name in unit.env) and not facts.unseen
                why, mend = _why(name, run, unit)
                yield _found("warn" if wrong else "note", arg.line, why, mend, unit)


def _why(name: str, run: Run, unit: Unit) -> tuple[str, str]:
    near = _near(name, run)
    if near:
        return f"${name} is set nowhere; ${near} is", f"Write ${near}, if that is meant."
    if name in unit.env:
        return f"${name} is set only after this line", _MEND_SET
    return f"${name} is not set here", _MEND_SET


def _near(name: str, run: Run) -> str:
    """A variable that is set and whose name is one letter off."""
    return next((other for other in run.env if len(name) > 3 and other != name and _one_off(name, other)), "")


def _one_off(a: str, b: str) -> bool:
    if abs(len(a) - len(b)) > 1 or a[:2] != b[:2] or a.rstrip("0123456789") == b.rstrip("0123456789"):
        return False
    n = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    swapped = len(a) == len(b) and a[n : n + 2] == b[n : n + 2][::-1] and a[n + 2 :] == b[n + 2 :]
    return swapped or (
        a[n + 1 :] == b[n:] if len(a) > len(b) else a[n:] == b[n + 1 :] if len(b) > len(a) else False
    )
