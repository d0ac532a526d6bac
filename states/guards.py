"""The `when` column of the table: plain predicates on (job, event), named as sentences.

They are asked after `intake` has taken in what the event tells (a fresh verdict stands in `job.verdict`).

Never: change anything, read a clock (the event's `at` is now), or raise on a late event.
"""

from __future__ import annotations

from states.conditions import met_condition
from states.events import (
    Answered,
    CheckFinished,
    ChildFinished,
    ClusterUnreachable,
    DeleteRequested,
    EffectGivenUp,
    Interpreted,
    LogsRead,
    LookedUp,
    Observed,
    OutputsCollected,
    Submitted,
    SubmitRejected,
    SubmitUnclear,
    WakeDue,
)
from states.job import Job, State
from states.observation import ENDED, SECOND_LOOK, Observation, Phase, Waiting
from states.outcome import outcome_of, worth_another_try
from states.preflight import is_settled, needs_smoke, refusals, unanswered
from states.questions import Act, Choice, Question, understand
from states.timers import deadlines, waiting_topic

WAITS = frozenset({Phase.pending, Phase.starting, Phase.unknown})


# --- preflight ---------------------------------------------------------------------------------------------


def is_the_first(job: Job, event: object) -> bool:
    """Nothing has happened to this job before."""
    return job.seq == 0


def is_a_takeover(job: Job, event: object) -> bool:
    """The first event of a job that somebody else submitted."""
    return is_the_first(job, event) and job.is_takeover


def checks_are_open(job: Job, event: CheckFinished | ChildFinished) -> bool:
    """Other checks have not answered yet: what is missing is told in one message, not one by one (A8)."""
    return bool(job.checks_open)


def a_check_refuses(job: Job, event: object) -> bool:
    return not job.checks_open and bool(refusals(job))


def something_is_missing(job: Job, event: object) -> bool:
    return not job.checks_open and bool(unanswered(job))


def a_smoke_run_is_due(job: Job, event: object) -> bool:
    return is_settled(job) and needs_smoke(job)


def all_is_settled(job: Job, event: object) -> bool:
    return is_settled(job)


def the_child_failed(job: Job, event: ChildFinished) -> bool:
    """A smoke or build run failed: the real submit is not spent on it (D4)."""
    return not event.ok


# --- submitting --------------------------------------------------------------------------------------------


def is_about_another_attempt(
    job: Job, event: Submitted | SubmitRejected | SubmitUnclear | LookedUp | Observed | LogsRead | Interpreted
) -> bool:
    return not job.attempts or event.name != job.attempt.name


def a_stop_was_asked(job: Job, event: object) -> bool:
    return job.stop is not None


def may_pass_if_tried_again(job: Job, event: SubmitRejected) -> bool:
    return event.retryable and job.attempt.sends < job.policy.submit_sends_max and job.stop is None


def the_image_is_refused(job: Job, event: SubmitRejected) -> bool:
    return event.cause.startswith("image.") and job.stop is None


def a_person_can_mend_it(job: Job, event: SubmitRejected) -> bool:
    return job.stop is None


def an_earlier_attempt_ran(job: Job, event: SubmitRejected) -> bool:
    """A restart was refused: there is a run to wrap up, so this is no longer "not submitted"."""
    return any(attempt.accepted_at is not None for attempt in job.attempts[:-1])


def is_not_sought(job: Job, event: LookedUp) -> bool:
    """A look-up of another attempt, or of one whose answer is known."""
    return is_about_another_attempt(job, event) or job.attempt.unclear_since is None


def one_is_there_and_a_stop_was_asked(job: Job, event: LookedUp) -> bool:
    return job.stop is not None and one_of_ours_is_there(job, event)


def one_of_ours_is_there(job: Job, event: LookedUp) -> bool:
    return event.reachable and any(match.ours for match in event.matches)


def the_name_is_taken(job: Job, event: LookedUp) -> bool:
    """A job of that name is there and it is not ours: nothing is adopted, nothing is sent."""
    return event.reachable and bool(event.matches)


def is_settled_as_absent(job: Job, event: LookedUp) -> bool:
    """Provably not there, and long enough after the call that it can no longer land (DESIGN 4.3)."""
    since = job.attempt.unclear_since
    if not event.reachable or event.matches or since is None:
        return False
    wait_s = job.capabilities.submit_timeout_s + max(job.policy.settle_s, job.capabilities.visible_within_s)
    return (event.at - since).total_seconds() >= wait_s


def absent_and_a_stop_was_asked(job: Job, event: LookedUp) -> bool:
    return is_settled_as_absent(job, event) and job.stop is not None


def may_be_sent_again(job: Job, event: LookedUp) -> bool:
    return is_settled_as_absent(job, event) and job.attempt.sends < job.policy.submit_sends_max


def was_sought_for_too_long(job: Job, event: LookedUp) -> bool:
    since = job.attempt.unclear_since
    too_long = since is not None and (event.at - since).total_seconds() >= job.policy.look_up_s_max
    sends_spent = is_settled_as_absent(job, event) and job.attempt.sends >= job.policy.submit_sends_max
    return (too_long or sends_spent) and f"unsettled:{job.attempt.name}" not in job.asked_topics


def a_look_up_is_due(job: Job, event: WakeDue) -> bool:
    at = job.attempt.look_up_at if job.attempts else None
    return at is not None and at <= event.at


def a_resend_is_due(job: Job, event: WakeDue) -> bool:
    at = job.attempt.resend_at if job.attempts else None
    return at is not None and at <= event.at


# --- watching ----------------------------------------------------------------------------------------------


def nothing_is_watched(job: Job, event: object) -> bool:
    """Blocked before there is a cluster job to look at."""
    return job.doing not in (State.queued, State.running, State.stopping, State.collecting)


def a_twin_has_not_started(job: Job, event: Observed) -> bool:
    """A double that waits is stopped without asking; not in somebody else's job (A10)."""
    return not job.is_takeover and any(twin.ours and twin.phase in WAITS for twin in event.observation.twins)


def a_twin_runs_too(job: Job, event: Observed) -> bool:
    live = [t for t in event.observation.twins if t.ours and t.phase is Phase.running]
    return not job.is_takeover and any(f"twins:{twin.cluster_job_id}" not in job.asked_topics for twin in live)


def has_ended(job: Job, event: Observed) -> bool:
    """A positive record of the end. One that still finishes is not over."""
    return event.observation.phase in ENDED and not event.observation.finishing


def is_a_first_look_at_a_loss(job: Job, event: Observed) -> bool:
    """preempted, lost, gone: nothing is believed at the first look, nor before a requeue could show."""
    seen = event.observation
    if seen.phase not in SECOND_LOOK:
        return False
    suspect = job.attempt.suspect
    if suspect is None or suspect.phase is not seen.phase:
        return True
    return (seen.taken_at - suspect.taken_at).total_seconds() < job.policy.second_look_s * 0.9


def was_preempted_and_may_restart(job: Job, event: Observed) -> bool:
    return (
        event.observation.phase is Phase.preempted
        and not job.is_takeover
        and job.stop is None
        and job.preemptions < job.request.max_restarts
    )


def was_lost_and_may_be_resubmitted(job: Job, event: Observed) -> bool:
    return (
        event.observation.phase is Phase.lost and job.stop is None and worth_another_try(job, "node.lost", event.at)
    )


def is_over_without_an_end(job: Job, event: Observed) -> bool:
    """Preempted, lost or gone for good."""
    return event.observation.phase in SECOND_LOOK


ABOUT_WAITING = frozenset({"held", "never-fits", "waits-long", "unreachable"})
"""Questions that are moot once the job moves on."""


def it_runs(job: Job, event: Observed) -> bool:
    return job.doing is State.queued and event.observation.phase is Phase.running


def it_runs_though_a_question_stands(job: Job, event: Observed) -> bool:
    """It starts while a question is open that its start does not answer (twins): the question stays."""
    return it_runs(job, event) and any(q.kind not in ABOUT_WAITING for q in job.open_questions)


def the_wait_is_ordinary_again(job: Job, event: Observed) -> bool:
    """What the open question was about is gone, and the job waits like any other."""
    seen = event.observation
    kinds = {question.kind for question in job.open_questions}
    ordinary = not seen.held and seen.waiting is Waiting.wait and seen.phase in WAITS
    return job.doing is State.queued and ordinary and bool(kinds) and kinds <= {"held", "never-fits", "unreachable"}


def it_answers_again(job: Job, event: Observed) -> bool:
    """The cluster was away and a question was open about that alone."""
    runs = job.doing is State.running and event.observation.phase is Phase.running
    return runs and {question.kind for question in job.open_questions} == {"unreachable"}


def it_waits_again(job: Job, event: Observed) -> bool:
    """Requeued under the same id (PHASES: pending may follow running)."""
    return job.doing is State.running and event.observation.phase in (Phase.pending, Phase.starting)


def is_held(job: Job, event: Observed) -> bool:
    return _waits_for(event.observation, Waiting.held) and _not_asked(job, "held", event.observation)


def can_never_start(job: Job, event: Observed) -> bool:
    seen = event.observation
    stuck = _waits_for(seen, Waiting.never) or _waits_for(seen, Waiting.budget)
    return stuck and _not_asked(job, "never-fits", seen)


def waits_for_too_long(job: Job, event: Observed) -> bool:
    due = deadlines(job)
    return any(name in due and due[name] <= event.at for name in ("queued", "starting"))


def finishes_for_too_long(job: Job, event: Observed) -> bool:
    seen, before = event.observation, job.attempt.seen
    if not (seen.finishing and before is not None and before.finishing):
        return False
    since = job.attempt.ended_at
    late = since is not None and (event.at - since).total_seconds() >= job.policy.finishing_ask_s
    return late and _not_asked(job, "finishing", seen)


def the_word_is_new(job: Job, event: Observed) -> bool:
    return event.observation.phase is Phase.unknown and event.observation.native not in job.odd_words


def logs_are_due(job: Job, event: Observed) -> bool:
    return job.doing is State.running and job.logs_at is not None and job.logs_at <= event.at


def was_away_for_too_long(job: Job, event: ClusterUnreachable) -> bool:
    since = job.unreachable_since
    away_s = (event.at - since).total_seconds() if since else 0.0
    return away_s >= job.policy.unreachable_ask_s and f"unreachable:{since}" not in job.asked_topics


def a_word_is_due_that_it_is_away(job: Job, event: ClusterUnreachable) -> bool:
    since = job.unreachable_since
    late = since is not None and (event.at - since).total_seconds() >= job.policy.unreachable_report_s
    return late and not job.unreachable_said


def the_wall_clock_condition_is_met(job: Job, event: WakeDue) -> bool:
    due = deadlines(job).get("wall")
    return due is not None and due <= event.at


# --- reading -----------------------------------------------------------------------------------------------


def reading_is_over(job: Job, event: object) -> bool:
    """The job is not running any more: a late log says nothing new."""
    return job.doing is not State.running


def the_log_was_not_readable(job: Job, event: LogsRead) -> bool:
    return not event.readable


def the_stop_condition_is_met(job: Job, event: LogsRead) -> bool:
    return met_condition(job, event) is not None


def is_provably_wasted(job: Job, event: LogsRead) -> bool:
    """Hung, diverged, crash loop, looping: clear cases, stopped on its own judgment (E5, E6, E7)."""
    return job.may_stop_alone and job.verdict is not None and job.verdict.provable


def is_a_clear_case_of_another(job: Job, event: LogsRead) -> bool:
    """The same in a job that was only handed over to be watched: asked, not stopped (A10)."""
    return job.verdict is not None and job.verdict.provable and _topic_is_new(job)


def more_of_the_log_would_settle_it(job: Job, event: LogsRead) -> bool:
    verdict = job.verdict
    wants = verdict is not None and not verdict.settled and "more_tail" in verdict.wants
    return wants and 0 < event.lines < job.policy.log_lines_max


def the_model_may_settle_it(job: Job, event: LogsRead) -> bool:
    verdict = job.verdict
    wants = verdict is not None and not verdict.settled and "model" in verdict.wants
    return wants and job.interprets < job.policy.interpret_max and _topic_is_new(job)


def the_network_is_stuck(job: Job, event: LogsRead) -> bool:
    return _concern(job) == "network" and _topic_is_new(job)


def a_download_drags(job: Job, event: LogsRead) -> bool:
    return _concern(job) == "download" and _topic_is_new(job)


def it_looks_off(job: Job, event: LogsRead) -> bool:
    """Ambiguous, doomed but not provably, or unsettled with nothing left to settle it: ask once per cause."""
    verdict = job.verdict
    if verdict is None or not _topic_is_new(job):
        return False
    return not verdict.settled or verdict.name in ("ambiguous", "looping", "hung", "failing")


def the_trouble_is_over(job: Job, event: LogsRead) -> bool:
    """A question about a running job is open and the job moves again: withdrawn with a word why (E9)."""
    verdict = job.verdict
    moves = verdict is not None and verdict.settled and verdict.name in ("progressing", "succeeded")
    about = [q for q in job.open_questions if q.kind in ("looks-off", "network", "download", "clear-case")]
    return job.state is State.blocked and moves and bool(about) and len(about) == len(job.open_questions)


def a_report_is_due(job: Job, event: LogsRead) -> bool:
    since = job.reported_at
    return since is None or (event.at - since).total_seconds() >= job.policy.report_s


def the_reading_says_calm(job: Job, event: Interpreted) -> bool:
    """Valid, and it names a slow phase or progress: the job goes on, no question (DESIGN 6)."""
    return not event.failed and event.verdict in ("progressing", "slow", "starting") and event.confidence >= 0.5


# --- questions ---------------------------------------------------------------------------------------------


def the_answer_is_not_valid(job: Job, event: Answered) -> bool:
    question = question_at(job, event)
    return question is None or not isinstance(understand(question, event.reply), Choice)


def no_answer_is_due(job: Job, event: WakeDue) -> bool:
    return all(question.answer_by > event.at for question in job.open_questions)


def act_of(job: Job, event: Answered | WakeDue) -> Act | None:
    """What the answer, or the default at its deadline, does; None while neither applies."""
    question = question_at(job, event)
    if question is None:
        return None
    if isinstance(event, WakeDue):
        return question.default.act
    choice = understand(question, event.reply)
    return choice.option.act if isinstance(choice, Choice) else None


def it_says_give_up_before_the_submit(job: Job, event: Answered | WakeDue) -> bool:
    return act_of(job, event) in (Act.give_up, Act.stop) and nothing_can_be_there(job, event)


def it_says_give_up_but_it_may_be_there(job: Job, event: Answered | WakeDue) -> bool:
    """The submit's answer is still out: what lands is stopped."""
    return act_of(job, event) in (Act.give_up, Act.stop) and job.doing is State.submitting


def it_says_stop(job: Job, event: Answered | WakeDue) -> bool:
    return act_of(job, event) is Act.stop and job.doing in (State.queued, State.running)


def others_are_open(job: Job, event: Answered | WakeDue) -> bool:
    """One is decided now; the run waits for the rest."""
    return len(job.open_questions) > 1


def preflight_goes_on(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.preflight


def it_says_send_again(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.submitting and act_of(job, event) in (Act.resend, Act.go_on)


def a_new_spec_was_given(job: Job, event: Answered | WakeDue) -> bool:
    """A value for a refused submit: a new spec is a new attempt, so it passes preflight again."""
    return job.resume_to is State.submitting and act_of(job, event) in (Act.set_value, Act.recheck)


def the_submit_goes_on(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.submitting


def it_says_stop_the_younger(job: Job, event: Answered | WakeDue) -> bool:
    question = question_at(job, event)
    return question is not None and question.kind == "twins" and act_of(job, event) is Act.go_on


def waiting_goes_on_without_a_twin(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.queued and it_says_stop_the_younger(job, event)


def waiting_goes_on(job: Job, event: Answered | WakeDue) -> bool:
    return job.resume_to is State.queued


# --- stopping and the end ----------------------------------------------------------------------------------


def nothing_can_be_there(job: Job, event: object) -> bool:
    """No submit was made, or the cluster said no to it: no job exists."""
    refused = bool(job.attempts) and job.doing is State.submitting and job.attempt.unclear_since is None
    return job.doing is State.preflight or (refused and job.attempt.accepted_at is None)


def the_answer_is_still_out(job: Job, event: object) -> bool:
    """The submit is under way: the stop is kept and carried out when it is known what there is (WISHES 7)."""
    return job.doing is State.submitting


def a_retry_is_due(job: Job, event: WakeDue | Observed) -> bool:
    return job.stop is not None and job.stop.retry_at is not None and job.stop.retry_at <= event.at


def checks_are_late(job: Job, event: WakeDue) -> bool:
    due = deadlines(job).get("checks")
    return bool(job.checks_open) and due is not None and due <= event.at


def collecting_is_late(job: Job, event: WakeDue) -> bool:
    return job.collect_at is not None and job.collect_at <= event.at


def collecting_took_too_long(job: Job, event: WakeDue) -> bool:
    return collecting_is_late(job, event) and job.collect_tries >= job.policy.collect_tries_max


def deserves_another_try(job: Job, event: OutputsCollected) -> bool:
    """It failed by the infrastructure's fault, within the budget, and not the same way twice without a milestone."""
    outcome = outcome_of(job)
    return outcome.state is State.failed and worth_another_try(job, outcome.cause, event.at)


def it_succeeded(job: Job, event: object) -> bool:
    return outcome_of(job).state is State.succeeded


def it_failed(job: Job, event: object) -> bool:
    return outcome_of(job).state is State.failed


def it_was_stopped(job: Job, event: object) -> bool:
    return outcome_of(job).state is State.stopped


def late_and_it_succeeded(job: Job, event: WakeDue) -> bool:
    """The wrap-up's reads do not answer: what is known decides."""
    return collecting_took_too_long(job, event) and it_succeeded(job, event)


def late_and_it_failed(job: Job, event: WakeDue) -> bool:
    return collecting_took_too_long(job, event) and it_failed(job, event)


def late_and_it_was_stopped(job: Job, event: WakeDue) -> bool:
    return collecting_took_too_long(job, event) and it_was_stopped(job, event)


def the_name_is_spelled_out(job: Job, event: DeleteRequested) -> bool:
    names = {job.id, *(attempt.name for attempt in job.attempts)}
    return event.name in names and bool(job.attempts)


def a_check_was_given_up(job: Job, event: EffectGivenUp) -> bool:
    return event.effect == "run_check"


# --- helpers of this file ----------------------------------------------------------------------------------


def _waits_for(seen: Observation, waiting: Waiting) -> bool:
    held = seen.held and waiting is Waiting.held
    return seen.phase in (Phase.pending, Phase.starting) and (seen.waiting is waiting or held)


def _not_asked(job: Job, topic: str, seen: Observation) -> bool:
    """Asked once per cause: the reason's words are part of the topic, and it must have lasted a second look."""
    before = job.attempt.seen
    lasted = before is not None and before.reason == seen.reason and before.phase is seen.phase
    return lasted and waiting_topic(job, f"{topic}:{seen.reason}") not in job.asked_topics


def _concern(job: Job) -> str:
    return job.verdict.topic if job.verdict is not None else ""


def _topic_is_new(job: Job) -> bool:
    return verdict_topic(job) not in job.asked_topics


def verdict_topic(job: Job) -> str:
    """The key under which a concern is asked about once (G5): a new attempt or a milestone since makes it new."""
    moved = job.track.milestone_at.isoformat() if job.track.milestone_at else ""
    return f"{_concern(job) or 'odd'}:{job.attempt.number}:{moved}"


def question_at(job: Job, event: Answered | WakeDue) -> Question | None:
    """The open question that this answer, or the earliest passed deadline, is about."""
    if isinstance(event, Answered):
        return next((q for q in job.open_questions if q.number == event.number), None)
    due = [question for question in job.open_questions if question.answer_by <= event.at]
    return min(due, key=lambda question: question.answer_by, default=None)
