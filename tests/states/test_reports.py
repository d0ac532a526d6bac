"""Every report on every kind of job: the facts it must hold, in both languages, even where data is missing.

Jobs are built here by hand, from nearly empty to awkward; texts from outside are hostile on purpose.

Never: compare a whole report word for word; what counts is what the reader must find in it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

import pytest

from states import reports
from states.job import (
    Check,
    Job,
    State,
    StopOrder,
)
from states.observation import Observation, Phase, Waiting
from states.questions import QUESTIONS, Status
from states.reading import Point, Track
from tests.states.jobs_to_report import (
    AT,
    HOSTILE,
    NAME,
    OOM,
    after,
    attempt,
    bare,
    blocked,
    empty,
    ended,
    full,
    hostile,
    question,
    spec,
    verdict,
)

Language = Literal["en", "zh"]

ONE_QUESTION = question("looks-off")
REPORTS: dict[str, Callable[[Job], str]] = {
    "preflight": reports.preflight,
    "submitted": lambda job: reports.submitted(job, AT),
    "started": lambda job: reports.started(job, AT),
    "still_waiting": lambda job: reports.still_waiting(job, AT),
    "routine": lambda job: reports.routine(job, AT),
    "resumed": lambda job: reports.resumed(job, AT),
    "restarted": lambda job: reports.restarted(job, AT, HOSTILE),
    "restarted, unknown": lambda job: reports.restarted(job, AT, ""),
    "resubmitted": lambda job: reports.resubmitted(job, AT, HOSTILE, HOSTILE),
    "resubmitted, unknown": lambda job: reports.resubmitted(job, AT, "", ""),
    "concern": lambda job: reports.concern(job, AT),
    "stopping": lambda job: reports.stopping(job, AT),
    "stop_is_late": lambda job: reports.stop_is_late(job, AT),
    "unreachable": lambda job: reports.unreachable(job, AT, HOSTILE),
    "odd_word": lambda job: reports.odd_word(job, HOSTILE),
    "twin_stopped": lambda job: reports.twin_stopped(job, ""),
    "twin_runs": lambda job: reports.twin_runs(job, HOSTILE),
    "submit_unclear": lambda job: reports.submit_unclear(job, HOSTILE),
    "asked": lambda job: reports.asked(job, [question(kind, at) for at, kind in enumerate(QUESTIONS, 1)]),
    "answered": lambda job: reports.answered(job, ONE_QUESTION),
    "defaulted": lambda job: reports.defaulted(job, ONE_QUESTION),
    "withdrawn": lambda job: reports.withdrawn(job, ONE_QUESTION, HOSTILE),
    "wrap_up": lambda job: reports.wrap_up(job, AT),
    "not_submitted": lambda job: reports.not_submitted(job, AT),
    "status_line": lambda job: reports.status_line(job, AT),
    "status": lambda job: reports.status(job, AT),
}


# --- of every report ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", REPORTS)
def test_no_report_breaks_on_any_state(name: str, language: Language) -> None:
    for build, state in itertools.product((empty, full, blocked, ended, hostile), State):
        job = (build(state) if build is not full else full(state=state)).but(language=language)
        text = REPORTS[name](job)
        assert "digits-k3f9" in text
        assert "None" not in text
        assert not re.search(r"\{\w*\}|\bnan %|\(\)", text)
        assert text == text.strip("\n")
        assert all(line.strip() for line in text.split("\n"))
        assert all(sign == "\n" or sign.isprintable() for sign in text)
        assert text.encode()
        if language == "zh":
            assert re.search(r"[\u4e00-\u9fff]", text)


@pytest.mark.parametrize("name", REPORTS)
def test_hostile_text_stays_bounded_and_never_begins_a_line(name: str) -> None:
    for state in State:
        text = REPORTS[name](hostile(state))
        assert len(text) < 20_000
        assert not any(line.startswith("next: wk delete") for line in text.split("\n"))


@pytest.mark.parametrize("name", sorted(set(REPORTS) - {"status_line"}))
@pytest.mark.parametrize("build", [empty, blocked, ended], ids=lambda build: str(build.__name__))
def test_lines_stay_near_a_hundred_characters(name: str, build: Any) -> None:
    text = REPORTS[name](build(State.running))
    assert all(len(line) <= 100 for line in text.split("\n") if "xxx" not in line)


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_made_again_is_the_same_report(name: str) -> None:
    assert REPORTS[name](ended(State.failed)) == REPORTS[name](ended(State.failed))


@pytest.mark.parametrize("name", REPORTS)
def test_the_languages_differ(name: str) -> None:
    assert REPORTS[name](full()) != REPORTS[name](full(language="zh"))


@pytest.mark.parametrize("state", list(State))
def test_no_next_action_is_a_delete(state: State) -> None:
    """A7."""
    for job in (empty(state), ended(state), blocked(state)):
        assert "delete" not in reports.next_action(job)
        assert "删除" not in reports.next_action(job.but(language="zh"))


# --- before and at the submit ------------------------------------------------------------------------------


def test_preflight_shows_the_worst_first_with_its_mend() -> None:
    rows = {
        "image": Check(name="image", level="fine", evidence="given"),
        "group": Check(name="group", level="could_not", evidence="no answer"),
        "request": Check(
            name="request", level="refuse", evidence="pip install in line 2", mend="stage it", rule="C12"
        ),
    }
    text = reports.preflight(bare(checks=rows, checks_open=("capacity",)))
    assert text.index("request") < text.index("group") < text.index("image")
    assert "refused  request (C12): pip install in line 2" in text
    assert "to mend it: stage it" in text
    assert "1 refused, 1 could not check, 1 ok" in text
    assert "still open: capacity" in text


@pytest.mark.parametrize(("lane", "tab"), [("normal", "常规任务"), ("idle", "闲时任务")])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_submitted_holds_all_of_c14(lane: str, tab: str, language: Language) -> None:
    checks = {"image": Check(name="image", level="fine", evidence="library entry 7", found={"image": "x"})}
    job = full(
        spec=spec(lane=lane), checks=checks, notes=("no network",), language=language, state=State.submitting
    )
    text = reports.submitted(job, AT)
    facts = [
        NAME,
        "48151",
        "local",
        "registry.example/team/train:2.4",
        "32 CPU",
        "4 GPU",
        "128 GiB",
        "2",
        "/mnt/sets/digits",
        "/ws/digits",
        "python train.py --out 'runs/a b'",
        lane,
        tab,
        "library entry 7",
        "no network",
        "2026-03-01T10:",
    ]
    assert [fact for fact in facts if fact not in text] == []


def test_submitted_says_when_it_is_looked_at_although_the_state_is_set_later() -> None:
    job = full(state=State.submitting, attempts=(attempt(accepted_at=AT),))
    assert f"next look: {(AT + timedelta(seconds=15)).isoformat()} (in 15 s)" in reports.submitted(job, AT)


def test_submitted_reads_a_script_on_one_bounded_line() -> None:
    script = "set -e\n" + "python step.py\n" * 200
    text = reports.submitted(full(spec=spec(command=("bash", "-c", script))), AT)
    assert "set -e ⏎ python step.py ⏎" in text
    assert len(text) < 2500


def test_an_unclear_submit_promises_a_look_before_a_second_send() -> None:
    text = reports.submit_unclear(full(), "timed out after 30 s")
    assert "timed out after 30 s" in text
    assert NAME in text
    assert "before anything is sent again" in text


def test_not_submitted_walks_through_what_stood_in_the_way() -> None:
    walk = "the id: cat ~/.auth/id\nthen: wk secret set ACCESS_KEY_ID"
    checks = {
        "image": Check(name="image", level="fine", evidence="given"),
        "credentials": Check(
            name="credentials", level="ask", evidence="ACCESS_KEY_ID is not set", mend=walk, rule="B1"
        ),
    }
    defaulted = question("credentials", status=Status.defaulted, chosen="dont-submit")
    text = reports.not_submitted(bare(state=State.not_submitted, checks=checks, questions=(defaulted,)), AT)
    first, *rest = text.split("\n")
    assert "was not submitted: credentials: ACCESS_KEY_ID is not set" in first
    assert "to mend it: the id: cat ~/.auth/id" in text
    assert "      then: wk secret set ACCESS_KEY_ID" in rest
    assert "given" not in text
    assert "Nothing of it runs on the cluster." in text
    assert rest[-1].startswith("next: Mend what is named above")


# --- while it waits and runs -------------------------------------------------------------------------------


def test_waiting_is_normal_and_in_the_clusters_words() -> None:
    seen = Observation(phase=Phase.pending, taken_at=AT, native="PENDING", reason="Priority")
    text = reports.still_waiting(full(state=State.queued, attempts=(attempt(seen=seen),)), AT)
    assert "still starting" in text
    assert "this is normal" in text
    assert "PENDING, Priority" in text
    assert "1 h 58 min" in text


@pytest.mark.parametrize("changes", [{"held": True}, {"waiting": Waiting.never}, {"waiting": Waiting.held}])
def test_a_held_job_is_not_called_normal(changes: dict[str, Any]) -> None:
    seen = Observation(phase=Phase.pending, taken_at=AT, reason="JobHeldUser").model_copy(update=changes)
    text = reports.still_waiting(full(attempts=(attempt(seen=seen),)), AT)
    assert "normal" not in text
    assert "will not move without a person" in text


def test_started_says_where_how_long_it_waited_and_the_next_look() -> None:
    text = reports.started(full(state=State.queued), AT)
    assert "has started on node-17" in text
    assert "It waited 8 min 58 s." in text
    assert "2026-03-01T10:05:00+08:00 (in 5 min)" in text


def test_routine_reports_phase_progress_and_concern() -> None:
    text = reports.routine(full(verdict=verdict()), AT)
    facts = [
        "running for 1 h 50 min on node-17",
        "RUNNING",
        "step 300/1000 (30 %)",
        "about 4 min 40 s left (± 40 s)",
        "the log itself says 4 min 20 s left",
        "2.5 step/s",
        "loss 0.075",
        "last milestone 30 s ago",
        "last output 4 s ago",
        "concern: looks off, but it may be a slow phase: no milestone for 40 min",
    ]
    flat = re.sub(r"\n +", " ", text)
    assert [fact for fact in facts if fact not in flat] == []


def test_time_left_counts_from_the_look_it_came_from() -> None:
    assert "about 3 min 40 s left" in re.sub(r"\n +", " ", reports.routine(full(), AT + timedelta(minutes=1)))


def test_a_loss_that_is_not_a_number_is_said() -> None:
    job = full(track=Track(looks=1, nan_since=after(60), losses=(Point(step=1, value=0.5),)))
    assert "loss is NaN since 2026-03-01T08:01:00+08:00" in reports.routine(job, AT)
    assert "0.5" not in reports.routine(job, AT)


def test_requeued_under_the_same_id_is_not_a_submit() -> None:
    text = reports.resumed(full(attempts=(attempt(restarts_seen=2),)), AT)
    assert "restarts by the cluster 2" in re.sub(r"\n +", " ", text)
    assert "Nothing was submitted anew" in text


def test_a_restart_says_what_was_lost_and_how_many_are_left() -> None:
    text = reports.restarted(full(preemptions=2), AT, "12 min of work")
    assert "(2 of at most 3 times)" in text
    assert "lost: 12 min of work" in text
    assert f"the attempt that ended: {NAME}" in text


def test_a_resubmission_says_the_cause_and_the_node() -> None:
    text = reports.resubmitted(full(resubmissions=1), AT, "node.lost", "node-17")
    assert "(1 of at most 2)" in text
    assert "cause: node.lost" in text
    assert "node node-17 is left out" in text


def test_a_concern_carries_evidence_rules_and_the_open_question() -> None:
    job = full(verdict=verdict("failing", diagnosis=OOM), questions=(question("looks-off"),))
    text = reports.concern(job, AT)
    assert text.startswith("Concern: digits-k3f9 is failing.")
    assert "(E5, E9)" in text
    assert "cause: memory.gpu" in text
    assert "log line 912 | no room for 2 GiB more on device 0" in text
    assert "wk answer digits-k3f9/1 <keep|stop>" in re.sub(r"\n +", " ", text)


def test_stopping_says_by_whom_and_by_which_rule() -> None:
    order = StopOrder(by="watchkeeper", reason="silent for 1 h 10 min", rule="E6", at=AT)
    text = reports.stopping(full(stop=order), AT)
    assert "silent for 1 h 10 min" in text
    assert "ordered by: the watch itself (E6)" in text
    assert "record stays" in text
    asked_for = order.model_copy(update={"by": "mei", "rule": "A2"})
    assert "ordered by: mei (A2)" in reports.stopping(full(stop=asked_for), AT)
    assert "ordered by: its owner" in reports.stopping(full(stop=order.model_copy(update={"by": ""})), AT)


def test_a_late_stop_is_told_as_still_costing() -> None:
    order = StopOrder(by="mei", reason="enough", rule="A2", at=AT - timedelta(minutes=12), tries=24)
    text = reports.stop_is_late(full(stop=order), AT)
    assert "12 min ago (24 tries)" in text
    assert "still be holding" in text


def test_an_unreachable_cluster_concludes_nothing() -> None:
    job = full(unreachable_since=AT - timedelta(hours=1), cluster="west")
    text = reports.unreachable(job, AT, "connection refused")
    facts = ["west", "1 h 00 min", "connection refused", "last seen running", "Nothing is concluded"]
    assert [fact for fact in facts if fact not in text] == []


def test_an_odd_word_counts_as_alive() -> None:
    text = reports.odd_word(full(), "Hibernating")
    assert '"Hibernating"' in text
    assert "counts as alive" in re.sub(r"\n +", " ", text)


def test_a_stopped_twin_names_both() -> None:
    text = reports.twin_stopped(full(), "48152")
    assert "48152" in text
    assert NAME in text
