"""A message and its world to a reading: answers first, then orders, runs and reads; what is none of them is asked back.

Never: an act that the message does not order in so many words.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from states.chat import answers, figures, orders, reads, runs, slips
from states.chat.context import Asked, Context
from states.chat.marked import COMMAND, JOB, NAMES, UNKNOWN, VALUE, Marked, marked
from states.chat.of_reads import Reader
from states.chat.referents import Meant, by_state, spelled
from states.chat.replies import say
from states.chat.understood import Intent, Understood
from states.chat.vocabulary import has, pattern
from states.questions import Language

_FORGED = re.compile(
    r"^\s*[\[<#*|({]*\s*(?:system|assistant|user|human|bot|ai|tool|developer|admin|moderator|watchkeeper|agent|model|root|operator|系统|助手|用户|管理员|机器人)\s*(?:message|prompt|note|消息|提示)?\s*[\])>|*}]*\s*[::]|<\|\w+\|>|\[/?inst\]|^\s*###\s*\w+\s*:",
    re.IGNORECASE | re.MULTILINE,
)
COMMAND_CHARS = 200


def understand(message: str, context: Context) -> Understood:
    """The reading of one message. Raises nothing on any text."""
    said = marked(message, context)
    language: Language = (
        "zh" if said.chinese else "en" if re.search(r"[a-z]", message.lower()) else context.language
    )
    found = _Mind(said, context, language).read()
    if said.secret:
        # What was asked is told, so that it can be asked again without the value; nothing of it is carried out.
        intent: Intent = "help" if found.intent == "unclear" else found.intent
        return Understood(intent=intent, slots={"refused": "credential"}, reply=say("credential", language))
    return found


class _Mind:
    """One message being read."""

    def __init__(self, said: Marked, context: Context, language: Language) -> None:
        self.said = said
        self.context = context
        self.language = language

    def read(self) -> Understood:
        """Try the readings in their order."""
        said = self.said
        if not re.search(r"\w|\?|[\ue100-\uf8ff]", said.text):
            return self._ask("nothing_said") if "👍" not in said.raw else self._yes_or_no()
        if said.crowded:
            return self._ask("too_long")
        if _FORGED.search(said.raw):
            return self._ask("forged")
        answer = answers.find(said, self.context)
        if answer is not None:
            return self._answer(answer)
        return self._order_or_run() or self._rest()

    # --- answers -----------------------------------------------------------------------------------------------

    def _answer(self, answer: answers.Answer) -> Understood:
        asked = [
            question
            for question in self.context.questions
            if question.id in answer.slots.get("question", "").split(",")
        ]
        names = ", ".join(question.id for question in (asked or self.context.open))
        options = " ".join(map(_options, asked or self.context.open))
        if answer.doubt is not None:
            return self._ask(answer.doubt, names=names or "-", options=options)
        choice = answer.slots.get("value") or answer.slots.get("option")
        key = "answer_late" if answer.late else "answer_invalid" if answer.invalid else "answer"
        return Understood(
            intent="answer",
            slots=answer.slots,
            moot=answer.late or answer.invalid,
            reply=self._say(key, question=names, choice=choice, options=options),
        )

    def _yes_or_no(self) -> Understood:
        return self._answer(answers.Answer(doubt="which_option" if self.context.open else "no_question"))

    # --- orders and runs --------------------------------------------------------------------------------------

    def _order_or_run(self) -> Understood | None:
        text, negated = orders.without_negated(self.said.text)
        found = orders.find(text)
        ask = runs.find(self.said._replace(text=text))
        if found.given:
            if ask is not None and ask.what in ("run", "again", "bare") and not self._only_order(found):
                return self._ask("one_thing")
            return self._ordered(found, text)
        if negated and ask is not None and ask.what in ("bare", "nothing"):
            return self._left_alone(text)
        if ask is not None and not self._asks_about(text, ask):
            return self._run(ask, text)
        if self._wonders_about_stopping(text, found):
            return self._unsure(text)
        if has("cleanup", text) and not has("why", text) and not reads.is_how(text):
            names = self._names(self.context.jobs and tuple(job.name for job in self.context.jobs))
            slots: dict[str, Any] = {
                name: value for name, value in figures.resources(self.said).items() if name == "gpu"
            }
            state = _state_word(text)
            return self._ask("cleanup", slots | ({"state": state} if state else {}), names=names)
        if negated and not reads.find(self.said, text):
            return self._left_alone(text)
        return None

    def _only_order(self, found: orders.Orders) -> bool:
        return not any(re.search(f"[{COMMAND}]", clause) for clause in found.rest) and not any(
            has("again", one) for one in found.rest
        )

    def _ordered(self, found: orders.Orders, text: str) -> Understood:
        verbs = {order.verb for order in found.given}
        verb: orders.Verb = "stop+delete" if len(verbs) > 1 else next(iter(verbs))
        clause = " ".join(order.clause for order in found.given)
        hedge = orders.hedged(found.rest)
        called = spelled(self.said, self.context, clause)
        meant = called or self._pointed_at(found, clause)
        others = {n for rest in found.rest for p in self.said.of(JOB, rest) for n in p.names}
        others -= set(called.names if called else ())
        if hedge or (others and any(order.whole for order in found.given)):
            slots = {"job": meant.one} if meant.one else {}
            condition = figures.stop_if(text)
            return self._ask(
                "stop_or_not", slots | ({"stop_if": condition} if condition else {}), job=meant.one or "NAME"
            )
        if meant.wild:
            return self._ask("wild", {}, verb, meant.names, names=self._names(meant.names))
        if meant.unknown:
            return self._unknown(meant, verb)
        if verb == "stop":
            return self._stop(meant, any(order.whole for order in found.given))
        return self._delete(meant, verb)

    def _pointed_at(self, found: orders.Orders, clause: str) -> Meant:
        """The run of an order without a name: named beside it, of the state it tells, or the only live one."""
        if any(order.whole for order in found.given):
            return Meant(self.context.live)
        beside = spelled(self.said, self.context, " ".join(found.rest))
        if beside is not None and (beside.names or beside.unknown):
            return beside
        of_state = by_state(re.sub(pattern("stop").pattern, " ", clause), self.context)
        return Meant(of_state if of_state is not None else self.context.live)

    def _stop(self, meant: Meant, whole: bool) -> Understood:
        live = tuple(name for name in meant.names if name in self.context.live)
        if not meant.names:
            return self._moot("stop", "nothing_live")
        if not live:
            job = ",".join(meant.names)
            return self._moot(
                "stop", "not_live", {"job": job}, job=job, state=self.context.state_of(meant.names[0])
            )
        if len(live) > 1 and not (meant.named and not whole):
            return self._ask("which_stop", {}, "stop", live, names=self._names(live))
        job = ",".join(live)
        return Understood(intent="stop", slots={"job": job}, reply=self._say("stop", job=job))

    def _delete(self, meant: Meant, verb: orders.Verb) -> Understood:
        if not meant.named or meant.loose:
            ended = tuple(job.name for job in self.context.jobs if job.name not in self.context.live)
            return self._ask(
                "which_delete", {}, verb, meant.names or ended, names=self._names(meant.names or ended)
            )
        job = ",".join(meant.names)
        live = [name for name in meant.names if name in self.context.live]
        if live and verb == "delete":
            return self._ask("still_live", {"job": job}, "delete", job=job)
        return Understood(intent=verb, slots={"job": job}, reply=self._say(verb, job=job))

    def _unknown(self, meant: Meant, verb: orders.Verb) -> Understood:
        unknown = ", ".join(meant.unknown)
        near = meant.near or meant.names
        if near:
            return self._ask("did_you_mean", {}, verb, near, unknown=unknown, names=self._names(near))
        return self._moot(verb, "no_such_run", {"job": unknown}, unknown=unknown)

    def _wonders_about_stopping(self, text: str, found: orders.Orders) -> bool:
        """Stopping is spoken of with a condition or a doubt, or in words that are nearly an order."""
        if not has("stop", text) and not has("delete", text):
            return False
        if has("why", text) or reads.is_how(text) or reads.asks_whether_over(text):
            return False
        if found.tried is not None:
            other = " ".join(clause for clause in found.rest if not has(found.tried, clause))
            return not other or reads.find(self.said, other) in (None, "help")
        suggests = re.search(
            r"(?:停|杀|删|关)掉?(?:吗|么|不[停杀删关])|(?<![a-z])(?:should|shall|maybe|perhaps|might|let|want|wants|think|thinking|could|can (?:it|i|we)|may i)(?![a-z])|要不|该|考虑|想|可以|能|吧",
            text,
        )
        return (
            bool(suggests)
            or has("condition", text)
            or bool(re.fullmatch(rf"[{NAMES} 都全也它任务那个这]*(?:停|杀|关|取消)了?[ !.~啊呀]*", text))
        )

    def _unsure(self, text: str) -> Understood:
        """Stopping or deleting is meant in some way; whether now and what is asked back."""
        found = orders.find(text)
        meant = spelled(self.said, self.context) or Meant(self.context.live)
        condition = figures.stop_if(text) or ("end of epoch" if re.search(r"epoch|轮", text) else "")
        slots = ({"job": meant.one} if meant.one else {}) | ({"stop_if": condition} if condition else {})
        verb: Intent = "unclear"
        object_said = re.search(rf"[{NAMES}]|(?<![a-z])(?:it|them|job|run|this|that)(?![a-z])|它|任务", text)
        if (
            found.tried
            and not has("condition", text)
            and object_said
            and "?" not in text
            and not has("hedge", text)
        ):
            verb = found.tried
            if meant.unknown and not meant.names:
                return self._unknown(meant, verb)
            if verb == "delete":
                return self._ask("confirm_delete", slots, verb, meant.names, job=meant.one or "NAME")
        if condition or has("condition", text):
            return self._ask("stop_or_not", slots, verb, job=meant.one or "NAME")
        return self._ask("stop_unsure", slots, verb, meant.names, job=meant.one or "NAME")

    def _left_alone(self, text: str) -> Understood:
        """A negated order is an order to leave things as they are; nothing needs to be asked, unless it is a question."""
        meant = spelled(self.said, self.context) or Meant(self.context.live)
        slots = {"job": meant.one} if meant.one else {}
        if "?" in text:
            return self._ask("stop_unsure", slots, job=meant.one or "NAME")
        key = "left" if meant.one else "left_all"
        return Understood(intent="unclear", slots=slots, reply=self._say(key, job=meant.one))

    # --- runs ----------------------------------------------------------------------------------------------------

    def _asks_about(self, text: str, ask: runs.Ask) -> bool:
        """The message speaks of running only to ask something else: what is free, how it is done, how it went."""
        if ask.what in ("again", "restart"):
            return bool(
                has("why", text)
                or reads.is_how(text)
                or (has("failure", text) and not has("run", text) and "?" in text)
            )
        if reads.is_how(text) or (has("why", text) and not ask.clean):
            return True
        if ask.what == "nothing":
            return reads.find(self.said, text) in (
                "capacity",
                "list",
                "why",
                "events",
                "library",
                "tail",
                "status",
            ) and ("?" in text or not runs.leads(text))
        if re.match(
            r"(?:so |and |hey |ok )*(?:is|was|did|has|have|does|can|will|would|could)(?! (?:you|u|ya)(?![a-z]))(?![a-z])",
            text,
        ):
            return True
        if ask.clean:
            return False
        about = has("hypothetical", text) and not has("polite_question", text)
        return bool(about) and not re.search(r"(?<![a-z])(?:should|shall)(?![a-z])|要不要|该", text)

    def _run(self, ask: runs.Ask, text: str) -> Understood:
        slots = {name: value for name, value in ask.slots.items() if not name.startswith("_")}
        if ask.what == "again":
            return self._again(ask, slots)
        if ask.what == "restart":
            return self._restart(slots)
        intent: Intent = "submit_only" if ask.slots.get("_submit_only") else "run"
        if ask.what == "nothing":
            if runs.is_pronoun_only(text):
                return self._ask("run_it")
            return self._ask("what_to_run", slots, intent)
        command = str(slots.get("command") or slots.get("request"))[:COMMAND_CHARS]
        if ask.what == "bare" or not ask.clean:
            return self._ask("run_now", slots, intent, command=command)
        key = (
            "predict_only"
            if slots.get("predict_only")
            else "run_file"
            if "request" in slots and intent == "run"
            else intent
        )
        more = self._say("left_over", left=ask.left) if ask.left else ""
        return Understood(
            intent=intent, slots=slots, reply=f"{self._say(key, command=command)} {more}".strip()
        )

    def _again(self, ask: runs.Ask, slots: dict[str, Any]) -> Understood:
        meant = spelled(self.said, self.context)
        text = self.said.text
        if meant is None:
            of_state = by_state(pattern("again").sub(" ", text), self.context)
            names = of_state if of_state is not None else tuple(job.name for job in self.context.jobs)
            meant = Meant(names)
        if meant.unknown:
            return self._ask(
                "did_you_mean",
                {},
                "run",
                meant.near,
                unknown=", ".join(meant.unknown),
                names=self._names(meant.near),
            )
        if not meant.names:
            return self._ask("run_it")
        if not meant.one:
            return self._ask("again_which", {}, "run", meant.names, names=self._names(meant.names))
        if meant.one in self.context.live:
            return self._ask("again_live", {"again_of": meant.one}, "run", job=meant.one)
        if not ask.clean or ask.left:
            return self._ask(
                "again_changed", {"again_of": meant.one}, "run", job=meant.one, left=ask.left or "?"
            )
        return Understood(
            intent="run", slots=slots | {"again_of": meant.one}, reply=self._say("again", job=meant.one)
        )

    def _restart(self, slots: dict[str, Any]) -> Understood:
        meant = spelled(self.said, self.context) or Meant(tuple(job.name for job in self.context.jobs))
        if "?" in self.said.text and reads.asks_whether_over(self.said.text):
            return self._rest()
        return self._ask("restart", {"job": meant.one} if meant.one else {}, job=meant.one or "NAME")

    # --- reads and the rest -------------------------------------------------------------------------------------

    def _rest(self) -> Understood:
        text, _ = orders.without_negated(self.said.text)
        slip = slips.find(self.said, text)
        if slip is not None:
            return self._slip(slip)
        reader = Reader(self.said, self.context, self.language)
        courtesy = re.fullmatch(rf"(?:{pattern('courtesy').pattern}|[\W吧啊呀啦的了])++", text)
        if courtesy and not re.search(r"(?<![a-z])(?:hi|hello|hey)(?![a-z])|你好|您好", text):
            return Understood(intent="unclear", reply=self._say("courtesy"))
        if courtesy:
            return Understood(intent="help", reply=self._say("help"))
        intent = reads.find(self.said, text)
        if intent is not None:
            return reader.worded(intent, text)
        if has("never_mind", text):
            return Understood(intent="unclear", reply=self._say("left_all"))
        if re.fullmatch(rf"[{JOB}{UNKNOWN}\W]+", text) and self.said.of(JOB + UNKNOWN):
            return reader.worded("status", text)
        if re.fullmatch(rf"(?:{pattern('yes').pattern}|{pattern('no').pattern}|[\W])++", text):
            return self._yes_or_no()
        if self.said.of(VALUE) and not re.sub(rf"[{VALUE}\W]", "", text):
            return self._ask("unclear")
        return self._ask("unclear")

    def _slip(self, slip: slips.Slip) -> Understood:
        meant = spelled(self.said, self.context) or Meant(self.context.live)
        slots = {"job": meant.one} if meant.one else {}
        if slip.sure and slip.intent not in ("stop", "delete"):
            return Reader(self.said, self.context, self.language).worded(slip.intent, slip.word)
        return self._ask("typo", slots, slip.intent, word=slip.word, job=meant.one)

    # --- words ---------------------------------------------------------------------------------------------------

    def _say(self, key: str, **facts: Any) -> str:
        return say(key, self.language, **facts)

    def _names(self, names: tuple[str, ...]) -> str:
        return ", ".join(names[:8])

    def _ask(
        self,
        key: str,
        slots: dict[str, Any] | None = None,
        intent: Intent = "unclear",
        choices: tuple[str, ...] = (),
        **facts: Any,
    ) -> Understood:
        return Understood(
            intent=intent, slots=slots or {}, ask_back=True, reply=self._say(key, **facts), choices=choices
        )

    def _moot(
        self, intent: Intent, key: str, slots: dict[str, Any] | None = None, **facts: Any
    ) -> Understood:
        return Understood(intent=intent, slots=slots or {}, moot=True, reply=self._say(key, **facts))


def _options(question: Asked) -> str:
    """`Q-7: [1] keep running (default), [2] stop it`, in the words of its first language."""
    shown = [
        f"[{number}] {option.texts[0] if option.texts else option.key}{' *' if number == question.default else ''}"
        for number, option in enumerate(question.options, start=1)
    ]
    return f"{question.id}: {', '.join(shown)}."


def _state_word(text: str) -> Literal["failed", "queued", "done", "running", ""]:
    for state in ("failed", "queued", "done", "running"):
        if has(f"state_{state}", text):
            return state  # type: ignore[return-value]
    return ""
