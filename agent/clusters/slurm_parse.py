"""What Slurm's commands print, as rows of native words: squeue (text and JSON), sacct, scontrol, sinfo. Pure.

Text is asked for with separators that no ordinary name holds, since names, comments and reasons hold anything,
line ends included. Times are seconds since 1970 (SLURM_TIME_FORMAT=%s), so no time zone is ever guessed. A JSON
number may be plain or {"set", "infinite", "number"}, a state one word or a list: that differs by version.

Never: drop a job in silence because its name is odd; read a time without its zone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

Row = dict[str, str]

FIELD, RECORD = "\x1f", "\x1e"

QUEUE: Mapping[str, str] = {
    "JobID": "JobId", "ArrayJobID": "ArrayJobId", "ArrayTaskID": "ArrayTaskId", "State": "JobState",
    "RestartCnt": "Restarts", "exit_code": "ExitCode", "SubmitTime": "SubmitTime", "StartTime": "StartTime",
    "EndTime": "EndTime", "NumNodes": "NumNodes", "NodeList": "NodeList", "UserName": "UserId",
    "Partition": "Partition", "Reason": "Reason", "WorkDir": "WorkDir", "Comment": "Comment", "Name": "JobName",
}  # fmt: skip
"""squeue's columns and what scontrol calls them. The name is last: it may hold a separator."""

ACCOUNTING: Mapping[str, str] = {
    "JobIDRaw": "JobId", "JobID": "ArrayJobId", "User": "UserId", "State": "JobState", "ExitCode": "ExitCode",
    "Submit": "SubmitTime", "Start": "StartTime", "End": "EndTime", "NNodes": "NumNodes", "NodeList": "NodeList",
    "Partition": "Partition", "Reason": "Reason", "WorkDir": "WorkDir", "Comment": "Comment",
    "JobName": "JobName",
}  # fmt: skip

JSON: Mapping[str, str] = {
    "job_id": "JobId", "array_job_id": "ArrayJobId", "restart_cnt": "Restarts", "submit_time": "SubmitTime",
    "start_time": "StartTime", "end_time": "EndTime", "node_count": "NumNodes", "nodes": "NodeList",
    "user_name": "UserId", "partition": "Partition", "state_reason": "Reason",
    "current_working_directory": "WorkDir", "comment": "Comment", "name": "JobName",
    "standard_output": "StdOut",
}  # fmt: skip

NODES = ("NodeList", "Partition", "StateComplete", "CPUsState", "Memory", "AllocMem", "Gres", "GresUsed")

NOTHING = frozenset({"(null)", "N/A", "None assigned", "Unknown"})


def queue_columns() -> str:
    """The argument of `squeue -O`: a suffix instead of a width, so that nothing is padded or cut."""
    names = list(QUEUE)
    return ",".join(f"{name}:{FIELD if name != names[-1] else RECORD}" for name in names)


def queue_rows(text: str) -> list[Row]:
    """Rows of `squeue -h -O <queue_columns>`."""
    found = []
    for record in text.split(RECORD):
        words = record.lstrip("\n").split(FIELD, len(QUEUE) - 1)
        if len(words) == len(QUEUE):
            row = _row(QUEUE.values(), words)
            found.append(row | {"ExitCode": exit_words(row["ExitCode"])})
    return found


def accounting_columns() -> str:
    return ",".join(ACCOUNTING)


def accounting_rows(text: str) -> list[Row]:
    """Rows of `sacct -X -P -n -D --delimiter=<FIELD> -o <accounting_columns>`, one for each stay of a job in the
    queue. A line without separators goes on with the name before it."""
    records: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.count(FIELD) < len(ACCOUNTING) - 1 and records:
            records[-1] += line
        else:
            records.append(line)
    found = []
    for record in records:
        words = record.removesuffix("\n").split(FIELD, len(ACCOUNTING) - 1)
        if len(words) == len(ACCOUNTING):
            row = _row(ACCOUNTING.values(), words)
            base, _, task = row["ArrayJobId"].partition("_")
            found.append(row | {"ArrayJobId": base, "ArrayTaskId": task.strip("[]")})
    return found


def latest_stays(rows: Iterable[Row]) -> list[Row]:
    """One row a job: its last stay in the queue, Restarts counting those before (sacct has no such column)."""
    stays: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        stays.setdefault((row["JobId"], row["JobName"]), []).append(row)
    return [
        max(own, key=lambda row: (_int(row["SubmitTime"]), row["StartTime"]))
        | {"Restarts": str(len(own) - 1)}
        for own in stays.values()
    ]


def json_rows(text: str) -> list[Row]:
    """Rows of `squeue --json`. Raises ValueError for what is not JSON of that kind (cut short, an error)."""
    try:
        answer = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(answer, dict) or not isinstance(answer.get("jobs"), list) or answer.get("errors"):
        raise ValueError("not a list of jobs")
    try:
        return [_from_json(job) for job in answer["jobs"]]
    except (AttributeError, TypeError) as error:
        raise ValueError(f"a job that is written in another way: {error}") from None


def _from_json(job: Mapping[str, Any]) -> Row:
    row = {native: _plain(job.get(key)) for key, native in JSON.items()}
    states = job.get("job_state", "")
    task = _plain(job.get("array_task_string")) or _plain(job.get("array_task_id"))
    array = row["ArrayJobId"] if row["ArrayJobId"] not in ("", "0") else row["JobId"]
    return row | {
        "JobState": ",".join(states) if isinstance(states, list) else str(states),
        "ArrayJobId": array,
        "ArrayTaskId": task if row["ArrayJobId"] not in ("", "0") else "",
        "ExitCode": _json_exit(job.get("exit_code")),
    }


def _json_exit(value: Any) -> str:
    if not isinstance(value, dict) or "return_code" not in value:
        return exit_words(_plain(value))
    number = (value.get("signal") or {}).get("id")
    return f"{_plain(value['return_code']) or 0}:{_plain(number) or 0}"


def _plain(value: Any) -> str:
    """A JSON value as scontrol would print it."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return "" if value is None else _word(str(value))


def exit_words(status: str) -> str:
    """A raw wait status as `rc:signal`: squeue prints 768 where scontrol says 3:0."""
    if not status.isdecimal():
        return status
    number = int(status) & 0x7F
    return f"0:{number}" if number else f"{int(status) >> 8}:0"


def fields(text: str) -> Row:
    """`Key=Value` words of `scontrol show job` and lines of `scontrol show config`; a value may hold blanks.

    The name of a job stands in the middle of a line: whoever asks knows it, and does not read it here.
    """
    found: Row = {}
    if begun := re.search(r"data as of (\d+)", text):
        found["AsOf"] = begun[1]
    for key, value in re.findall(
        r"(?m)(?:^|(?<=\s))([A-Za-z][\w/:]*) *=(.*?)(?=\s+[A-Za-z][\w/:]* *=|\s*$)", text
    ):
        found.setdefault(key, _word(value.strip()))
    return found


class Node(NamedTuple):
    """A node's room: cores and MiB, free and in all, and its GPUs. usable: it takes jobs."""

    name: str
    usable: bool
    free_cpu: int
    total_cpu: int
    free_mib: int
    total_mib: int
    free_gpu: int
    total_gpu: int


UNUSABLE = re.compile(
    r"down|drain|drng|fail|maint|boot|power|unk|resv|reserved|planned_down|not_responding|\*", re.I
)


def node_columns() -> str:
    return ",".join(f"{name}:{FIELD}" for name in NODES)


def nodes(text: str, partition: str = "") -> tuple[str, list[Node]]:
    """A partition (named, or the default one, or "" for all) and its nodes, from `sinfo -h -N -O <node_columns>`."""
    lines = (line.split(FIELD)[: len(NODES)] for line in text.splitlines())
    rows = [[word.strip() for word in words] for words in lines if len(words) == len(NODES)]
    usual = partition or next((row[1][:-1] for row in rows if row[1].endswith("*")), "")
    found = {row[0]: _node(row[0], *row[2:]) for row in rows if usual in ("", row[1].rstrip("*"))}
    return usual, list(found.values())


def _node(name: str, state: str, cpus: str, memory: str, allocated: str, gres: str, used: str) -> Node:
    # CPUs: allocated/idle/other/total.
    parts = [int(part) for part in cpus.split("/")] if re.fullmatch(r"\d+(/\d+){3}", cpus) else [0, 0, 0, 0]
    usable = not UNUSABLE.search(state)
    total_mib, total_gpu = _int(memory), gpus(gres)
    return Node(
        name=name,
        usable=usable,
        free_cpu=parts[1] if usable else 0,
        total_cpu=parts[3],
        free_mib=max(0, total_mib - _int(allocated)) if usable else 0,
        total_mib=total_mib,
        free_gpu=max(0, total_gpu - gpus(used)) if usable else 0,
        total_gpu=total_gpu,
    )


def gpus(gres: str) -> int:
    """GPUs of a GRES list: `gpu:h200:8(S:0-1),tmp:1` has 8; of several kinds the sum."""
    return sum(
        int(count or 1)
        for count in re.findall(
            r"(?:^|,)(?:gres/)?gpu(?::[^:,(]*[^\d:,(][^:,(]*)?(?::(\d+))?(?=[,(]|$)", gres
        )
    )


def tasks(expression: str) -> int:
    """How many tasks an array expression stands for: `0-31%4` 32, `3,5,9-12:2` 4, `7` 1."""
    count = 0
    for part in expression.strip("[]").partition("%")[0].split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?(?::(\d+))?", part)
        if found:
            first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
            count += max(0, last - first) // max(1, step) + 1
    return max(1, count)


def version(text: str) -> tuple[int, int]:
    """`slurm-wlm 22.05.8` or `22.05.8` -> (22, 5); (0, 0) when no number stands there."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _row(keys: Iterable[str], words: Iterable[str]) -> Row:
    return {key: _word(word) for key, word in zip(keys, words, strict=True)}


def _word(text: str) -> str:
    return "" if text in NOTHING else text


def _int(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def by_array(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows that belong together: the tasks of one array, or one job alone. Ids are recycled, so the name counts."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.get("ArrayJobId") or row["JobId"], row["JobName"]), []).append(row)
    yield from groups.values()
