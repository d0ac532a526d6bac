"""The slots of a read: which run, how many lines, of which state; and whether one of several must be chosen first.

A read of all is harmless and needs no choice (`status`); a log, the events or a cause belong to one run.

Never: a name that neither the message nor the context holds.
"""

from __future__ import annotations

import re
from typing import Any

from states.chat import figures
from states.chat.marked import VALUE
from states.chat.referents import Meant, by_state, failed, for_reading, spelled
from states.chat.speaker import Speaker
from states.chat.understood import Intent, Understood
from states.chat.vocabulary import has

LINES_MAX = 2000
_CREDENTIALS = re.compile(r"key|credential|ak ?/?sk|login|secret|密钥|凭证|ak ?sk", re.ASCII)
_GROUPS = re.compile(r"groups?|namespaces?|分区|命名空间|哪些组|quota", re.ASCII)
_FAILING = re.compile(
    r"(?<![a-z])(?:die|died|dead|fail|failed|failing|crash|crashed|broke|killed|oom"
    r"|errors?|traceback|wrong|exit\w*)(?![a-z])|挂|死|失败|崩|炸|报错|错误|oom|显存"
    r"|退出",
    re.ASCII,
)
_OF_LIVE = re.compile(
    r"slow|pending|queued|queue|stuck|waiting|start|still|hang|慢|排队|没起|卡|等|还没", re.ASCII
)
_PURPOSES = re.compile(
    r"评测|训练|预训练|微调|推理|(?<![a-z])(?:sft|rl|rlhf|eval|evals|evaluation"
    r"|pretrain\w*|training|inference|dpo|ppo|vit|coco)(?![a-z])",
    re.ASCII,
)
_FIELDS = (
    ("image", r"images?|docker|镜像"),
    ("network", r"prox(?:y|ies)|network|代理|网络"),
    ("environment", r"env|envs|environments?|conda|环境"),
    ("path", r"paths?|where|data|datasets?|weights?|路径|数据|权重"),
)


class Reader(Speaker):
    """Turns a read of one message into its reading."""

    def worded(self, intent: Intent, text: str) -> Understood:
        """The reading for this intent. text: the masked message without negated orders."""
        match intent:
            case "help":
                return self._help(text)
            case "capacity":
                return self._capacity()
            case "list":
                return self._list(text)
            case "library":
                return self._library(text)
            case "watch":
                return self._watch(text)
            case "tail" | "events" | "why":
                return self._of_one(intent, text)
            case _:
                return self._of_any(intent, text)

    def _help(self, text: str) -> Understood:
        if _CREDENTIALS.search(text):
            return Understood(
                intent="help", slots={"topic": "credentials"}, reply=self.say("credentials_help")
            )
        key = "groups" if _GROUPS.search(text) else "help"
        return Understood(intent="help", reply=self.say(key))

    def _capacity(self) -> Understood:
        slots = figures.resources(self.said)
        slots = {
            name: value
            for name, value in slots.items()
            if name in ("gpu", "replicas", "cpu", "group", "gpu_type")
        }
        kinds = (("gpu", r"gpus?|cards?|卡"), ("cpu", r"cpus?|cores?|核"), ("memory", r"memory|ram|内存"))
        found = [kind for kind, words in kinds if re.search(words, self.said.text)]
        if found and not slots:
            slots["kind"] = found[0]
        return Understood(intent="capacity", slots=slots)

    def _list(self, text: str) -> Understood:
        slots: dict[str, Any] = {}
        for state in ("queued", "failed", "running", "done"):
            if has(f"state_{state}", text):
                slots["state"] = state
                break
        if re.search(r"空闲(?:任务|作业)|idle (?:jobs?|runs?|tasks?)", text):
            return Understood(
                intent="unclear",
                slots=slots | {"lane": "idle"},
                ask_back=True,
                reply=self.say("idle_or_free"),
            )
        lane = figures.lane_of(text)
        slots |= {"lane": lane} if lane else {}
        if re.search(r"questions?|问题|need(?: from)?|waiting for", text):
            slots = {"what": "questions"}
        return Understood(intent="list", slots=slots)

    def _library(self, text: str) -> Understood:
        slots: dict[str, Any] = {}
        values = [piece.text for piece in self.said.of(VALUE)]
        for value in values:
            slots["image" if figures.is_image(value) else "proxy" if "://" in value else "path"] = value
        field = next(
            (field for field, words in _FIELDS if re.search(rf"(?<![a-z])(?:{words})(?![a-z])", text)), ""
        )
        if not values and field:
            slots["field"] = field
        purpose = _PURPOSES.search(text)
        if purpose:
            slots["purpose"] = purpose[0]
        if has("library_forget", text):
            if not values:
                return self.ask("which_entry", slots, "library")
            return Understood(intent="library", slots=slots | {"forget": True})
        if has("library_record", text) and "?" not in text:
            if not values:
                return self.ask("what_to_remember", slots | {"record": True}, "library")
            slots["record"] = True
        return Understood(intent="library", slots=slots)

    def _watch(self, text: str) -> Understood:
        meant = spelled(self.said, self.context)
        if meant is not None and len(meant.unknown) == 1 and not meant.names:
            if meant.near:
                return self._which("watch", meant.near)
            job = meant.unknown[0]
            return Understood(intent="watch", slots={"job": job}, reply=self.say("watch", job=job))
        names = (meant or Meant(self.context.live)).names
        key = "watched" if names else "nothing_live"
        job = ",".join(names)
        return Understood(
            intent="unclear",
            slots={"job": job} if job else {},
            reply=self.say(key, job=job.replace(",", ", ")),
        )

    def _of_any(self, intent: Intent, text: str) -> Understood:
        """A read that may as well show several runs."""
        meant = spelled(self.said, self.context)
        if meant is None:
            of_state = (
                by_state(text, self.context)
                if re.search(r"(?<![a-z])(?:the|my|which|that) \w+ (?:one|job|run)|那个|的任务", text)
                else None
            )
            names = of_state if of_state else for_reading(self.context)
            if has("deleted", text) and not has("status_word", text):
                return self._which(intent, names)
            return self._any(intent, names)
        if meant.unknown and not meant.names:
            if len(meant.near) == 1:
                return self._any(intent, meant.near)
            unknown = ", ".join(meant.unknown)
            return Understood(
                intent=intent,
                slots={"job": unknown},
                moot=True,
                reply=self.say("no_such_run", unknown=unknown),
            )
        return Understood(intent=intent, slots={"job": ",".join(meant.names)})

    def _any(self, intent: Intent, names: tuple[str, ...]) -> Understood:
        if not names:
            return Understood(intent=intent, moot=True, reply=self.say("no_runs"))
        return Understood(intent=intent, slots={"job": names[0] if len(names) == 1 else "*"}, reply="")

    def _of_one(self, intent: Intent, text: str) -> Understood:
        """A read that is about one run."""
        slots: dict[str, Any] = {}
        if intent == "tail":
            lines = figures.lines_of(self.said.text)
            if lines is not None and lines <= 0:
                named = self._named_only() if lines else {}
                return self.ask("lines", named | {"lines": lines}, "tail")
            slots |= {"lines": lines} if lines is not None else {}
            if re.search(r"(?<![a-z])(?:-f|follow|live|stream|streaming|keep)(?![a-z])|实时|持续|滚动", text):
                slots["follow"] = True
        meant = spelled(self.said, self.context)
        if meant is not None and meant.unknown and not meant.names:
            if len(meant.near) == 1:
                return Understood(intent=intent, slots=slots | {"job": meant.near[0]}, reply="")
            unknown = ", ".join(meant.unknown)
            return Understood(
                intent=intent,
                slots=slots | {"job": unknown},
                moot=True,
                reply=self.say("no_such_run", unknown=unknown),
            )
        names = meant.names if meant is not None else self._candidates(intent, text)
        if len(names) > 1:
            return self._which(intent, names, slots)
        if not names:
            return Understood(intent=intent, slots=slots, moot=True, reply=self.say("no_runs"))
        closed = [question.id for question in self.context.questions if question.job == names[0]]
        if intent == "why" and closed and re.search(r"who|谁|keep|继续|question|问题", text):
            slots["question"] = closed[0]
        return Understood(intent=intent, slots=slots | {"job": names[0]})

    def _named_only(self) -> dict[str, Any]:
        meant = spelled(self.said, self.context) or Meant(for_reading(self.context))
        return {"job": meant.one} if meant.one else {}

    def _candidates(self, intent: Intent, text: str) -> tuple[str, ...]:
        """The runs that a log, events or a cause without a name may belong to."""
        dead = failed(self.context)
        if dead and (
            _FAILING.search(text) or (intent == "why" and not _OF_LIVE.search(text) and len(dead) == 1)
        ):
            return dead
        if re.search(r"(?<![a-z])(?:the|my|that) \w+ (?:one|job|run)|那个|的任务", text):
            return by_state(text, self.context) or for_reading(self.context)
        return for_reading(self.context)

    def _which(
        self, intent: Intent, names: tuple[str, ...], slots: dict[str, Any] | None = None
    ) -> Understood:
        return self.ask("which_read" if names else "no_runs", slots or {}, intent, names)
