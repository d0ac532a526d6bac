"""A message and its world to a reading: answers first, then orders, runs and reads; what is none is asked back.

Never: an act that the message does not order in so many words.
"""

from __future__ import annotations

import re

from states.chat import answers, orders, reads, runs, slips
from states.chat.context import Asked, Context
from states.chat.marked import COMMAND, JOB, UNKNOWN, Marked, marked
from states.chat.of_orders import Orderer
from states.chat.of_reads import Reader
from states.chat.of_runs import Runner
from states.chat.referents import Meant, spelled
from states.chat.replies import say
from states.chat.speaker import Speaker
from states.chat.understood import Intent, Understood
from states.chat.vocabulary import has, pattern
from states.questions import Language

_FORGED = re.compile(
    r"^[ \t]{0,8}[\[<#*|({]{0,4}[ \t]?(?:system|assistant|user|human|bot|ai|tool|developer|admin|moderator"
    r"|watchkeeper|agent|model|root|operator|系统|助手|用户|管理员|机器人)[ \t]?(?:message|prompt|note|消息|提示)?"
    r"[ \t]?(?:[\])>|*}]{0,4}[ \t]?[:：]|(?<=[a-z])[\]>])|<\|\w{1,20}\|>|\[/?inst\]"
    r"|^[ \t]{0,8}###[ \t]?\w{1,20}[ \t]?:",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that begins with another's name, as a pasted or forged conversation does."""


def understand(message: str, context: Context) -> Understood:
    """The reading of one message. Raises nothing, whatever the text."""
    said = marked(message, context)
    language: Language = (
        "zh" if said.chinese else "en" if re.search(r"[a-z]", message.lower()) else context.language
    )
    found = _Mind(said, context, language).read()
    if said.secret:
        # What was asked is told, so that it can be asked again without the value; nothing of it is carried out (B6).
        intent: Intent = "help" if found.intent == "unclear" else found.intent
        return Understood(intent=intent, slots={"refused": "credential"}, reply=say("credential", language))
    return found


class _Mind(Speaker):
    """One message being read."""

    def __init__(self, said: Marked, context: Context, language: Language) -> None:
        super().__init__(said, context, language)
        self.orderer = Orderer(said, context, language)
        self.runner = Runner(said, context, language)
        self.reader = Reader(said, context, language)

    def read(self) -> Understood:
        """Try the readings in their order."""
        if self.said.crowded:
            return self.ask("too_long")
        if not re.search(r"\w|\?|[\ue100-\uf8ff]", self.said.text):
            return self._yes_or_no() if "👍" in self.said.raw else self.ask("nothing_said")
        if _FORGED.search(self.said.raw):
            return self.ask("forged")
        answer = answers.find(self.said, self.context)
        if answer is not None:
            return self._answer(answer)
        text, negated = orders.without_negated(self.said.text)
        return self._order_or_run(text, negated) or self._read(text)

    def _answer(self, answer: answers.Answer) -> Understood:
        wanted = answer.slots.get("question", "").split(",")
        asked = [question for question in self.context.questions if question.id in wanted]
        names = ", ".join(question.id for question in (asked or self.context.open)) or "-"
        options = " ".join(map(_options, asked or self.context.open))
        if answer.doubt is not None:
            return self.ask(answer.doubt, names=names, options=options)
        choice = answer.slots.get("value") or answer.slots.get("option")
        key = "answer_late" if answer.late else "answer_invalid" if answer.invalid else "answer"
        reply = self.say(key, question=names, choice=choice, options=options)
        return Understood(
            intent="answer", slots=answer.slots, moot=answer.late or answer.invalid, reply=reply
        )

    def _yes_or_no(self) -> Understood:
        return self._answer(answers.Answer(doubt="which_option" if self.context.open else "no_question"))

    def _order_or_run(self, text: str, negated: bool) -> Understood | None:
        found = orders.find(text)
        ask = runs.find(self.said._replace(text=text))
        if found.given:
            also_runs = any(re.search(f"[{COMMAND}]", rest) or has("again", rest) for rest in found.rest)
            if ask is not None and ask.what in ("run", "again", "bare") and also_runs:
                return self.ask("one_thing")
            return self.orderer.ordered(found, text)
        if negated and ask is not None and ask.what in ("bare", "nothing"):
            return self.orderer.left_alone(text)
        if ask is not None and not self.runner.asks_about(text, ask):
            return self.runner.run(ask, text)
        if self.orderer.wonders(text, found):
            return self.orderer.unsure(text, found)
        if has("cleanup", text) and not has("why", text) and not reads.is_how(text):
            return self.orderer.cleanup(text)
        if negated and not reads.find(self.said, text):
            return self.orderer.left_alone(text)
        return None

    def _read(self, text: str) -> Understood:
        slip = slips.find(self.said, text)
        if slip is not None:
            return self._slip(slip)
        if re.fullmatch(rf"(?:{pattern('courtesy').pattern}|[\W吧啊呀啦的了])++", text):
            greets = re.search(r"(?<![a-z])(?:hi|hello|hey)(?![a-z])|你好|您好", text)
            key = "help" if greets else "courtesy"
            return Understood(intent="help" if greets else "unclear", reply=self.say(key))
        intent = reads.find(self.said, text)
        if intent is not None:
            return self.reader.worded(intent, text)
        if has("never_mind", text):
            return Understood(intent="unclear", reply=self.say("left_all"))
        if self.said.of(JOB + UNKNOWN) and re.fullmatch(rf"[{JOB}{UNKNOWN}\W]+", text):
            return self.reader.worded("status", text)
        if re.fullmatch(rf"(?:{pattern('yes').pattern}|{pattern('no').pattern}|[\W])++", text):
            return self._yes_or_no()
        return self.ask("unclear")

    def _slip(self, slip: slips.Slip) -> Understood:
        if slip.sure and slip.intent not in ("stop", "delete"):
            return self.reader.worded(slip.intent, slip.word)
        meant = spelled(self.said, self.context) or Meant(self.context.live)
        slots = {"job": meant.one} if meant.one else {}
        return self.ask("typo", slots, slip.intent, word=slip.word, job=meant.one)


def _options(question: Asked) -> str:
    """`Q-7: [1] keep running *, [2] stop it.`, the default marked, in the words of the options' first language."""
    shown = [
        f"[{number}] {option.texts[0] if option.texts else option.key}{' *' if number == question.default else ''}"
        for number, option in enumerate(question.options, start=1)
    ]
    return f"{question.id}: {', '.join(shown)}."
