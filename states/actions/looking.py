"""Verbs of a look at the cluster: note it, suspect a loss, report a start or a requeue, ask about a wait.

Never: set the state (the row does), read the world, or decide whether to act (the guard did).
"""

from __future__ import annotations

from datetime import datetime

from states import reports
from states.actions.asking import open_questions, withdraw_all
from states.actions.change import Change, after, tell
from states.actions.parts import (
    ask_waiting,
    log_read,
    native_words,
    track_after_restart,
    with_look,
)
from states.conditions import ran_so_far_s
from states.effects import (
    AnyEffect,
    StopJob,
)
from states.events import (
    ClusterUnreachable,
    Observed,
)
from states.guards import (
    is_of_an_earlier_attempt,
    running_twin_topics,
    twin_topic,
    twins_to_stop,
    twins_to_tell,
)
from states.job import TOPICS_MAX, Job, State
from states.observation import Match, Phase
from states.timers import look_s


def note_look(job: Job, event: Observed) -> Change:
    """Take the look down; nothing else has changed that matters."""
    return Change(with_look(job, event.observation), (), native_words(event.observation))


def suspect(job: Job, event: Observed) -> Change:
    """A first look at preempted, lost or gone: believed only if the second says the same. A job that was never shown
    stays unseen."""
    seen, first = event.observation, job.attempt.suspect
    kept = first if first is not None and first.phase is seen.phase else seen
    shown = job.attempt.seen is not None or seen.phase is not Phase.gone
    noted = with_look(job, seen).but_attempt(suspect=kept, seen=seen if shown else None)
    return Change(noted, (), f"{seen.phase}: {native_words(seen)}")


def stop_moot_twins(job: Job, event: Observed) -> Change:
    """A double that has not started, or was given up for lost and came back, is stopped at once, and said aloud the
    first time (DESIGN 4.4)."""
    twins = twins_to_stop(job, event.observation)
    effects: list[AnyEffect] = [
        StopJob(name=t.name, cluster_job_id=t.cluster_job_id, twin=True) for t in twins
    ]
    new = [t for t in twins if twin_topic(t) not in job.asked_topics]
    effects += [tell("twin", _stopped(job, twin), must_not_miss=True) for twin in new]
    topics = (*job.asked_topics, *map(twin_topic, twins))[-TOPICS_MAX:]
    noted = with_look(job, event.observation).but(asked_topics=topics)
    return Change(noted, tuple(effects), f"twin {', '.join(t.cluster_job_id for t in twins)}")


def _stopped(job: Job, twin: Match) -> str:
    said = reports.earlier_stopped if is_of_an_earlier_attempt(job, twin) else reports.twin_stopped
    return said(job, twin.cluster_job_id)


def ask_about_twins(job: Job, event: Observed) -> Change:
    """Two of ours run: both may write the same files, so a person decides (default: leave both)."""
    twin = next(t for t in event.observation.twins if t.ours and t.phase is Phase.running)
    why = f"{job.attempt.cluster_job_id} and {twin.cluster_job_id}"
    facts = {"name": job.id, "why": why, "twin": twin.cluster_job_id, "twin_name": twin.name}
    return open_questions(
        with_look(job, event.observation), event.at, [("twins", f"twins:{twin.cluster_job_id}", facts, ())]
    )


def tell_of_twins(job: Job, event: Observed) -> Change:
    """Two of ours run while another question stands or a stop goes on: said aloud once, asked about later."""
    twins = twins_to_tell(job, event.observation)
    ids = ", ".join(twin.cluster_job_id for twin in twins)
    topics = (*job.asked_topics, *(running_twin_topics(twin)[1] for twin in twins))[-TOPICS_MAX:]
    noted = with_look(job, event.observation).but(asked_topics=topics)
    said = tell("twin", reports.twin_runs(job, ids), must_not_miss=True)
    return Change(noted, (said,), f"twin {ids} runs too")


def _began_at(job: Job, event: Observed) -> datetime:
    """When it began to run: as the cluster tells, but not before the last look that told something new, nor after
    this one.

    The cluster's clock may be hours off ours, and a budget of time is counted from here (E8). A wait in which every
    look told the same may still be counted as run time then.
    """
    seen, before = event.observation, job.attempt.seen
    told = min(seen.started_at or event.at, event.at)
    return told if before is None else max(told, min(before.taken_at, event.at))


def note_start(job: Job, event: Observed) -> Change:
    """It runs: say so once, and read the log soon."""
    seen = event.observation
    started = with_look(job, seen).but_attempt(
        started_at=_began_at(job, event), starting_since=None, node=seen.node, restarts_seen=seen.attempt
    )
    started = started.but(logs_at=after(event.at, job.policy.look_s_first), reported_at=event.at)
    withdrawn, tells = withdraw_all(started, event.at, "it runs now")
    return Change(
        withdrawn, (*tells, tell("started", reports.started(withdrawn, event.at))), native_words(seen)
    )


def note_start_meanwhile(job: Job, event: Observed) -> Change:
    """It runs, and the open question stands: it goes on being watched as a running job (G3)."""
    seen = event.observation
    started = with_look(job, seen).but_attempt(
        started_at=_began_at(job, event),
        starting_since=None,
        node=seen.node,
        restarts_seen=seen.attempt,
    )
    started = started.but(resume_to=State.running, logs_at=after(event.at, job.policy.look_s_first))
    return Change(started, (tell("started", reports.started(started, event.at)),), native_words(seen))


def withdraw_wait(job: Job, event: Observed) -> Change:
    """What the question was about is over: taken back with the reason."""
    withdrawn, tells = withdraw_all(
        with_look(job, event.observation), event.at, native_words(event.observation)
    )
    return Change(withdrawn, tells, native_words(event.observation))


def note_requeue_between_looks(job: Job, event: Observed) -> Change:
    """It was put back and runs again already: its node, its start and its log are new ones."""
    seen = event.observation
    begun = with_look(job, seen).but_attempt(
        started_at=_began_at(job, event),
        node=seen.node,
        restarts_seen=seen.attempt,
        ran_before_s=ran_so_far_s(job, _began_at(job, event)),
    )
    begun = begun.but(track=track_after_restart(job), logs_at=after(event.at, job.policy.look_s_first))
    return Change(begun, (tell("resumed", reports.resumed(begun, event.at)),), native_words(seen))


def note_requeue(job: Job, event: Observed) -> Change:
    """The cluster put it back under the same id: no submit of ours, a fresh watch of its log."""
    seen = event.observation
    changed = with_look(job, seen).but_attempt(
        started_at=None,
        starting_since=None,
        restarts_seen=seen.attempt,
        ran_before_s=ran_so_far_s(job, event.at),
    )
    changed = changed.but(logs_at=None, track=track_after_restart(job))
    withdrawn, tells = withdraw_all(changed, event.at, "the cluster put the job back into its queue")
    report = tell("resumed", reports.resumed(withdrawn, event.at), must_not_miss=False)
    return Change(withdrawn, (*tells, report), native_words(seen))


def read_logs(job: Job, event: Observed) -> Change:
    """A look at the log is due: read a bounded tail (E2)."""
    noted = with_look(job, event.observation)
    later = after(event.at, look_s(job))
    return Change(noted.but(logs_at=later), (log_read(noted, job.policy.log_lines),), "log look due")


def ask_about_hold(job: Job, event: Observed) -> Change:
    """Held: it will not move without a person (default: wait)."""
    return ask_waiting(job, event, "held", f"held:{event.observation.reason}")


def ask_about_fit(job: Job, event: Observed) -> Change:
    """A reason that no waiting cures (default: wait, since only the person can change the figure: C3)."""
    return ask_waiting(job, event, "never-fits", f"never-fits:{event.observation.reason}")


def ask_about_wait(job: Job, event: Observed) -> Change:
    """Queued or starting for very long: ask whether to go on (default: wait)."""
    starts = job.attempt.starting_since is not None or event.observation.phase is Phase.starting
    topic = "starting" if starts else "queued"
    return ask_waiting(job, event, "waits-long", topic)


def ask_about_finish(job: Job, event: Observed) -> Change:
    """The work is over and the cluster does not close it: ask (default: wait)."""
    return ask_waiting(job, event, "waits-long", f"finishing:{event.observation.reason}")


def report_odd_word(job: Job, event: Observed) -> Change:
    """A word that this cluster's table does not have: alive, and said (PHASES 4)."""
    word = event.observation.native
    noted = with_look(job, event.observation).but(odd_words=(*job.odd_words, word)[-8:])
    return Change(noted, (tell("odd-word", reports.odd_word(noted, word)),), word)


def note_away(job: Job, event: ClusterUnreachable) -> Change:
    """It could not be asked: nothing is concluded (WISHES 1)."""
    return Change(job.but(unreachable_since=job.unreachable_since or event.at), (), event.reason)


def report_away(job: Job, event: ClusterUnreachable) -> Change:
    """One routine word that the cluster does not answer."""
    said = job.but(unreachable_said=True)
    return Change(
        said, (tell("unreachable", reports.unreachable(said, event.at, event.reason)),), event.reason
    )


def ask_about_away(job: Job, event: ClusterUnreachable) -> Change:
    """Away for very long: ask (default: keep waiting)."""
    facts = {"name": job.id, "why": event.reason}
    return open_questions(job, event.at, [("unreachable", f"unreachable:{job.unreachable_since}", facts, ())])
