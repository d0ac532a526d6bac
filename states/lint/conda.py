"""`conda activate` without its hook: in a batch shell it is no function yet, and the wrong environment is used.

Hooks: `conda.sh`, `eval "$(conda shell.bash hook)"`, an environment's own `bin/activate`, a shell profile, a login
shell, a module that provides conda, or a script that is read in and cannot be seen.

Never: object where the hook may come from something that cannot be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from states.lint.facts import Run, Unit, Walked
from states.lint.finding import Finding

_MEND = (
    'Put `eval "$(conda shell.bash hook)"` (or `source .../etc/profile.d/conda.sh`) before it, or call the '
    "environment's own `bin/python`."
)
_HOOK = re.compile(
    r"(?:conda|mamba)\.sh\b|shell\.\w{2,12} hook|shell hook|(?:^|/)activate\b|\.?(?:bash|zsh)rc|profile|hook"
)
_MODULE = re.compile(r"conda|mamba|forge|python", re.IGNORECASE)
_LOGIN = re.compile(r"#!.{1,60}(?:bash|zsh|sh)[ \t]+-\w*[li]")


def find(walked: Walked) -> Iterator[Finding]:
    """The first one of each unit."""
    for unit in walked.units:
        yield from _unit(unit)


def _unit(unit: Unit) -> Iterator[Finding]:
    hooked = bool({"l", "i", "login"} & unit.flags) or bool(_LOGIN.match(unit.text)) or unit.how == "sourced"
    for run in unit.runs:
        words = [arg.text for arg in run.args]
        name = run.name
        if name in ("conda", "mamba", "micromamba") and not run.python:
            if (
                len(words) > 1
                and words[1].startswith("shell.")
                and "activate" in words
                and not run.where.substitution
            ):
                why = "it prints the code that would activate, and nothing evaluates it"
                yield Finding("conda_no_hook", "warn", run.line, why, _MEND, unit.file)
                return
            if "hook" in words:
                hooked = True
            elif words[1:2] == ["activate"] and not hooked:
                why = "conda's shell function is not defined in a batch shell"
                yield Finding("conda_no_hook", "warn", run.line, why, _MEND, unit.file)
                return
        hooked = hooked or _hooks(run, words)


def _hooks(run: Run, words: list[str]) -> bool:
    name = words[0] if words else ""
    if name in ("module", "ml"):
        return any(_MODULE.search(word) for word in words[1:])
    if run.outer and run.via and run.via[-1].name in ("source", "eval"):
        return True  # what is read in may define it; a known text is walked and says so itself
    return any(_HOOK.search(word) for word in words) and name in (".", "source", "eval")
