"""What the texts of `rjob` say, and nothing more: header lines, the name that was created, counts, quota figures.

The shapes come from public files (RJOB 3, 4, 7), not from the tool's own source, so each pattern is tolerant of
what stands around it and strict about the fact itself. A job's word is read from its header line alone: the
counters below it hold `'succeeded': 0` for a job that waits (RJOB 0.5).

Never: touch a file, a process or a clock; take a word from anywhere but a header line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\^_])")
_STAMP = r"(?:\d\d(?:\d\d-\d\d)?-\d\d \d\d:\d\d:\d\d\S{0,12} \[[A-Z]{1,12}\] {1,8})?"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}"
_HEADER = re.compile(
    rf"{_STAMP}rjob (?P<name>{_NAME})(?: \(showname=(?P<show>[^)\n]{{0,253}})\))?"
    r" {0,4}: {0,4}(?P<word>[A-Za-z]{1,40})(?![A-Za-z])(?P<rest>[^\n]{0,400})"
)
_TASK = re.compile(
    rf"{_STAMP}\|- task [^\s:]{{1,253}}: (?P<count>\d{{1,9}}) replicas? (?P<dict>\{{[^}}\n]*\}})?"
)
_REPLICA = re.compile(
    rf"{_STAMP}\|- replica [^\s:]{{1,253}}: [A-Za-z_]{{1,40}}(?:, {{1,4}}(?P<node>[\w.-]{{1,253}}))?"
)
_COUNTER = re.compile(r"'(\w{1,40})': (\d{1,9})")
_CREATED = re.compile(rf"created rjob_name: {{0,4}}(?P<name>{_NAME})\s*$", re.MULTILINE)
_LEFT_OUT = re.compile(r"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n")
_QUOTA = re.compile(
    r"([A-Za-z][\w./-]{0,60}) {0,3}: {0,3}(\d[\d.]{0,20})([KMGT]i)? {0,3}/ {0,3}(\d[\d.]{0,20})([KMGT]i)?"
)
_TOTAL = re.compile(r"总副本数量\s{0,4}[:：]\s{0,4}(\d{1,9})")
_FIT = re.compile(r"(?<!不)可调度数量\s{0,4}[:：]\s{0,4}(\d{1,9})")
_OF = re.compile(r"(?<![\d./])(\d{1,9}) {0,2}/ {0,2}(\d{1,9})(?![\d./])")

SAFE_NAME = re.compile(_NAME)
"""What may stand in an argument as the name of a job or a namespace: it can never be taken for a flag."""


class Shown(NamedTuple):
    """One job as `rjob get` or `rjob list` shows it.

    word: its phase, as spelt. rest: what stands behind the word. replicas, active: from the task lines, None
    where there are none. node: of a job of one replica, where the replica line names it.
    """

    name: str
    showname: str
    word: str
    rest: str = ""
    replicas: int | None = None
    active: int | None = None
    node: str = ""


def plain(text: str) -> str:
    """Without terminal codes."""
    return _ANSI.sub("", text)


def shown(text: str) -> list[Shown]:
    """Every job that has a header line, in the order shown. Anything else in the text is passed over."""
    found: list[Shown] = []
    for line in plain(text).splitlines():
        line = line.strip()
        if header := _HEADER.fullmatch(line):
            name, show, word = header["name"], header["show"] or "", header["word"]
            found.append(Shown(name, show, word, header["rest"].strip(" ,;:")))
        elif found:
            found[-1] = _with_line(found[-1], line)
    return found


def _with_line(job: Shown, line: str) -> Shown:
    if task := _TASK.match(line):
        counters = dict(_COUNTER.findall(task["dict"] or ""))
        active = int(counters["active"]) + (job.active or 0) if "active" in counters else job.active
        return job._replace(replicas=(job.replicas or 0) + int(task["count"]), active=active)
    if replica := _REPLICA.match(line):
        return job._replace(node=(replica["node"] or "") if job.replicas in (None, 1) else "")
    return job


def created(text: str, name: str) -> str:
    """The metadata name that a submit reports for the display name `name`; "" where it reports none of ours.

    The name itself, or the name with the platform's suffix; what else the text claims is not about this call
    (a command that is echoed may hold any line).
    """
    names = [match["name"] for match in _CREATED.finditer(plain(text))]
    ours = [found for found in names if found == name or found.startswith(f"{name}-")]
    return name if name in ours else (ours[-1] if ours else "")


def names_it(text: str, name: str) -> str:
    """A line that speaks of the job without being a readable header; "" if there is none."""
    about = re.compile(rf"\brjob {re.escape(name)}(?![\w.-])")
    return next((line.strip()[:200] for line in plain(text).splitlines() if about.search(line)), "")


def predicted(text: str) -> tuple[int, int] | None:
    """(replicas that can be placed, replicas asked) from `--predict-only`; None where no counts stand.

    The exit status does not say it (RJOB 0.7). Older tools print `N/M`.
    """
    text = plain(text)
    total, fit = _TOTAL.search(text), _FIT.search(text)
    if total and fit:
        return int(fit[1]), int(total[1])
    of = _OF.search(text)
    return (int(of[1]), int(of[2])) if of else None


class Quota(NamedTuple):
    """One figure of a quota refusal: kind of resource, what it would come to, the limit."""

    kind: str
    wanted: float
    limit: float


_UNITS = {"": 1.0, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


def quotas(text: str) -> Sequence[Quota]:
    """The figures behind `insufficient group quota`, memory in bytes; empty where there are none."""
    _, marked, tail = plain(text).partition("insufficient group quota")
    if not marked:
        return ()
    return tuple(
        Quota(kind, _number(wanted) * _UNITS[unit], _number(limit) * _UNITS[of])
        for kind, wanted, unit, limit, of in _QUOTA.findall(tail[:1000])
    )


def _number(text: str) -> float:
    whole, _, rest = text.partition(".")
    return float(f"{whole}.{rest.replace('.', '') or 0}")


def was_cut(text: str, kept_bytes: int) -> bool:
    """Did the runner leave out the middle? Then what does not stand in the text is not thereby absent."""
    return len(text) * 4 >= 2 * kept_bytes and _LEFT_OUT.search(text) is not None


def after_the_cut(text: str) -> str:
    """What stands behind the left out middle, from the first whole line on."""
    tail = _LEFT_OUT.split(text)[-1]
    return tail.partition("\n")[2]
