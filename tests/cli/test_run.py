"""A whole run from the command line: to its end, left and taken up again, killed in the middle: one cluster job."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.program import Ran, Wk, finish, steps

BOXES = re.compile(r"[\u2500-\u257f]")


def test_a_run_that_succeeds_is_reported_on_stdout(finished: tuple[Wk, Ran, str]) -> None:
    _, ran, run = finished
    assert ran.code == 0, ran.err
    assert f"{run} was submitted." in ran.out
    assert f"{run} succeeded" in ran.out
    assert "out.txt" in ran.out
    assert "the loss, from start to end" in ran.out


def test_piped_output_is_plain(finished: tuple[Wk, Ran, str]) -> None:
    _, ran, _ = finished
    axis = ran.out.replace("┤", "")  # of the loss curve
    assert "\x1b" not in ran.out + ran.err
    assert not BOXES.search(axis)
    assert ran.out.isprintable() or set(filter(lambda sign: not sign.isprintable(), ran.out)) == {"\n"}


def test_a_failing_job_ends_with_its_cause(wk: Wk) -> None:
    (wk.workspace / "train.py").write_text("import a_module_that_is_not_there\n", encoding="utf-8")
    ran = wk("run", "--", "python", "train.py")
    assert ran.code == 3
    assert "ModuleNotFoundError" in ran.out
    assert "cause" in ran.out


def test_json_is_one_event_a_line(wk: Wk) -> None:
    ran = wk("run", "--json", "--output", "out.txt", "--", steps(2, 0.2))
    assert ran.code == 0, ran.err
    events = ran.lines
    assert {event["event"] for event in events} == {"status", "message", "end"}
    assert events[-1]["event"] == "end"
    assert events[-1]["state"] == "succeeded"
    assert [artifact["path"] for artifact in events[-1]["artifacts"]] == ["out.txt"]
    assert ran.err == ""


def test_a_request_file_runs_beside_itself(wk: Wk) -> None:
    folder = wk.workspace / "sub"
    folder.mkdir()
    (folder / "job.yaml").write_text("command: pwd > where.txt\nworkspace: .\n", encoding="utf-8")
    ran = wk("run", "sub/job.yaml", "--json")
    assert ran.code == 0, ran.out
    assert (folder / "where.txt").read_text(encoding="utf-8").strip() == str(folder.resolve())


def test_an_unknown_field_is_refused_with_the_nearest_name(wk: Wk) -> None:
    (wk.workspace / "job.yaml").write_text("command: 'true'\ngpus: 1\n", encoding="utf-8")
    plain, machine = wk("run", "job.yaml"), wk("run", "job.yaml", "--json")
    assert plain.code == machine.code == 2
    assert "job.yaml:2: unknown field 'gpus'; did you mean 'gpu'?" in plain.err
    assert plain.out == ""
    assert machine.data["error"]["code"] == "usage"
    assert "did you mean 'gpu'" in machine.data["error"]["message"]
    assert wk.board() == []


def test_a_credential_in_a_request_is_refused_and_not_repeated(wk: Wk) -> None:
    secret = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3f"
    ran = wk("run", "--env", f"HF_TOKEN={secret}", "--", "true")
    assert ran.code == 5
    assert "HF_TOKEN" in ran.err
    assert secret not in ran.out + ran.err
    assert wk.board() == []


def test_detached_it_is_watched_and_the_watch_ends_by_itself(wk: Wk, eventually: Callable[..., Any]) -> None:
    ran = wk("run", "--detach", "--json", "--", steps(8, 0.3))
    assert ran.code == 0, ran.err
    present = wk.resident()
    assert present is not None
    assert present.pid == ran.data["watched_by"]
    followed = wk("follow", ran.data["run"])
    assert followed.code == 0, followed.out + followed.err
    assert f"{ran.data['run']} succeeded" in followed.out
    eventually(lambda: wk.resident() is None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["Ctrl-C", "terminal gone"])
def test_who_leaves_leaves_the_run_watched(
    wk: Wk, eventually: Callable[..., Any], number: signal.Signals
) -> None:
    process = wk.start("run", "--name", "left", "--", steps(12, 0.4))
    try:
        eventually(lambda: is_running(wk), within_s=30)
        process.send_signal(number)
        left = finish(process)
    finally:
        process.kill()
    (run,) = wk.board()
    assert left.code == 130
    assert f"wk follow {run['id']}" in left.err
    assert wk.resident() is not None
    assert wk("follow", run["id"]).code == 0
    assert len(wk.cluster_jobs()) == 1


def test_killed_in_the_middle_it_is_carried_on_by_who_follows(wk: Wk, eventually: Callable[..., Any]) -> None:
    process = wk.start("run", "--output", "out.txt", "--", steps(10, 0.4))
    try:
        eventually(lambda: is_running(wk), within_s=30)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    killed = finish(process)
    (run,) = wk.board()
    assert killed.code == -signal.SIGKILL
    assert wk.resident() is None
    assert "Nobody is watching it now" in wk("show", run["id"]).out
    followed = wk("follow", run["id"])
    assert followed.code == 0, followed.out + followed.err
    assert f"{run['id']} succeeded" in followed.out
    assert len(wk.cluster_jobs()) == 1
    events = [decision["event"] for decision in wk("why", run["id"], "--json").data]
    assert events.count("submitted") == 1


def test_who_follows_takes_over_when_the_resident_agent_dies(wk: Wk, eventually: Callable[..., Any]) -> None:
    run = wk("run", "--detach", "--json", "--", steps(12, 0.4)).data
    follower = wk.start("follow", run["run"], "--json")
    try:
        eventually(lambda: is_running(wk), within_s=30)
        os.kill(run["watched_by"], signal.SIGKILL)
        followed = finish(follower)
    finally:
        follower.kill()
    assert followed.code == 0, followed.err
    assert followed.lines[-1]["state"] == "succeeded"
    assert len(wk.cluster_jobs()) == 1


def test_the_same_request_id_is_the_same_run(wk: Wk) -> None:
    first = wk("run", "--request-id", "night-1", "--json", "--", "true")
    again = wk("run", "--request-id", "night-1", "--json", "--", "true")
    assert first.code == again.code == 0
    assert first.lines[-1]["run"] == again.lines[-1]["run"]
    assert len(wk.cluster_jobs()) == len(wk.board()) == 1


def test_a_resident_agent_carries_what_others_delegate(wk: Wk, eventually: Callable[..., Any]) -> None:
    server = wk.start("serve")
    try:
        eventually(wk.resident)
        second = wk("serve")
        ran = wk("run", "--json", "--", "true")
    finally:
        server.send_signal(signal.SIGTERM)
        served = finish(server)
    assert second.code == 5
    assert str(server.pid) in second.err
    assert ran.code == 0, ran.out
    assert served.code == 0, served.err
    assert wk.resident() is None


def is_running(wk: Wk) -> bool:
    return any(row["state"] == "running" and row.get("step") for row in wk.board())
