"""Directives of batch scripts (`#SBATCH`, `#PBS`): lost, rejected, or without a time limit.

Slurm reads them up to the first command, wants `#!` as the first two characters of the file, and expands no
variable in them (sbatch's manual).

Never: object to what is plainly commented out (`##SBATCH`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from states.lint.facts import Unit, Walked
from states.lint.finding import Finding
from states.lint.scene import Scene
from states.lint.slurm_options import FLAGS, LONG, SHORT

_DIRECTIVE = re.compile(r"#(SBATCH|PBS|BSUB)(?=[ \t-])[ \t]{0,40}(.{0,500})")
_LOOKS_LIKE = re.compile(
    r"[ \t]{1,40}#SBATCH[ \t]|SBATCH[ \t]+-|#(?:sbatch|Sbatch|SBTACH|SBACTH|SBATH|SBTCH|SABTCH|SBATCHH|SBATC)[ \t]+-"
)
_SPACED = re.compile(r"#[ \t]{1,4}SBATCH[ \t]+-")
_SHEBANG = re.compile(r"#![ \t]{0,4}/")
_HALF_SHEBANG = re.compile(r"(?:#|!|# !)/(?:usr/)?bin/")
_TIME = re.compile(
    r"\d+|\d+:\d{1,2}|\d+:\d{1,2}:\d{1,2}|\d+-\d{1,2}(?::\d{1,2}){0,2}|(?i:infinite|unlimited)|%\w.*|[<\[{].*"
)
_MEMORY = re.compile(r"\d+(?:\.\d+)?[KMGTkmgt]?[Bb]?|[<\[{].*")
_COUNT = re.compile(r"\d+[kKmM]?(?:-\d+[kKmM]?(?::\d+)?)?(?:,[\d,-]+)?|[<\[{].*")
_MEND = "Put `#!/bin/bash` into the very first line and every directive below it, before the first command."


class Directive(NamedTuple):
    """One option of a directive line; value "" for a flag."""

    system: str
    option: str
    value: str
    line: int
    joined: bool


def read(text: str) -> list[Directive]:
    """The directives that the scheduler takes: those before the first command."""
    found: list[Directive] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _DIRECTIVE.match(line)
        if match:
            found += _options(match[1], match[2], number)
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found


def _options(system: str, rest: str, line: int) -> Iterator[Directive]:
    words = re.split(r"[ \t]+", re.split(r"(?:^|[ \t])#", rest)[0].strip())
    n = 0
    while n < len(words):
        word = words[n]
        if word.startswith("--"):
            name, joined, value = word[2:].partition("=")
        elif re.match(r"-\w", word):
            name, value = word[1], word[2:]
            joined = "=" if value else ""
        else:
            n += 1
            continue
        if not joined and n + 1 < len(words) and not words[n + 1].startswith("-"):
            n, value = n + 1, words[n + 1]
        yield Directive(system, name, value.strip("\"'"), line, bool(joined))
        n += 1


def find(walked: Walked, scene: Scene) -> Iterator[Finding]:
    """Every batch text among the units."""
    for unit in walked.units:
        batch = unit.how == "heredoc" and any(w.name in ("sbatch", "qsub") for w in unit.via)
        main = unit.how == "file" and unit is walked.units[0]
        if batch or main:
            yield from _shebang(unit, scene)
            yield from _lost(unit)
            yield from _rejected(unit)
            yield from _time_limit(unit, batch)


def _has(unit: Unit) -> bool:
    return any(line.startswith(("#SBATCH", "#PBS", "#BSUB")) for line in unit.text.splitlines())


def _shebang(unit: Unit, scene: Scene) -> Iterator[Finding]:
    lines = unit.text.splitlines()
    if not lines:
        return
    needed = any(line.startswith("#SBATCH") for line in lines)
    if needed and "\r\n" in unit.text:
        why = "lines end as Windows ends them; sbatch refuses that"
        yield Finding("bad_directive", "refuse", unit.at(1), why, "Convert the file (`dos2unix`).", unit.file)
    if lines[0].startswith("#!"):
        return
    for number, line in enumerate(lines[:60], 1):
        half = _HALF_SHEBANG.match(line.strip()) is not None
        if _SHEBANG.match(line.lstrip()) or half:
            level = "refuse" if needed else "note"
            if needed or (half and number == 1):
                why = "`#!` is not what the file begins with"
                yield Finding(
                    "bad_directive",
                    "refuse" if level == "refuse" else "note",
                    unit.at(number),
                    why,
                    _MEND,
                    unit.file,
                )
            return
    if needed:
        why = "there is no `#!` line; sbatch refuses the script"
        yield Finding("bad_directive", "refuse", unit.at(1), why, _MEND, unit.file)


def _lost(unit: Unit) -> Iterator[Finding]:
    """Directives below the first command, indented, or misspelt."""
    began, taken, spaced = False, 0, []
    in_body = _inside_bodies(unit)
    for number, line in enumerate(unit.text.splitlines(), 1):
        if number in in_body:
            continue
        if _DIRECTIVE.match(line):
            taken += not began
            if began:
                why = "stands below the first command, where the scheduler no longer looks"
                yield Finding("bad_directive", "refuse", unit.at(number), why, _MEND, unit.file)
        elif _LOOKS_LIKE.match(line):
            why = "is a comment to the scheduler: `#SBATCH` must begin the line, in capitals"
            yield Finding("bad_directive", "refuse", unit.at(number), why, _MEND, unit.file)
        elif _SPACED.match(line):
            spaced.append(number)
        elif line.strip() and not line.lstrip().startswith("#"):
            began = True
    for number in spaced:
        why = "`# SBATCH` is a comment to the scheduler"
        mend = "Write `#SBATCH` without a blank, or `##SBATCH` if it is meant to be off."
        yield Finding("bad_directive", "note" if taken else "refuse", unit.at(number), why, mend, unit.file)


def _inside_bodies(unit: Unit) -> set[int]:
    """Lines of here-documents: another script's, judged on its own."""
    found: set[int] = set()
    for run in unit.runs:
        for redirect in run.command.redirects:
            if redirect.body:
                found |= set(range(redirect.body_line, redirect.body_line + redirect.body.count("\n") + 1))
    return found


def _rejected(unit: Unit) -> Iterator[Finding]:
    for directive in read(unit.text):
        if directive.system != "SBATCH":
            continue
        why = _fault(directive)
        if why:
            mend = "Correct the directive; `sbatch --test-only` checks it without submitting."
            yield Finding("bad_directive", "refuse", unit.at(directive.line), why, mend, unit.file)
    for number, line in enumerate(unit.text.splitlines(), 1):
        if line.startswith("#SBATCH") and re.match(r"#SBATCH[ \t]{1,40}-?[–—]", line):
            why = "a dash that is no hyphen: the option is not one"
            yield Finding("bad_directive", "refuse", unit.at(number), why, "Type `--`.", unit.file)


def _fault(directive: Directive) -> str:
    """Why sbatch would reject or misread it, "" if it would not."""
    name, value = directive.option, directive.value
    if len(name) == 1:
        name = SHORT.get(name, "")
        if not name:
            return f"sbatch has no option -{directive.option}"
    elif name not in LONG:
        fits = [known for known in LONG if known.startswith(name)]
        if len(fits) != 1:
            return f"sbatch has no option --{name}"
        name = fits[0]
    if value == "=" or value.startswith("= ") or (not value and directive.joined):
        return "the value is missing"
    if not value and name not in FLAGS:
        return "the value is missing"
    if value.startswith("=") and len(directive.option) == 1:
        value = value[1:]
    if "$" in value and name in (
        "output",
        "error",
        "nodes",
        "ntasks",
        "array",
        "time",
        "mem",
        "gres",
        "chdir",
        "partition",
    ):
        return "variables are not expanded in directives"
    if value.startswith("~") and name in ("output", "error", "chdir"):
        return "`~` is not expanded in directives"
    checks = {"time": _TIME, "mem": _MEMORY, "mem-per-cpu": _MEMORY, "nodes": _COUNT, "ntasks": _COUNT}
    shape = checks.get(name)
    if shape is not None and value and not shape.fullmatch(value):
        return f"{value!r} is no value for --{name}"
    return ""


def _time_limit(unit: Unit, batch: bool) -> Iterator[Finding]:
    if not (batch or _has(unit)):
        return
    given = read(unit.text)
    limited = any(
        d.option in ("t", "time", "W") or any(w in d.value for w in ("walltime", "h_rt", "elapstim"))
        for d in given
    )
    limited = limited or any(w.option("t", "time") is not None for w in unit.via if w.name == "sbatch")
    if not limited:
        mend = "Give one (`#SBATCH --time=...`): the partition's default may end the run or keep it far back."
        yield Finding("no_time_limit", "note", 0, "no time limit is given", mend, unit.file)
