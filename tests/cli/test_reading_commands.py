"""What can be asked about a run that is over, on one run: every reading command, as words and as JSON."""

from __future__ import annotations

import json

from tests.cli.program import Ran, Wk

Finished = tuple[Wk, Ran, str]


def test_jobs_lists_it(finished: Finished) -> None:
    wk, _, run = finished
    (row,) = wk("jobs", "--json").data
    assert (row["id"], row["state"], row["step"], row["total"]) == (run, "succeeded", 6, 6)
    words = wk("jobs").out.splitlines()
    assert words[0].split()[:3] == ["RUN", "STATE", "STEP"]
    assert words[1].split()[:3] == [run, "succeeded", "6/6"]
    narrow = wk("jobs", env={"COLUMNS": "40"}).out.splitlines()
    assert all(len(line) <= 40 for line in narrow)
    assert wk("jobs", "--live", "--json").data == []


def test_show_gives_the_last_report(finished: Finished) -> None:
    wk, ran, run = finished
    report = [line for line in wk("show", run[:9]).out.splitlines() if line]
    assert report[0].startswith(f"{run} succeeded")
    assert all(line in ran.out for line in report)
    assert wk("show", run, "--json").data["state"] == "succeeded"
    assert "--- started" in wk("show", run, "--reports").out


def test_why_names_event_rule_and_action(finished: Finished) -> None:
    wk, _, run = finished
    decisions = wk("why", run, "--json").data
    assert decisions[0]["event"] == "delegated"
    assert decisions[-1]["to"] == "succeeded"
    moved = [decision for decision in decisions if decision["outcome"] == "moved"]
    assert all(decision["rule"] and decision["action"] for decision in moved)
    words = wk("why", run).out
    assert "queued -> running" in words
    assert f"[{moved[-1]['rule']}]" in words


def test_the_single_steps_act_on_its_attempt(finished: Finished) -> None:
    wk, _, run = finished
    assert wk("get", run, "--json").data["phase"] == "succeeded"
    (line,) = wk("list", "--json").data
    assert line["name"].startswith(run)
    assert wk("logs", run, "-n", "2").out.splitlines() == ["step 5/6 loss 0.94", "step 6/6 loss 0.93"]
    assert wk("logs", run, "-n", "1", "--head", "--json").data["text"].strip() == "step 1/6 loss 0.98"
    assert wk("events", run, "--json").data[0]["kind"] == "Queued"
    checked = wk("check", run, "--json").data
    assert checked["run"] == run
    assert checked["observation"]["phase"] == "succeeded"
    assert checked["judged"]["progress"]["step"] == 6


def test_the_rest_can_be_read_too(finished: Finished) -> None:
    wk, *_ = finished
    assert wk("capacity", "--json").data["cluster"] == "local"
    assert wk("questions").out.strip() == "No open questions."
    assert isinstance(wk("library", "list", "--json").data, list)
    findings = {row["name"]: row for row in wk("doctor", "--json").data}
    assert findings["database"]["level"] == "ok"
    assert findings["cluster local (default)"]["level"] == "ok"
    settings = {row["name"]: row for row in wk("config", "--json").data}
    assert settings["policy.poll_s"]["value"] == 0.2
    assert "config.yaml" in settings["policy.poll_s"]["source"]
    assert settings["workers"]["source"] == "built-in"


def test_a_stop_comes_too_late_and_a_delete_wants_the_name(finished: Finished) -> None:
    wk, _, run = finished
    late = wk("stop", run)
    assert late.code == 5, late.out
    unspelled, wrong = wk("delete", run), wk("delete", run, "--name", "digits")
    assert unspelled.code == wrong.code == 5
    assert f"wk delete {run} --name {run}" in unspelled.err
    assert len(wk.cluster_jobs()) == 1


def test_a_log_file_is_read(finished: Finished) -> None:
    wk, *_ = finished
    log = wk.workspace / "train.log"
    log.write_text("step 1/4 loss 0.9\nstep 2/4 loss 0.7\nMemoryError\n", encoding="utf-8")
    found = wk("read", "train.log", "--exit-code", "1", "--model", "never", "--json").data
    assert found["verdict"] == "failed"
    assert found["progress"]["total"] == 4
    missing = wk("read", "not-there.log")
    assert missing.code == 2
    assert "not-there.log" in missing.out + missing.err


def test_a_run_that_is_not_there(finished: Finished) -> None:
    wk, _, run = finished
    ran = wk("follow", f"{run[:-1]}~", "--json")
    assert ran.code == 6
    assert ran.data["error"]["code"] == "not_found"
    assert "did you mean" in ran.err
    assert json.loads(ran.out)["error"]["exit"] == 6


def test_completion_offers_it(finished: Finished) -> None:
    wk, _, run = finished
    asked = {"_WK_COMPLETE": "complete_bash", "COMP_WORDS": f"wk follow {run[:3]}", "COMP_CWORD": "2"}
    assert wk(env=asked).out.split() == [run]
    other = {**asked, "COMP_WORDS": "wk follow zz"}
    assert wk(env=other).out.split() == []
