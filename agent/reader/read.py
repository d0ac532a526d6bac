"""One log in, one checked reading out, in a fixed order: excerpt, cache, budget, one call, check, note.

Whatever goes wrong is a `Void` with its kind. Nothing waits or repeats by itself: a server that asks to be left alone
is left alone until then, while the timers of the machine look again.

Never: decide anything about a job (I2); raise for what a server or a model does (I3); import the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from agent.clock import Clock
from agent.reader.budget import Budget, Entry, Ledger, Limits
from agent.reader.prices import cost_usd
from agent.reader.prompt import REASONS_MAX, Facts, Prompt, build, facts_of
from agent.reader.reply import Answer, NoAnswer, Reading, Void, VoidKind, check
from states.causes import diagnose
from states.effects import Interpret
from states.events import Interpreted
from states.excerpt import choose, pointed_at
from states.job import Job
from states.progress import measure
from states.reading import Line
from states.text import lines

REST_S_MAX = 3600.0
"""Longest time that a server is left alone, whatever it asks."""

RESTS_S: Mapping[VoidKind, float] = {
    "auth": 600.0,
    "payment": 600.0,
    "request": 60.0,
    "busy": 30.0,
    "timeout": 60.0,
    "unreachable": 60.0,
}
"""How long the server is left alone after such a failure, unless it says for how long itself."""


FACT_BOUND_CHARS = 4000
"""Of a text in the facts, before the rules look at it; a row of the prompt is shorter still."""

NOT_BILLED: frozenset[VoidKind] = frozenset({"auth", "payment", "request", "busy", "unrecorded"})
"""Failures that a server does not charge for. What a call cost that ended half way is not known."""


class Caller(Protocol):
    """Who puts one question to a model: the server, or a recording."""

    @property
    def name(self) -> str:
        """The model's name as it is set."""
        ...

    @property
    def how(self) -> str:
        """What else of the settings the reply depends on."""
        ...

    def ask(self, prompt: Prompt) -> Answer:
        """One answer. Raises NoAnswer, and nothing else for what a server does."""
        ...

    def worst_usd(self, prompt: Prompt) -> float | None:
        """What this question can cost at most; None when the price is not known."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class ModelReader:
    """Reads logs with a model, within the budget and with a cache (`ports.Reader`). Thread-safe.

    redact: applied to whatever goes out and to what comes back (RULES B4).
    """

    def __init__(
        self,
        caller: Caller,
        ledger: Ledger,
        clock: Clock,
        *,
        limits: Limits,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.caller = caller
        self._ledger, self._clock, self._redact = ledger, clock, redact
        self._budget = Budget(ledger, limits, clock)
        self._resting: tuple[datetime, str] | None = None

    def interpret(self, job: Job, effect: Interpret, log: str) -> Interpreted:
        """The reading of a job's log as an event; a void one says why in `failed`. log: redacted by the caller."""
        now = self._clock.now()
        facts = facts_of(job, now, effect.situation)
        outcome = self.read(lines(self._redact(log)), facts, job_id=job.id)
        if isinstance(outcome, Void):
            return Interpreted(
                at=self._clock.now(),
                name=effect.name,
                model=outcome.model,
                cost_usd=outcome.cost_usd,
                failed=outcome.reason,
            )
        kept = outcome.model_dump(exclude={"tokens", "cached"})
        return Interpreted(at=self._clock.now(), name=effect.name, **kept)

    def read_text(self, text: str | Sequence[Line], facts: Facts, *, job_id: str = "") -> dict[str, Any]:
        """For `wk read`: {"model": null or {name, tokens, cost}, "reading": null or the reading, "why": reason}.

        text: raw and redacted, or lines that somebody has cleaned (their numbers are kept). `model` is null when
        nothing was asked; `why` is "" when there is a reading.
        """
        outcome = self.read(
            lines(self._redact(text)) if isinstance(text, str) else text, facts, job_id=job_id
        )
        called = {"name": outcome.model, "tokens": outcome.tokens, "cost": outcome.cost_usd}
        if isinstance(outcome, Void):
            return {"model": called if outcome.model else None, "reading": None, "why": outcome.reason}
        fields = {"verdict", "cause", "quotes", "milestone", "confidence", "summary"}
        return {"model": called, "reading": outcome.model_dump(mode="json", include=fields), "why": ""}

    def read(self, found: Sequence[Line], facts: Facts, *, job_id: str = "") -> Reading | Void:
        """One reading of cleaned, redacted lines, or why there is none."""
        try:
            return self._read(self.prompt(found, facts), job_id)
        except NoAnswer as failure:
            return Void(failure.kind, failure.reason, failure.retry_after_s)

    def prompt(self, found: Sequence[Line], facts: Facts) -> Prompt:
        """The question about these lines. Raises NoAnswer("empty") when there is no text."""
        facts = self._cleaned(facts)
        diagnosis = diagnose(found, reasons=facts.reasons, exit_code=facts.exit_code, signal=facts.signal)
        shown = choose(found, pointed_at(diagnosis, measure(found)))
        if not shown:
            raise NoAnswer("empty", "there is no log text to read")
        return build(shown, facts)

    def close(self) -> None:
        """Let go of connections."""
        self.caller.close()

    def _cleaned(self, facts: Facts) -> Facts:
        """The texts of others in the facts, redacted and then bounded."""
        reasons = tuple(self._redact(reason)[:FACT_BOUND_CHARS] for reason in facts.reasons[-REASONS_MAX:])
        texts = {
            name: self._redact(getattr(facts, name))[:FACT_BOUND_CHARS]
            for name in ("phase", "native", "situation", "cause")
        }
        return facts.model_copy(update={"reasons": reasons, **texts})

    def _read(self, prompt: Prompt, job_id: str) -> Reading | Void:
        key = prompt.key(self.caller.name, self.caller.how)
        known = self._remembered(prompt, key)
        if known is not None:
            return known
        self._refuse_while_resting()
        with self._budget.reserved(job_id, self.caller.worst_usd(prompt)):
            return self._ask(prompt, key, job_id)

    def _remembered(self, prompt: Prompt, key: str) -> Reading | None:
        """The reading of an earlier answer to this very input. It is checked anew: the checks may be stricter now."""
        answer = self._ledger.remembered(key)
        if answer is None:
            return None
        try:
            reading = check(answer, prompt, self._redact)
        except NoAnswer:
            return None
        return reading.model_copy(update={"tokens": 0, "cost_usd": 0.0, "cached": True})

    def _ask(self, prompt: Prompt, key: str, job_id: str) -> Reading | Void:
        """One paid call; noted whatever comes of it."""
        name, answer, cost = self.caller.name, None, None
        kind: str = "invalid"
        try:
            answer = self.caller.ask(prompt)
            cost = cost_usd(name, answer.tokens)
            reading = check(answer, prompt, self._redact)
            kind = "read"
            return reading.model_copy(update={"cost_usd": cost})
        except NoAnswer as failure:
            kind = failure.kind
            self._rest_after(failure)
            cost = 0.0 if answer is None and failure.kind in NOT_BILLED else cost
            tokens = answer.tokens.total if answer else 0
            return Void(failure.kind, failure.reason, failure.retry_after_s, name, tokens, cost)
        finally:
            self._ledger.note(Entry(key, job_id, self._clock.now(), name, kind, answer, cost))

    def _refuse_while_resting(self) -> None:
        resting = self._resting
        if resting is None:
            return
        left_s = (resting[0] - self._clock.now()).total_seconds()
        if left_s > 0:
            raise NoAnswer(
                "resting", f"the model is not asked for another {left_s:.0f} s: {resting[1]}", left_s
            )

    def _rest_after(self, failure: NoAnswer) -> None:
        rest_s = failure.retry_after_s if failure.retry_after_s is not None else RESTS_S.get(failure.kind)
        if rest_s:
            until = self._clock.now() + timedelta(seconds=min(rest_s, REST_S_MAX))
            self._resting = (until, failure.reason)
