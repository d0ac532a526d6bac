"""From what is said about stopping and deleting to a reading: done, nothing to do, left alone, or asked back.

Never: a stop without one live run that is meant; a delete whose name is not spelled out (A7).
"""

from __future__ import annotations

import re

from states.chat import figures, orders, reads
from states.chat.context import Context
from states.chat.marked import JOB, NAMES
from states.chat.referents import Meant, by_state, spelled
from states.chat.speaker import Speaker
from states.chat.understood import Intent, Understood
from states.chat.vocabulary import has, pattern

_SUGGESTS = re.compile(
    r"(?:停|杀|删|关)掉?(?:吗|么|不[停杀删关])|要不|该|考虑|想|可以|能|吧"
    r"|(?<![a-z])(?:should|shall|maybe|perhaps|might|let|wants?|think|thinking|could|can (?:it|i|we)|may i)(?![a-z])",
    re.ASCII,
)
_BARE_VERB = re.compile(rf"[{NAMES} 都全也它任务那个这]*(?:停|杀|关|取消)了?[ !.~啊呀]*", re.ASCII)
_OBJECT = re.compile(rf"[{NAMES}]|(?<![a-z])(?:it|them|job|run|this|that)(?![a-z])|它|任务", re.ASCII)


class Orderer(Speaker):
    """Readings of orders."""

    def ordered(self, found: orders.Orders, text: str) -> Understood:
        """The reading of clauses that order. text: the masked message without negated orders."""
        verbs = {order.verb for order in found.given}
        verb: orders.Verb = "stop+delete" if len(verbs) > 1 else next(iter(verbs))
        clause = " ".join(order.clause for order in found.given)
        whole = any(order.whole for order in found.given)
        called = spelled(self.said, self.context, clause)
        meant = called or _pointed_at(self, found, clause, whole)
        others = {name for rest in found.rest for piece in self.said.of(JOB, rest) for name in piece.names}
        others -= set(called.names if called else ())
        if orders.hedged(found.rest) or (others and whole):
            condition = figures.stop_if(text)
            slots = _job(meant) | ({"stop_if": condition} if condition else {})
            return self.ask("stop_or_not", slots, job=meant.one or "NAME")
        if meant.wild:
            return self.ask("wild", {}, verb, meant.names)
        if meant.unknown:
            return self._unknown(meant, verb)
        return self._stop(meant, whole) if verb == "stop" else self._delete(meant, verb)

    def _stop(self, meant: Meant, whole: bool) -> Understood:
        live = tuple(name for name in meant.names if name in self.context.live)
        if not meant.names:
            return self.moot("stop", "nothing_live")
        if not live:
            job, state = ",".join(meant.names), self.context.state_of(meant.names[0])
            return self.moot("stop", "not_live", {"job": job}, job=job, state=state)
        if len(live) > 1 and not (meant.named and not whole):
            return self.ask("which_stop", {}, "stop", live)
        job = ",".join(live)
        return Understood(intent="stop", slots={"job": job}, reply=self.say("stop", job=job))

    def _delete(self, meant: Meant, verb: orders.Verb) -> Understood:
        if not meant.named or meant.loose:
            ended = tuple(job.name for job in self.context.jobs if job.name not in self.context.live)
            fitting = tuple(name for name in meant.names if name in ended or verb == "stop+delete")
            return self.ask("which_delete", {}, verb, fitting or ended)
        job = ",".join(meant.names)
        if verb == "delete" and set(meant.names) & set(self.context.live):
            return self.ask("still_live", {"job": job}, "delete", job=job)
        return Understood(intent=verb, slots={"job": job}, reply=self.say(verb, job=job))

    def _unknown(self, meant: Meant, verb: orders.Verb) -> Understood:
        unknown = ", ".join(meant.unknown)
        near = meant.near or meant.names
        if near:
            return self.ask("did_you_mean", {}, verb, near, unknown=unknown)
        return self.moot(verb, "no_such_run", {"job": unknown}, unknown=unknown)

    def wonders(self, text: str, found: orders.Orders) -> bool:
        """Stopping is spoken of with a condition or a doubt, or in words that are nearly an order."""
        if not has("stop", text) and not has("delete", text):
            return False
        if has("why", text) or reads.is_how(text) or reads.asks_whether_over(text):
            return False
        if found.tried is not None:
            other = " ".join(clause for clause in found.rest if not has(found.tried, clause))
            return not other or reads.find(self.said, other) in (None, "help")
        return bool(_SUGGESTS.search(text) or has("condition", text) or _BARE_VERB.fullmatch(text))

    def unsure(self, text: str, found: orders.Orders) -> Understood:
        """Stopping or deleting is meant in some way; whether now, and what, is asked back."""
        meant = spelled(self.said, self.context) or Meant(self.context.live)
        condition = figures.stop_if(text) or ("end of epoch" if re.search(r"epoch|轮", text) else "")
        slots = _job(meant) | ({"stop_if": condition} if condition else {})
        verb: Intent = "unclear"
        doubted = has("condition", text) or has("hedge", text) or "?" in text
        if found.tried and _OBJECT.search(text) and not doubted:
            verb = found.tried
            if meant.unknown and not meant.names:
                return self._unknown(meant, verb)
            if verb == "delete":
                return self.ask("confirm_delete", slots, verb, meant.names, job=meant.one or "NAME")
        if condition or has("condition", text):
            return self.ask("stop_or_not", slots, verb, job=meant.one or "NAME")
        if not self.context.live:
            return self.moot(verb, "nothing_live", slots)
        if not meant.one:
            return self.ask("which_stop", slots, verb, meant.names or self.context.live)
        return self.ask("stop_unsure", slots, verb, meant.names, job=meant.one)

    def left_alone(self, text: str) -> Understood:
        """A negated order is an order to leave things as they are; nothing is asked, unless it is a question."""
        meant = spelled(self.said, self.context) or Meant(self.context.live)
        if "?" in text:
            return self.ask("stop_unsure", _job(meant), job=meant.one or "NAME")
        reply = self.say("left" if meant.one else "left_all", job=meant.one)
        return Understood(intent="unclear", slots=_job(meant), reply=reply)

    def cleanup(self, text: str) -> Understood:
        """Something is to go, and it is not said what: records, files, or somebody's place (A7)."""
        gpu = figures.resources(self.said).get("gpu")
        state = next(
            (one for one in ("failed", "queued", "done", "running") if has(f"state_{one}", text)), ""
        )
        slots = ({"gpu": gpu} if gpu is not None else {}) | ({"state": state} if state else {})
        return self.ask("cleanup", slots, "unclear", _names(self.context))


def _pointed_at(self: Orderer, found: orders.Orders, clause: str, whole: bool) -> Meant:
    """The run of an order without a name: named beside it, of the state it tells, or the only live one."""
    if whole:
        return Meant(self.context.live)
    beside = spelled(self.said, self.context, " ".join(found.rest))
    if beside is not None and (beside.names or beside.unknown):
        return beside
    of_state = by_state(pattern("stop").sub(" ", clause), self.context)
    return Meant(of_state if of_state is not None else self.context.live)


def _job(meant: Meant) -> dict[str, str]:
    return {"job": meant.one} if meant.one else {}


def _names(context: Context) -> tuple[str, ...]:
    return tuple(job.name for job in context.jobs)
