"""Whether a command is a light, quick step that is faster run directly than as a cluster job (RULES C1).

Read from the command alone, and only what is certain: a closed list of commands that look around, a version or help
flag, Python that only imports and prints, or a stated length of seconds without a GPU. One command that is none of
these makes the whole line ordinary work.

Never: call a script, a loop or a substitution light; keep a person from running it who insists.
"""

from __future__ import annotations

import ast
import re
import shlex
from itertools import groupby

from states.cost import length_s
from states.job import Check, Job
from states.words.wording import command_line, duration

LOOKS_AROUND = frozenset(
    "arch cat date df echo env false free getconf groups head hostname id locale ls lsblk lscpu lsmod nproc printenv"
    " printf ps pwd readlink realpath stat tail tree true type uname uptime wc whereis which who whoami nvidia-smi"
    " rocm-smi".split()
)
"""Programs that read a little and print it."""

LISTS = {
    "pip": {"list", "show", "freeze", "check"},
    "pip3": {"list", "show", "freeze", "check"},
    "conda": {"list", "info"},
    "mamba": {"list", "info"},
    "git": {"status", "log", "branch", "show"},
    "module": {"list", "avail"},
    "uv": {"version"},
}
"""Programs that only list under these words."""

ASKS_WHAT_IT_IS = frozenset({"--version", "-V", "--help", "-h"})
GOES_ON = frozenset({"-l", "--loop", "-lms", "--loop-ms", "-f", "-F", "--follow", "dmon", "pmon", "daemon"})
"""Words that make a look an endless watch."""

ASKED_ABOUT = frozenset(
    "apex cupy cv2 deepspeed flash_attn flax jax jaxlib numpy os pandas platform scipy sklearn socket sys tensorflow"
    " tensorrt torch torchaudio torchvision transformers triton vllm xformers".split()
)
"""Packages whose version or view of the machine is printed."""

_PYTHON = re.compile(r"python[\d.]*")
_NOT_PLAIN = re.compile(r"[`{}\n]|\$\(|<<|>>?|\b(?:for|while|until|if|case|function)\b")
CHARS_MAX = 400


def light_row(job: Job) -> Check:
    """The preflight row `light`: `ask` with the advice to run it directly, `note` where it needs a GPU that only the
    cluster has; on this machine's own cluster, and for who insists, it is no question (C1)."""
    why = why_light(job)
    if not why:
        return _row("ordinary work for a cluster")
    if job.cluster == "local":
        return _row(f"{why}; it runs on this machine in any case")
    if job.request.insist:
        return _row(f"{why}; it runs on the cluster since the request insists")
    if job.spec.gpu:
        said = f"{why}; it waits in the queue for the GPU of which it needs so little"
        return _row(said).model_copy(update={"level": "note", "facts": {"note": f"light: {said}"}})
    mend = f"Run it directly: {command_line(job.spec.command)}"
    return _row(f"{why}.").model_copy(update={"level": "ask", "mend": mend, "question": "light"})


def why_light(job: Job) -> str:
    """What makes it light, in words; "" for ordinary work."""
    if job.spec.replicas > 1 or job.request.smoke or job.request.outputs:
        return ""
    if is_light(job.spec.command):
        return "it only looks around, which takes seconds"
    seconds = length_s(job.request)
    if seconds is not None and seconds <= job.policy.light_s and not job.spec.gpu:
        return f"it is to run for {duration(seconds, job.language)} at most, without a GPU"
    return ""


def is_light(command: tuple[str, ...]) -> bool:
    """Whether each program of the command is on the lists; False for whatever cannot be read with certainty."""
    words = command
    if _is_shell_line(command):
        text = command[2]
        if len(text) > CHARS_MAX or _NOT_PLAIN.search(_unquoted(text)):
            return False
        try:
            lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|")
            lexer.whitespace_split = True
            words = tuple(lexer)
        except ValueError:
            return False
    signs = set(";&|")
    parts = [tuple(part) for sign, part in groupby(words, key=lambda word: set(word) <= signs) if not sign]
    return bool(parts) and all(_is_light_program(part) for part in parts)


def _is_light_program(words: tuple[str, ...]) -> bool:
    name, rest = words[0].rsplit("/", 1)[-1], words[1:]
    if GOES_ON & set(rest):
        return False
    if len(rest) == 1 and rest[0] in ASKS_WHAT_IT_IS:
        return not words[0].endswith((".sh", ".py"))
    if _PYTHON.fullmatch(name):
        return _is_light_python(rest)
    if name in LISTS:
        return bool(rest) and rest[0] in LISTS[name]
    return name in LOOKS_AROUND


def _is_light_python(rest: tuple[str, ...]) -> bool:
    """`-m pip list`, or `-c` with imports and prints alone."""
    if rest[:2] == ("-m", "pip"):
        return _is_light_program(rest[1:])
    if len(rest) != 2 or rest[0] != "-c" or len(rest[1]) > CHARS_MAX:
        return False
    try:
        tree = ast.parse(rest[1])
    except (SyntaxError, ValueError):
        return False
    return any(map(_is_print, tree.body)) and all(
        _is_print(one) or _is_known_import(one) for one in tree.body
    )


def _is_known_import(statement: ast.stmt) -> bool:
    """Of packages that do no work when they are imported; a module of one's own may."""
    match statement:
        case ast.Import(names=names):
            return all(name.name.split(".")[0] in ASKED_ABOUT for name in names)
        case ast.ImportFrom(module=str(module), level=0):
            return module.split(".")[0] in ASKED_ABOUT
    return False


def _is_print(statement: ast.stmt) -> bool:
    """`print(...)` of names, constants and plain calls without arguments (`torch.cuda.is_available()`)."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"):
        return False
    inner = [node for argument in call.args for node in ast.walk(argument)]
    plain = (
        ast.Name,
        ast.Attribute,
        ast.Constant,
        ast.Call,
        ast.expr_context,
        ast.JoinedStr,
        ast.FormattedValue,
    )
    return all(
        isinstance(node, plain) and not (isinstance(node, ast.Call) and (node.args or node.keywords))
        for node in inner
    )


def _is_shell_line(command: tuple[str, ...]) -> bool:
    shell = command[0].rsplit("/", 1)[-1] if command else ""
    return len(command) == 3 and shell in ("bash", "sh") and command[1] in ("-c", "-lc")


def _unquoted(text: str) -> str:
    """The text without what stands in single or double quotes, where the shell reads no syntax that matters here;
    a substitution inside double quotes stays visible."""
    bare = re.sub(r"'[^']*'", "''", text)
    return re.sub(r'"[^"$`]*"', '""', bare)


def _row(evidence: str) -> Check:
    return Check(name="light", level="fine", evidence=evidence, rule="C1")
