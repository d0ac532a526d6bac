"""Which effect next, in order per job and lane; intent before call; redo by its class; limits and back-off.

A result comes back as an event and is committed together with the effect's done-mark. An effect that raises is tried
again with growing pauses, and given up aloud.

Never: perform an ADOPT effect a second time: after a crash in it, only a look by name tells.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from agent import crash, observe
from agent.asked import AskedEffect
from agent.leases import Lease
from agent.perform import perform
from agent.ports import Ports
from states.effects import Redo, Submit
from states.events import AnyEvent, EffectGivenUp, Submitted, SubmitUnclear

log = logging.getLogger(__name__)

RETRY_S_MAX = 600.0


def perform_next(ports: Ports, asked: AskedEffect, lease: Lease) -> None:
    """Perform one effect and commit what came of it.

    lease: held by the caller; a submit is started only while it outlives the call.
    """
    effect = asked.effect
    if effect.redo is Redo.adopt and asked.begun:
        _commit(ports, asked, _lost_answer(ports, asked))
        return
    if effect.redo in (Redo.adopt, Redo.paid):
        ports.store.begin_effect(asked.id, ports.clock.now())
    try:
        ports.before_effect(effect)
        with observe.during("effect", kind=effect.kind):
            job = ports.store.load(asked.job_id)
            result = perform(asked, job, ports, lease)
    except Exception as error:  # whatever it is, the run must not be lost over it
        log.exception("effect %s (%s) failed", asked.id, effect.kind)
        _fail(ports, asked, error)
        return
    crash.point("effect-performed")
    _commit(ports, asked, result)


def _commit(ports: Ports, asked: AskedEffect, result: AnyEvent | None) -> None:
    if result is None:
        ports.store.finish_effect(asked.id, ports.clock.now())
    else:
        keyed = result.model_copy(update={"key": asked.id})
        applied = ports.store.apply(asked.job_id, keyed, done=asked.id)
        if applied.duplicate and isinstance(result, Submitted):
            # This process slept in the call, and another took it for lost: that a job is there now must not be lost.
            ports.store.apply(asked.job_id, result.model_copy(update={"key": f"{asked.id}:late"}))
    crash.point("result-committed")


def _fail(ports: Ports, asked: AskedEffect, error: Exception) -> None:
    """Try again later, or give up aloud. A submit that raised may have landed: that is an unclear answer."""
    said = ports.redact(f"{type(error).__name__}: {error}")
    if isinstance(asked.effect, Submit):
        event = SubmitUnclear(at=ports.clock.now(), name=asked.effect.name, reason=said)
        _commit(ports, asked, event)
        return
    if asked.tries + 1 >= asked.effect.tries_max:
        about = getattr(asked.effect, "child", "") or getattr(asked.effect, "name", "")
        given_up = EffectGivenUp(at=ports.clock.now(), effect=asked.effect.kind, name=about, reason=said)
        _commit(ports, asked, given_up)
        return
    pause_s = min(asked.effect.retry_s * 2.0**asked.tries, RETRY_S_MAX)
    ports.store.retry_effect(asked.id, ports.clock.now() + timedelta(seconds=pause_s), said)


def _lost_answer(ports: Ports, asked: AskedEffect) -> AnyEvent:
    """A submit that was begun and never answered: at start-up that IS an unclear answer (WALKS 2)."""
    assert isinstance(asked.effect, Submit)  # the only ADOPT effect
    reason = "Watchkeeper ended while the submit was under way"
    return SubmitUnclear(at=ports.clock.now(), name=asked.effect.name, reason=reason)
