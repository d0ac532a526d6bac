"""What Slurm's commands print, arrays summed up, and which row is which job; no Slurm is needed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.clusters.base import Ref
from agent.clusters.slurm import normalise
from agent.clusters.slurm_answers import observation
from agent.clusters.slurm_array import one_row_each
from agent.clusters.slurm_match import Found, Jobs, belongs
from agent.clusters.slurm_parse import (
    FIELD,
    QUEUE,
    RECORD,
    Row,
    accounting_rows,
    fields,
    gpus,
    json_rows,
    latest_stays,
    nodes,
    queue_rows,
    tasks,
    version,
)
from states.observation import Observation, Phase

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


# --- what the commands print -------------------------------------------------------------------------------


def queue_record(**words: str) -> str:
    return FIELD.join(words.get(name, "") for name in QUEUE.values()) + RECORD + "\n"


def test_a_queue_with_odd_names() -> None:
    text = queue_record(JobId="7", JobState="FAILED", ExitCode="768", JobName="two\nlines") + queue_record(
        JobId="8", ArrayTaskId="N/A", ExitCode="4021", Comment="(null)", JobName=f"a{FIELD}b"
    )
    first, second = queue_rows(text)
    assert (first["JobName"], first["ExitCode"]) == ("two\nlines", "3:0")
    assert (second["JobName"], second["ExitCode"], second["Comment"], second["ArrayTaskId"]) == (
        f"a{FIELD}b", "0:53", "", "",
    )  # fmt: skip
    assert queue_rows("") == []
    assert queue_rows("garbage") == []


def accounting_line(job_id: str, state: str, name: str, submit: str = "100", start: str = "110") -> str:
    words = [job_id, job_id, "me", state, "0:0", submit, start, "120", "1", "n1", "p", "None", "/w", "", name]
    return FIELD.join(words) + "\n"


def test_accounting_with_stays_and_odd_names() -> None:
    text = (
        accounting_line("5", "REQUEUED", "mine")
        + accounting_line("6", "COMPLETED", "two\nlines")
        + accounting_line("5", "COMPLETED", "mine", "200", "210")
        + accounting_line("5", "FAILED", "a stranger's, long ago", "1", "2")
    )
    rows = latest_stays(accounting_rows(text))
    assert [(row["JobName"], row["JobState"], row["Restarts"]) for row in rows] == [
        ("mine", "COMPLETED", "1"), ("two\nlines", "COMPLETED", "0"), ("a stranger's, long ago", "FAILED", "0"),
    ]  # fmt: skip
    assert Jobs(rows).of(Ref("mine", "5")).row == rows[0]


def test_json_of_two_generations_is_one_row() -> None:
    old = {"job_id": 9, "array_job_id": 0, "array_task_id": None, "job_state": "FAILED", "exit_code": 768,
           "restart_cnt": 1, "submit_time": 100, "start_time": 110, "end_time": 120, "node_count": 1, "nodes": "n1",
           "user_name": "me", "partition": "p", "state_reason": "None", "comment": "", "name": "x",
           "current_working_directory": "/w", "array_task_string": "", "standard_output": "/w/o"}  # fmt: skip

    def number(value: int, *, known: bool = True) -> dict[str, Any]:
        return {"set": known, "infinite": False, "number": value}

    new = old | {
        "array_job_id": number(0), "array_task_id": number(0, known=False), "job_state": ["FAILED"],
        "exit_code": {"status": ["ERROR"], "return_code": number(3), "signal": {"id": number(0, known=False)}},
        "submit_time": number(100), "start_time": number(110), "end_time": number(120), "node_count": number(1),
    }  # fmt: skip
    (first,), (second,) = (json_rows(json.dumps({"jobs": [job], "errors": []})) for job in (old, new))
    assert first == second
    assert (first["ExitCode"], first["JobState"], first["ArrayTaskId"]) == ("3:0", "FAILED", "")
    both = json_rows(json.dumps({"jobs": [new | {"job_state": ["COMPLETED", "COMPLETING"]}]}))
    assert Observation(taken_at=NOW, **normalise(both[0])).finishing


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"jobs": 1}', '{"jobs": [], "errors": [{"error": "no"}]}', '{"jobs": [1]}']
)
def test_json_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|not a list of jobs|another way"):
        json_rows(text)


def test_key_value_words() -> None:
    job = "JobId=4 JobName=a b Reason=launch failed requeued held Dependency=(null) StdOut=/w/a b.out Power= "
    told = fields(job)
    assert (told["Reason"], told["Dependency"], told["StdOut"]) == (
        "launch failed requeued held",
        "",
        "/w/a b.out",
    )
    config = fields(
        "Configuration data as of 1796038105\nMinJobAge               = 300 sec\nSLURM_VERSION = 22.05.8\n"
    )
    assert (config["AsOf"], config["MinJobAge"], version(config["SLURM_VERSION"])) == (
        "1796038105",
        "300 sec",
        (22, 5),
    )


def test_nodes_and_their_room() -> None:
    def line(name: str, partition: str, state: str, cpus: str, used: str) -> str:
        return (
            FIELD.join([name, partition, state, cpus, "8000", "2000", "gpu:h200:8(S:0-1)", used])
            + FIELD
            + "\n"
        )

    text = (
        line("n1", "gpu*", "mixed", "16/48/0/64", "gpu:h200:6(IDX:0-5)")
        + line("n1", "debug", "mixed", "16/48/0/64", "gpu:h200:6(IDX:0-5)")
        + line("n2", "gpu*", "idle", "0/64/0/64", "gpu:h200:0(IDX:N/A)")
        + line("n3", "gpu*", "drained", "0/0/64/64", "gpu:h200:0")
        + line("n4", "debug", "down*", "0/0/64/64", "gpu:0")
    )
    usual, found = nodes(text)
    assert usual == "gpu"
    assert [(node.name, node.usable, node.free_gpu, node.free_cpu) for node in found] == [
        ("n1", True, 2, 48), ("n2", True, 8, 64), ("n3", False, 0, 0),
    ]  # fmt: skip
    assert [node.name for node in nodes(text, "debug")[1]] == ["n1", "n4"]
    assert (found[0].free_mib, found[0].total_mib) == (6000, 8000)


@pytest.mark.parametrize(
    ("gres", "count"),
    [("gpu:8", 8), ("gpu:h200:8(S:0-1)", 8), ("gpu:a:2,gpu:b:3", 5), ("tmp:1,gpu:1", 1), ("(null)", 0), ("", 0),
     ("gres/gpu:4", 4), ("gpu", 1), ("gpu:a100:0(IDX:N/A)", 0)],
)  # fmt: skip
def test_gpus_in_a_list(gres: str, count: int) -> None:
    assert gpus(gres) == count


@pytest.mark.parametrize(
    ("expression", "count"),
    [("0-31%4", 32), ("[3-5%2]", 3), ("3,5,9-12:2", 4), ("7", 1), ("", 1), ("0-9:3", 4)],
)
def test_tasks_in_an_expression(expression: str, count: int) -> None:
    assert tasks(expression) == count


# --- arrays and lookups ------------------------------------------------------------------------------------


def row(job_id: str, state: str, task: str = "", **words: str) -> Row:
    base = {"JobId": job_id, "ArrayJobId": words.pop("array", job_id), "ArrayTaskId": task, "JobState": state}
    rest = {
        "JobName": "x",
        "Partition": "p",
        "SubmitTime": "100",
        "StartTime": "110",
        "EndTime": "120",
        "NodeList": "n1",
    }
    return base | rest | {"WorkDir": "", "Comment": "", "ExitCode": "0:0", "Reason": "None"} | words


@pytest.mark.parametrize(
    ("states", "phase", "counts"),
    [
        (["RUNNING", "COMPLETED", "FAILED"], Phase.running, "1 RUNNING, 1 COMPLETED, 1 FAILED"),
        (["COMPLETED", "PENDING"], Phase.pending, "1 COMPLETED, 1 PENDING"),
        (["COMPLETED", "FAILED", "COMPLETED"], Phase.failed, "2 COMPLETED, 1 FAILED"),
        (["CANCELLED", "CANCELLED"], Phase.stopped, "2 CANCELLED"),
        (["COMPLETED", "CANCELLED"], Phase.stopped, "1 COMPLETED, 1 CANCELLED"),
        (["COMPLETED", "COMPLETED"], Phase.succeeded, "2 COMPLETED"),
        (["COMPLETED", "NEW_WORD"], Phase.unknown, "1 COMPLETED, 1 NEW_WORD"),
    ],
)
def test_the_word_of_an_array(states: list[str], phase: Phase, counts: str) -> None:
    tasks_ = [row(str(20 + task), state, str(task), array="20") for task, state in enumerate(states)]
    (told,) = one_row_each(tasks_)
    observation = Observation(taken_at=NOW, **normalise(told))
    assert (told["JobId"], observation.phase) == ("20", phase)
    assert sorted(observation.native.split(" None")[0].split(" 0:0")[0].split(", ")) == sorted(
        counts.split(", ")
    )


def test_a_held_group_of_an_array_speaks_last() -> None:
    waits = [
        row("20", "PENDING", "5-36", array="20", Reason="JobHeldUser"),
        row("21", "PENDING", "1", array="20"),
    ]
    (told,) = one_row_each(waits)
    assert not Observation(taken_at=NOW, **normalise(told)).held
    (held,) = one_row_each(waits[:1])
    assert Observation(taken_at=NOW, **normalise(held)).held
    assert normalise(held)["native"].startswith("32 PENDING")


def test_a_failed_task_that_slurm_forgot_is_not_lost(tmp_path: Path) -> None:
    """Without accounting the controller forgets an array's tasks one by one; their own records stay."""
    listed = [
        row(str(20 + task), "COMPLETED", str(task), array="20", WorkDir=str(tmp_path)) for task in (1, 2)
    ]
    (told,) = one_row_each(listed)
    times = {"started_at": "2026-11-30T11:00:00+00:00", "ended_at": "2026-11-30T11:01:00+00:00"}
    for task, code in (("1", 0), ("2", 0), ("3", 7)):
        folder = tmp_path / ".watchkeeper" / "x" / task
        folder.mkdir(parents=True)
        facts = {"pid": 1, "host": "n1", "id": task, "exit_code": code, "signal": None, **times}
        for name in ("start", "exit.json"):
            (folder / name).write_text(json.dumps(facts))
    end = observation(Found(told, running=0), NOW)
    assert (end.phase, end.exit_code, end.confirmed) == (Phase.failed, 7, True)
    assert "does not list any more" in end.reason


def test_an_older_record_is_a_strangers() -> None:
    name = "job-abc-a0-0123abcd"
    ours = Ref(name, "7", datetime(2026, 11, 30, tzinfo=UTC))
    at = int(datetime(2026, 11, 30, tzinfo=UTC).timestamp())
    assert belongs(row("7", "RUNNING", JobName=name, SubmitTime=str(at + 60)), ours)
    older = row("7", "COMPLETED", JobName=name, SubmitTime=str(at - 86_400))
    assert not belongs(older, ours._replace(cluster_job_id="")), "its id was never told"
    assert belongs(older, ours), "its name and its id: it was handed over later"
    recycled = row("7", "RUNNING", JobName="theirs", SubmitTime=str(at + 86_400))
    for watched in (Ref("7", "7", ours.submitted_at), Ref("theirs", "7", ours.submitted_at)):
        assert not belongs(recycled, watched), "it came after the one that was handed over"
        assert belongs(recycled | {"Restarts": "1"}, watched), "a requeue begins its time anew"
    assert not belongs(row("7", "COMPLETED", JobName="another", SubmitTime=str(at + 60)), ours)
    assert belongs(row("7", "RUNNING", JobName="another", SubmitTime="100"), Ref("7", "7", ours.submitted_at))
    nameless = row("7", "COMPLETED", JobName="allocation", Partition="", SubmitTime=str(at + 60))
    assert belongs(nameless, ours), "its end reached accounting before its start"
    assert not belongs(nameless | {"SubmitTime": str(at - 86_400)}, ours)
    assert not belongs(nameless | {"Partition": "p"}, ours)
