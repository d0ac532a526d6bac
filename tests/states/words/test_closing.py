"""The end of a run as it is told: outcome first, what supports it, the next safe action last.

Never: an outcome better than the evidence, or a next action that risks a second run.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest

from states import reports
from states.job import (
    TERMINAL,
    Collected,
    Moment,
    State,
    StopOrder,
)
from states.observation import Artifact, Observation, Phase
from states.reading import Diagnosis
from states.spec import Existing, Request
from tests.states.jobs_to_report import (
    AT,
    OOM,
    after,
    bare,
    blocked,
    ended,
    full,
)

Language = Literal["en", "zh"]


# --- the end -----------------------------------------------------------------------------------------------


def test_a_wrap_up_goes_from_the_outcome_to_the_next_action() -> None:
    lines = reports.wrap_up(ended(State.failed), AT).split("\n")
    assert lines[0] == "digits-k3f9 failed: memory.gpu, declared outputs are not there (exit code 1)."
    assert lines[-1].startswith("next: Let it use less GPU memory")


def test_a_failure_brings_cause_evidence_missing_outputs_and_figures() -> None:
    text = re.sub(r"\n {4}", " ", reports.wrap_up(ended(State.failed), AT))
    facts = [
        "cause: memory.gpu (the run's own code or command)",
        "log line 912 | no room for 2 GiB more on device 0",
        "it could also be: gpu.fault",
        "missing outputs: out/metrics.json",
        "none found under /ws/digits",
        "  2026-03-01T08:01:02+08:00 queued: id 48151",
        "took 1 h 56 min, ran 1 h 46 min",
        "attempts 1, preemptions 1, resubmissions 0, restarts by the cluster 1",
        "loss: 3 -> 0.075, lowest 0.075  █",
        "digits-k3f9-s1 (smoke:passed)",
        "note: the remembered image was gone",
    ]
    assert [fact for fact in facts if fact not in text] == []


def test_artifacts_are_listed_declared_first_with_sizes_and_the_newest() -> None:
    made = tuple(
        Artifact(
            path=f"out/{number:02}.pt",
            size_bytes=2**20 * number,
            modified_at=after(number),
            declared=number == 1,
        )
        for number in range(1, 15)
    )
    job = full(state=State.succeeded, collected=Collected(exit_code=0, artifacts=made, looked=True))
    text = reports.wrap_up(job, AT)
    assert "artifacts: 14, 105.0 MiB in all, under /ws/digits; newest: out/14.pt" in text
    listed = re.findall(r"^  (out/\d\d\.pt)  ([\d.]+ MiB)", text, re.M)
    assert listed[0] == ("out/01.pt", "1.0 MiB")
    assert listed[1] == ("out/14.pt", "14.0 MiB")
    assert "… and 4 more" in text


def test_a_success_shows_no_cause_even_if_its_log_frightens() -> None:
    text = reports.wrap_up(full(state=State.succeeded, diagnosis=OOM, collected=Collected(exit_code=0)), AT)
    assert "digits-k3f9 succeeded" in text.split("\n")[0]
    assert "memory.gpu" not in text


def test_a_long_timeline_keeps_the_first_and_the_newest() -> None:
    moments = tuple(
        Moment(at=after(number), state=State.running, text=f"moment {number}.") for number in range(40)
    )
    text = reports.wrap_up(full(state=State.failed, moments=moments), AT)
    assert "moment 0." in text
    assert "moment 39." in text
    assert "moment 5." not in text
    assert "… and 20 more" in text


def test_outputs_that_could_not_be_looked_for_are_not_called_missing() -> None:
    assert "could not be looked for" in reports.wrap_up(full(state=State.unknown), AT)


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_outcome_is_one_sentence_that_says_it(state: State, language: Language) -> None:
    words = {
        State.succeeded: ("succeeded", "成功"),
        State.failed: ("failed", "失败"),
        State.stopped: ("was stopped", "已停止"),
        State.not_submitted: ("was not submitted", "没有提交"),
        State.unknown: ("not known", "结局不明"),
    }
    line = reports.outcome_line(bare(state=state, language=language))
    assert words[state][language == "zh"] in line
    assert "\n" not in line


def test_the_machines_own_sentence_is_kept_in_english_and_for_what_was_not_submitted() -> None:
    why = "exit code 0 and every declared output is there"
    job = full(state=State.succeeded, outcome=why, collected=Collected(exit_code=0))
    assert reports.outcome_line(job) == f"digits-k3f9 succeeded: {why}."
    assert reports.outcome_line(job.but(language="zh")) == "digits-k3f9 成功: 退出码 0。"
    refused = bare(state=State.not_submitted, outcome="given up", language="zh")
    assert reports.outcome_line(refused) == "digits-k3f9 没有提交: given up。"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state": State.succeeded}, "Use what it left under /ws/digits"),
        ({"state": State.failed}, "The cause is not known"),
        ({"state": State.failed, "diagnosis": OOM}, "less GPU memory"),
        (
            {"state": State.failed, "diagnosis": Diagnosis(cause="code.exception", owner="user")},
            "Mend the code",
        ),
        (
            {"state": State.failed, "diagnosis": Diagnosis(cause="node.fault", owner="infra")},
            "Nothing to mend",
        ),
        ({"state": State.failed, "diagnosis": Diagnosis(cause="image.auth", owner="image")}, "Name an image"),
        ({"state": State.failed, "diagnosis": Diagnosis(cause="data.corrupt", owner="data")}, "Put the data"),
        (
            {"state": State.failed, "diagnosis": Diagnosis(cause="network.dns", owner="network")},
            "in place beforehand",
        ),
        ({"state": State.stopped}, "Ask who stopped it"),
        ({"state": State.unknown}, "only then delegate it again"),
        ({"state": State.not_submitted}, "Mend what is named above"),
        ({"state": State.running}, "it is being watched"),
    ],
)
def test_the_next_action_follows_the_outcome_and_whose_cause_it_is(
    changes: dict[str, Any], said: str
) -> None:
    assert said in reports.next_action(full(**changes))


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("scheduling.time_limit", "longer time limit"),
        ("memory.host", "more memory"),
        ("image.auth", "Name an image"),
    ],
)
def test_the_clusters_own_record_of_the_cause_comes_first(cause: str, said: str) -> None:
    end = Observation(phase=Phase.failed, taken_at=AT, cause=cause)
    job = full(state=State.failed, end=end, diagnosis=Diagnosis(cause="process.killed", owner="unknown"))
    assert said in reports.next_action(job)
    text = reports.wrap_up(job, AT)
    assert f"cause: {cause}" in text
    assert "it could also be: process.killed" in text


@pytest.mark.parametrize(
    ("by", "rule", "said"),
    [
        ("watchkeeper", "E6", "Mend why it had to be stopped"),
        ("watchkeeper", "E8", "stop condition was met"),
        ("mei", "A2", "when it should run"),
        ("mei", "G2", "when it should run"),
    ],
)
def test_what_follows_a_stop_depends_on_who_ordered_it(by: str, rule: str, said: str) -> None:
    order = StopOrder(by=by, reason="enough", rule=rule, at=AT)
    assert said in reports.next_action(full(state=State.stopped, stop=order))


def test_a_job_that_was_handed_over_is_never_delegated_again() -> None:
    """A10: such a job is never submitted by the watch."""
    request = Request(existing=Existing(name="theirs", cluster_job_id="77"))
    for state in TERMINAL:
        assert "delegate it again" not in reports.next_action(bare(request=request, state=state))


def test_an_open_question_is_the_next_action() -> None:
    assert "wk answer digits-k3f9/1" in reports.next_action(blocked(State.running))
