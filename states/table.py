"""THE table: the whole lifecycle of a delegated run, one row per line, grouped by state, to be read aloud.

    Row(on, source, to, when, do, why)
    "On <event> in <source>, when <guard>: <action>, and go to <to>, because of <rule>."

Rows of one (event, state) are asked from top to bottom; the first whose guard holds is taken. `STAY` keeps the state.
`why` names the rule (RULES A1..I5) or, where the rule book is silent, the design section (D4 = DESIGN 4).
Cells that no row covers stand in `ignored.py`, each with its reason; table + ignored = every cell.

Never: logic. Predicates are in `guards`, verbs in `actions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from states import actions as do
from states import guards as when
from states.actions import Change
from states.job import State

preflight, submitting, queued, running = State.preflight, State.submitting, State.queued, State.running
blocked, stopping, collecting = State.blocked, State.stopping, State.collecting
succeeded, failed, stopped = State.succeeded, State.failed, State.stopped
not_submitted, unknown = State.not_submitted, State.unknown

STAY = None
"""The row keeps the state it starts from."""

ALWAYS = None
"""The row has no guard."""

WATCHED = (queued, running, blocked)
ENDED = (succeeded, failed, stopped, unknown)


class Row(NamedTuple):
    """One line of the table. on: event kinds; source: states; to: a state or STAY; when: a guard or ALWAYS."""

    on: tuple[str, ...]
    source: tuple[State, ...]
    to: State | None
    when: Callable[[Any, Any], bool] | None
    do: Callable[[Any, Any], Change]
    why: str


def row(
    on: str | tuple[str, ...],
    source: State | tuple[State, ...],
    to: State | None,
    when: Callable[[Any, Any], bool] | None,
    do: Callable[[Any, Any], Change],
    why: str,
) -> Row:
    """A Row from single values or tuples."""
    events = (on,) if isinstance(on, str) else on
    sources = (source,) if isinstance(source, State) else source
    return Row(events, sources, to, when, do, why)


SETTLING = ("check_finished", "child_finished", "wake_due")
"""What may have settled the last open thing before the submit: a check, a run made on the way, or an answer (after
which preflight is woken at once)."""

DECIDED = ("answered", "wake_due")
"""A question is decided by its answer, or by its default at the deadline; whichever is committed first wins."""

# fmt: off
TABLE: tuple[Row, ...] = (
    # --- preflight: settle everything that can be settled before a submit is spent ----------------------------
    row("delegated", preflight, queued, when.is_a_takeover, do.begin_watching, "A10"),
    row("delegated", preflight, STAY, when.is_the_first, do.begin_checks, "A4 A8"),
    row("child_finished", preflight, not_submitted, when.the_children_failed_too_often, do.give_up_on_children, "D4"),
    row("child_finished", preflight, blocked, when.the_child_failed, do.ask_about_child, "D4"),
    row("wake_due", preflight, STAY, when.checks_are_late, do.rerun_checks, "A4"),
    row(SETTLING, preflight, not_submitted, when.a_check_refuses, do.refuse, "B3 B4 C12"),
    row(SETTLING, preflight, blocked, when.something_is_missing, do.ask_for_missing, "A8 C3 C5"),
    row(SETTLING, preflight, STAY, when.a_preparation_is_due, do.prepare, "D1 C6"),
    row(SETTLING, preflight, STAY, when.a_second_look_is_due, do.look_again, "D1 C6"),
    row(SETTLING, preflight, STAY, when.a_preview_is_due, do.run_preview, "C13"),
    row(SETTLING, preflight, STAY, when.a_smoke_run_is_due, do.run_smoke, "D4"),
    row(SETTLING, preflight, submitting, when.all_is_settled, do.submit_first, "A6 D4"),
    row("check_finished", preflight, STAY, ALWAYS, do.note_check, "A8 D4"),
    row("child_finished", preflight, STAY, ALWAYS, do.note_child, "D4"),
    row("check_finished", blocked, STAY, when.preflight_is_under_way, do.note_check, "G3"),
    row("child_finished", blocked, STAY, when.preflight_is_under_way, do.note_child, "G3"),
    row("effect_given_up", (preflight, blocked), STAY, when.a_check_was_given_up, do.note_lost_check, "A8"),
    row("effect_given_up", preflight, blocked, when.a_child_was_given_up, do.ask_about_lost_child, "D4"),
    row("effect_given_up", blocked, STAY, when.a_child_was_given_up, do.note_lost_child, "D4"),
    row("stop_requested", preflight, not_submitted, ALWAYS, do.end_unsubmitted, "A2"),

    # --- submitting: once, with the intent committed first; an unclear answer is looked up by name ------------
    row("submitted", submitting, STAY, when.is_about_another_attempt, do.stay, "I1"),
    row("submitted", blocked, STAY, when.is_not_sought, do.stay, "I1"),
    row("submitted", (submitting, blocked), stopping, when.a_stop_was_asked, do.note_accepted_and_stop, "A2 I1"),
    row("submitted", (submitting, blocked), queued, ALWAYS, do.note_accepted, "C14 C15 I1"),
    row("submit_rejected", submitting, STAY, when.is_no_answer_to_this_submit, do.stay, "I1"),
    row("submit_rejected", submitting, STAY, when.may_pass_if_tried_again, do.resend_later, "I1"),
    row("submit_rejected", submitting, collecting, when.an_earlier_attempt_ran, do.collect_after_refusal, "F1"),
    row("submit_rejected", submitting, blocked, when.the_image_is_refused, do.ask_for_image, "C5 F5 H3"),
    row("submit_rejected", submitting, blocked, when.a_person_can_mend_it, do.ask_about_refusal, "F4"),
    row("submit_rejected", submitting, not_submitted, ALWAYS, do.end_unsubmitted, "A2"),
    row("submit_unclear", submitting, STAY, when.is_about_another_attempt, do.stay, "I1"),
    row("submit_unclear", submitting, STAY, ALWAYS, do.seek, "I1"),
    row("looked_up", (submitting, blocked), STAY, when.is_not_sought, do.stay, "I1"),
    row("looked_up", (submitting, blocked), stopping, when.one_is_there_and_a_stop_was_asked, do.adopt_and_stop, "A2 I1"),
    row("looked_up", (submitting, blocked), queued, when.one_of_ours_is_there, do.adopt, "I1"),
    row("looked_up", submitting, blocked, when.the_name_is_taken, do.ask_about_name, "I1"),
    row("looked_up", (submitting, blocked), collecting, when.absent_and_stopped_after_a_run, do.collect_after_refusal, "A2 F1"),
    row("looked_up", (submitting, blocked), not_submitted, when.absent_and_a_stop_was_asked, do.end_unsubmitted, "A2 I1"),
    row("looked_up", submitting, STAY, when.may_be_sent_again, do.send_again, "I1"),
    row("looked_up", submitting, blocked, when.was_sought_for_too_long, do.ask_about_submit, "I1 G7"),
    row("looked_up", (submitting, blocked), STAY, ALWAYS, do.keep_seeking, "I1"),
    row("wake_due", submitting, STAY, when.a_look_up_is_due, do.look_up, "I1"),
    row("wake_due", submitting, STAY, when.a_resend_is_due, do.send_again, "I1"),
    row("stop_requested", submitting, collecting, when.a_refused_restart_waits, do.collect_and_stop, "A2 F1"),
    row("stop_requested", submitting, not_submitted, when.a_refused_submit_waits, do.end_unsubmitted, "A2"),
    row("stop_requested", submitting, STAY, ALWAYS, do.note_stop, "A2 I1"),

    # --- looking at the cluster: queued, running, and blocked while one of them goes on ------------------------
    row("observed", (*WATCHED, stopping), STAY, when.is_about_another_attempt, do.stay, "I1"),
    row("observed", blocked, STAY, when.nothing_is_watched, do.stay, "G3"),
    row("observed", (*WATCHED, stopping), STAY, when.a_twin_is_moot, do.stop_moot_twins, "I1"),
    row("observed", (queued, running), blocked, when.a_twin_runs_too, do.ask_about_twins, "I1"),
    row("observed", (blocked, stopping), STAY, when.a_twin_runs_unsaid, do.tell_of_twins, "I1"),
    row("observed", (*WATCHED, stopping), collecting, when.has_ended, do.collect, "F1"),
    row("observed", (*WATCHED, stopping), STAY, when.is_a_first_look_at_a_loss, do.suspect, "E13 F6"),
    row("observed", WATCHED, submitting, when.was_preempted_and_may_restart, do.restart, "E13"),
    row("observed", WATCHED, submitting, when.was_lost_and_may_be_resubmitted, do.resubmit_lost, "E13 I1"),
    row("observed", (*WATCHED, stopping), collecting, when.is_over_without_an_end, do.collect, "F6"),
    row("observed", blocked, STAY, when.it_runs_though_a_question_stands, do.note_start_meanwhile, "G3 E12"),
    row("observed", (queued, blocked), running, when.it_runs, do.note_start, "E12"),
    row("observed", (running, blocked), queued, when.it_waits_again, do.note_requeue, "E1 E13"),
    row("observed", blocked, queued, when.the_wait_is_ordinary_again, do.withdraw_wait, "E9"),
    row("observed", blocked, running, when.it_answers_again, do.withdraw_wait, "E9"),
    row("observed", (running, blocked), STAY, when.it_was_requeued_between_looks, do.note_requeue_between_looks, "E13"),
    row("observed", queued, blocked, when.is_held, do.ask_about_hold, "E3"),
    row("observed", queued, blocked, when.can_never_start, do.ask_about_fit, "C3"),
    row("observed", queued, blocked, when.waits_for_too_long, do.ask_about_wait, "E1"),
    row("observed", running, blocked, when.finishes_for_too_long, do.ask_about_finish, "E9"),
    row("observed", WATCHED, STAY, when.the_word_is_new, do.report_odd_word, "E12"),
    row("observed", WATCHED, STAY, when.logs_are_due, do.read_logs, "E2 E4"),
    row("observed", WATCHED, STAY, ALWAYS, do.note_look, "E1 E4"),
    row("cluster_unreachable", WATCHED, STAY, when.nothing_is_watched, do.stay, "E9"),
    row("cluster_unreachable", (queued, running), blocked, when.was_away_for_too_long, do.ask_about_away, "E9"),
    row("cluster_unreachable", (*WATCHED, stopping), STAY, when.a_word_is_due_that_it_is_away, do.report_away, "E12"),
    row("cluster_unreachable", (*WATCHED, stopping), STAY, ALWAYS, do.note_away, "E9"),
    row("stop_requested", (queued, running), stopping, ALWAYS, do.stop_on_request, "A2"),

    # --- reading the log of a running job: milestones, not output; clear cases stopped, ambiguous ones asked ---
    row("logs_read", (running, blocked), STAY, when.is_about_another_attempt, do.stay, "E5"),
    row("logs_read", blocked, STAY, when.reading_is_over, do.stay, "E5"),
    row("logs_read", (running, blocked), stopping, when.the_stop_condition_is_met, do.stop_by_condition, "E8"),
    row("logs_read", (running, blocked), STAY, when.the_log_was_not_readable, do.note_unreadable, "E2"),
    row("logs_read", (running, blocked), stopping, when.is_provably_wasted, do.stop_as_wasted, "E5 E6 E7"),
    row("logs_read", blocked, running, when.the_trouble_is_over, do.withdraw_concern, "E9"),
    row("logs_read", running, blocked, when.is_a_clear_case_of_another, do.ask_about_clear_case, "A10"),
    row("logs_read", running, STAY, when.more_of_the_log_would_settle_it, do.read_more, "E2"),
    row("logs_read", running, STAY, when.the_model_may_settle_it, do.interpret, "I2 I3"),
    row("logs_read", running, blocked, when.the_network_is_stuck, do.ask_about_network, "E10"),
    row("logs_read", running, blocked, when.a_download_drags, do.ask_about_download, "E11"),
    row("logs_read", running, blocked, when.it_looks_off, do.ask_whether_off, "E9"),
    row("logs_read", running, STAY, when.a_report_is_due, do.report_progress, "E12"),
    row("logs_read", (running, blocked), STAY, ALWAYS, do.note_progress, "E4 E5"),
    row("interpreted", (running, blocked), STAY, when.is_about_another_attempt, do.stay, "I2"),
    row("interpreted", blocked, STAY, ALWAYS, do.note_reading, "I2"),
    row("interpreted", running, STAY, when.the_reading_says_calm, do.note_reading, "I2 I4"),
    row("interpreted", running, blocked, when.it_is_still_unsettled, do.ask_whether_off, "E9 I3"),
    row("interpreted", running, STAY, ALWAYS, do.note_reading, "G5 I2"),
    row("wake_due", (running, blocked), stopping, when.the_wall_clock_condition_is_met, do.stop_by_condition, "E8"),

    # --- blocked: an answer resumes at once, a deadline carries out the safe default ---------------------------
    row("answered", blocked, STAY, when.the_answer_is_not_valid, do.refuse_answer, "G4"),
    row("wake_due", blocked, STAY, when.a_look_up_is_due, do.look_up, "I1"),
    row("wake_due", blocked, STAY, when.no_answer_is_due, do.stay, "G2"),
    row(DECIDED, blocked, not_submitted, when.it_says_give_up_before_the_submit, do.end_unsubmitted, "G2 G7"),
    row(DECIDED, blocked, submitting, when.it_says_give_up_but_it_may_be_there, do.note_stop_and_seek, "G2 I1"),
    row(DECIDED, blocked, stopping, when.it_says_stop, do.take_answer_and_stop, "G2 E11"),
    row(DECIDED, blocked, stopping, when.it_says_use_a_copy, do.take_answer_and_stop, "E11"),
    row(DECIDED, blocked, STAY, when.others_are_open, do.take_answer_and_check, "G3 G6"),
    row(DECIDED, blocked, submitting, when.it_says_send_again, do.send_again, "G2 I1"),
    row(DECIDED, blocked, preflight, when.a_new_spec_was_given, do.take_answer_and_respecify, "G2 H3"),
    row(DECIDED, blocked, submitting, when.the_submit_goes_on, do.take_answer, "G2 I1"),
    row(DECIDED, blocked, preflight, when.preflight_goes_on, do.take_answer_and_check, "G2 G6"),
    row(DECIDED, blocked, queued, when.waiting_goes_on_without_a_twin, do.take_answer_and_stop_twin, "G2 I1"),
    row(DECIDED, blocked, queued, when.waiting_goes_on, do.take_answer, "G2"),
    row(DECIDED, blocked, running, when.it_says_stop_the_other, do.take_answer_and_stop_twin, "G2 I1"),
    row(DECIDED, blocked, running, ALWAYS, do.take_answer_and_watch, "G2 E9"),
    row("stop_requested", blocked, not_submitted, when.nothing_can_be_there, do.end_unsubmitted, "A2"),
    row("stop_requested", blocked, submitting, when.the_answer_is_still_out, do.note_stop_and_seek, "A2 I1"),
    row("stop_requested", blocked, stopping, ALWAYS, do.stop_on_request, "A2"),

    # --- stopping: an intent that is repeated until the cluster shows the end ---------------------------------
    row("observed", stopping, STAY, when.a_retry_is_due, do.stop_again, "A2"),
    row("observed", stopping, STAY, ALWAYS, do.note_look, "A2"),
    row("stop_asked", stopping, STAY, ALWAYS, do.note_stop_asked, "A2"),

    # --- collecting: one last log read, the outputs, the outcome by the evidence -------------------------------
    row("logs_read", collecting, STAY, ALWAYS, do.note_final_log, "F1"),
    row("stop_requested", collecting, STAY, ALWAYS, do.note_stop, "A2"),
    row("outputs_collected", collecting, submitting, when.deserves_another_try, do.resubmit_failed, "E13 I1"),
    row("outputs_collected", collecting, succeeded, when.it_succeeded, do.finish, "F2 F3"),
    row("outputs_collected", collecting, failed, when.it_failed, do.finish, "F1 F2 F3"),
    row("outputs_collected", collecting, stopped, when.it_was_stopped, do.finish, "F2 F6"),
    row("outputs_collected", collecting, unknown, ALWAYS, do.finish, "F2 F6"),
    row("wake_due", collecting, succeeded, when.late_and_it_succeeded, do.finish, "F2"),
    row("wake_due", collecting, failed, when.late_and_it_failed, do.finish, "F2"),
    row("wake_due", collecting, stopped, when.late_and_it_was_stopped, do.finish, "F2"),
    row("wake_due", collecting, unknown, when.collecting_took_too_long, do.finish, "F2"),
    row("wake_due", collecting, STAY, when.collecting_is_late, do.collect_again, "F1"),

    # --- ended: only a person who spells out the name can have the record removed -----------------------------
    row("submitted", (*ENDED, not_submitted), STAY, when.is_a_job_too_many, do.stop_the_late_one, "I1"),
    row("looked_up", (*ENDED, not_submitted), STAY, when.a_late_job_is_there, do.stop_late_jobs, "I1"),
    row("looked_up", (*ENDED, not_submitted), STAY, when.a_late_look_is_owed, do.look_once_more, "I1"),
    row("delete_requested", ENDED, STAY, when.the_name_is_spelled_out, do.delete, "A7"),
    row("deleted", ENDED, STAY, ALWAYS, do.note_deleted, "A7"),
)
# fmt: on
