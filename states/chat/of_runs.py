"""From what is said about running to a reading: taken over, submitted once, or asked back in one message (A8).

Never: a second run of one that is live (I1); a run of what the message does not hold.
"""

from __future__ import annotations

import re
from typing import Any

from states.chat import reads, runs
from states.chat.referents import Meant, by_state, spelled
from states.chat.speaker import Speaker
from states.chat.understood import Intent, Understood
from states.chat.vocabulary import has, pattern

COMMAND_CHARS = 200
_OPENS_A_QUESTION = re.compile(
    r"(?:so |and |hey |ok )*(?:is|was|did|has|have|does|can|will|would"
    r"|could)(?! (?:you|u|ya)(?![a-z]))(?![a-z])",
    re.ASCII,
)
_READS = frozenset({"capacity", "list", "why", "events", "library", "tail", "status"})


class Runner(Speaker):
    """Readings of requests to run something."""

    def asks_about(self, text: str, ask: runs.Ask) -> bool:
        """The message speaks of running only to ask something else: what is free, how it is done, how it went."""
        if ask.what in ("again", "restart"):
            recurs = has("failure", text) and not has("run", text) and "?" in text
            return has("why", text) or reads.is_how(text) or recurs
        if reads.is_how(text) or (has("why", text) and not ask.clean):
            return True
        if ask.what == "nothing":
            read = reads.find(self.said, text)
            return read in _READS and ("?" in text or not runs.leads(text))
        if _OPENS_A_QUESTION.match(text):
            return True
        if ask.clean or has("polite_question", text) or not has("hypothetical", text):
            return False
        return not re.search(r"(?<![a-z])(?:should|shall)(?![a-z])|要不要|该", text)

    def run(self, ask: runs.Ask, text: str) -> Understood:
        """The reading of what is to be run. text: the masked message without negated orders."""
        slots = {name: value for name, value in ask.slots.items() if not name.startswith("_")}
        if ask.what == "again":
            return self._again(ask, slots)
        if ask.what == "restart":
            meant = spelled(self.said, self.context) or Meant(tuple(job.name for job in self.context.jobs))
            return self.ask("restart", {"job": meant.one} if meant.one else {}, job=meant.one or "NAME")
        intent: Intent = "submit_only" if ask.slots.get("_submit_only") else "run"
        if ask.what == "nothing":
            return (
                self.ask("run_it") if runs.is_pronoun_only(text) else self.ask("what_to_run", slots, intent)
            )
        command = str(slots.get("command") or slots.get("request"))[:COMMAND_CHARS]
        if ask.what == "bare" or not ask.clean:
            return self.ask("run_now", slots, intent, command=command)
        key = (
            "predict_only" if slots.get("predict_only") else "run_file" if "command" not in slots else intent
        )
        more = self.say("left_over", left=ask.left) if ask.left else ""
        return Understood(
            intent=intent, slots=slots, reply=f"{self.say(key, command=command)} {more}".strip()
        )

    def _again(self, ask: runs.Ask, slots: dict[str, Any]) -> Understood:
        meant = spelled(self.said, self.context) or self._of_state()
        if meant.unknown:
            return self.ask("did_you_mean", {}, "run", meant.near, unknown=", ".join(meant.unknown))
        if not meant.names:
            return self.ask("run_it")
        if not meant.one:
            return self.ask("again_which", {}, "run", meant.names)
        job = meant.one
        if job in self.context.live:
            return self.ask("again_live", {"again_of": job}, "run", job=job)
        if not ask.clean or ask.left:
            return self.ask("again_changed", {"again_of": job}, "run", job=job, left=ask.left or "?")
        return Understood(intent="run", slots=slots | {"again_of": job}, reply=self.say("again", job=job))

    def _of_state(self) -> Meant:
        of_state = by_state(pattern("again").sub(" ", self.said.text), self.context)
        return Meant(of_state if of_state is not None else tuple(job.name for job in self.context.jobs))
