"""Every question that can be put to a person: what is blocked, the options, the safe default, the deadline.

The first six are the seed's (RULES G7, word for word in their defaults); the others are this product's own. A
question is stored as its kind and facts, and worded when shown, so both languages come from one record.
A default is always the action that loses least; no default stops a job, and none starts a second one.

Never: ask for a credential (B6); offer an option that no act stands behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import Field

from states.reading import Frozen, Quote

Language = Literal["en", "zh"]


class Act(StrEnum):
    """What choosing an option does. The machine's table knows these words and no others."""

    give_up = "give_up"
    """End the run without submitting."""
    recheck = "recheck"
    """The person has mended something outside: look again."""
    set_value = "set_value"
    """Put the given value into the spec field, then check again."""
    go_on = "go_on"
    """Go on in spite of it (queue and wait, without the network, with the command as it is)."""
    keep = "keep"
    """Leave the job as it is and go on watching."""
    stop = "stop"
    build = "build"
    """Build a complete environment in the workspace by a preparation run."""
    resend = "resend"
    """Submit once more under the same name."""


class Option(NamedTuple):
    """One choice. value: None, or what a free-text value fills (a spec field)."""

    key: str
    act: Act
    en: str
    zh: str
    value: str = ""


class Template(NamedTuple):
    """A kind of question. deadline: the policy number that sets it; rule: where it comes from."""

    rule: str
    en: str
    zh: str
    options: tuple[Option, ...]
    default: str
    deadline: Literal["answer_s", "answer_s_no_submit", "answer_s_queue"]


class Status(StrEnum):
    """open until answered, defaulted at the deadline, or withdrawn because it no longer matters."""

    open = "open"
    answered = "answered"
    defaulted = "defaulted"
    withdrawn = "withdrawn"


class Question(Frozen):
    """One question that was asked. topic: the cause it is asked once for (G5).

    number: 1-based within its job; `id` = `<job id>/<number>`. chosen/value: the answer or the default.
    """

    id: str
    number: int
    kind: str
    topic: str
    asked_at: datetime
    answer_by: datetime
    facts: dict[str, str] = Field(default_factory=dict)
    evidence: tuple[Quote, ...] = ()
    status: Status = Status.open
    chosen: str = ""
    value: str = ""
    by: str = ""
    preset: str = ""
    """The option that is carried out without an answer, where it is not the template's: key, value, and why."""
    preset_value: str = ""
    preset_by: str = ""
    deadline_by: str = ""
    """Whose order set the deadline; "" for the policy."""
    closed_at: datetime | None = None
    closed_why: str = ""

    @property
    def is_open(self) -> bool:
        return self.status is Status.open

    @property
    def template(self) -> Template:
        return QUESTIONS[self.kind]

    @property
    def default(self) -> Option:
        """What is carried out without an answer."""
        return self.option(self.preset or self.template.default)

    def option(self, key: str) -> Option:
        """The option with this key. KeyError when it has none."""
        for option in self.template.options:
            if option.key == key:
                return option
        raise KeyError(key)


_RECHECK = Option("again", Act.recheck, "I have mended it: check again", "已处理, 重新检查")
_GIVE_UP = Option("dont-submit", Act.give_up, "don't submit", "不提交")
_KEEP = Option("keep", Act.keep, "keep it running", "继续运行")
_WAIT = Option("wait", Act.keep, "keep waiting", "继续等待")
_STOP = Option("stop", Act.stop, "stop it", "停止")

QUESTIONS: Mapping[str, Template] = {
    "image": Template(
        "C5",
        "Which container image should {name} run on? {why}",
        "{name} 用哪个镜像? {why}",
        (Option("image", Act.set_value, "use this image", "用这个镜像", "image"), _RECHECK, _GIVE_UP),
        "dont-submit",
        "answer_s_no_submit",
    ),
    "environment": Template(
        "C6",
        "{name} has no usable environment: {why} Is there an image or an environment to point at?",
        "{name} 没有可用的环境: {why} 有现成的镜像或环境吗?",
        (
            Option(
                "environment",
                Act.set_value,
                "use the environment at this path",
                "用这个路径的环境",
                "environment",
            ),
            Option("image", Act.set_value, "use this image, which has it", "用自带环境的镜像", "image"),
            Option("build", Act.build, "build a complete one in the workspace", "在工作区里建一个完整的环境"),
            _GIVE_UP,
        ),
        "build",
        "answer_s",
    ),
    "network": Template(
        "C7",
        "{name} cannot get through to the network: {why} Is there a working proxy?",
        "{name} 的网络不通: {why} 有可用的代理吗?",
        (
            Option("proxy", Act.set_value, "use this proxy", "用这个代理", "proxy"),
            Option("without", Act.go_on, "go on without the network", "不用网络, 继续"),
            _STOP,
        ),
        "without",
        "answer_s",
    ),
    "download": Template(
        "E11",
        "A download in {name} drags on: {why} Keep waiting, or is there a copy on a cluster path?",
        "{name} 的下载很慢: {why} 继续等, 还是集群上已有一份?",
        (
            Option("wait", Act.keep, "keep waiting", "继续等待"),
            Option("path", Act.set_value, "use this cluster path instead", "改用这个集群路径", "mounts"),
            Option("without", Act.stop, "stop the download and go on without it", "停止下载, 不用它"),
        ),
        "without",
        "answer_s",
    ),
    "capacity": Template(
        "C3",
        "{name} asks for more than is free now: {why} Wait, or reduce?",
        "{name} 要的资源现在不够: {why} 等待, 还是减少?",
        (
            Option("wait", Act.go_on, "queue and wait", "排队等待"),
            Option(
                "reduce",
                Act.set_value,
                "reduce to this many GPUs per replica",
                "减少到每个副本这么多卡",
                "gpu",
            ),
            _GIVE_UP,
        ),
        "wait",
        "answer_s_queue",
    ),
    "looks-off": Template(
        "E9",
        "{name} may be going wrong: {why} Keep it running or stop it?",
        "{name} 可能有问题: {why} 继续运行还是停止?",
        (_KEEP, _STOP),
        "keep",
        "answer_s",
    ),
    "credentials": Template(
        "B1",
        "{name} waits for its credentials: {why}",
        "{name} 缺少凭证: {why}",
        (_RECHECK, _GIVE_UP),
        "dont-submit",
        "answer_s_no_submit",
    ),
    "command": Template(
        "C11",
        "The command of {name} looks wrong: {why} Submit it as it is?",
        "{name} 的命令看起来不对: {why} 仍按原样提交?",
        (Option("as-is", Act.go_on, "submit it as it is", "按原样提交"), _RECHECK, _GIVE_UP),
        "dont-submit",
        "answer_s_no_submit",
    ),
    "assets": Template(
        "D1",
        "{name} needs something that is not in place: {why}",
        "{name} 需要的东西还没有就位: {why}",
        (_RECHECK, Option("as-is", Act.go_on, "submit it all the same", "仍然提交"), _GIVE_UP),
        "dont-submit",
        "answer_s_no_submit",
    ),
    "light": Template(
        "C1",
        "{name} looks like a light, quick step: {why} Run it on the cluster all the same?",
        "{name} 看起来很轻: {why} 仍然放到集群上跑?",
        (Option("as-is", Act.go_on, "run it on the cluster", "放到集群上跑"), _GIVE_UP),
        "dont-submit",
        "answer_s_no_submit",
    ),
    "smoke-failed": Template(
        "D4",
        "The smoke run of {name} failed, so the real run was not submitted: {why}",
        "{name} 的试跑失败, 正式任务没有提交: {why}",
        (
            Option("again", Act.recheck, "I have mended it: run the smoke check again", "已处理, 重新试跑"),
            Option("as-is", Act.go_on, "submit the real run all the same", "仍然提交正式任务"),
            _GIVE_UP,
        ),
        "dont-submit",
        "answer_s_no_submit",
    ),
    "rejected": Template(
        "I1",
        "The cluster refused {name}: {why}",
        "集群拒绝了 {name}: {why}",
        (Option("again", Act.resend, "I have mended it: submit again", "已处理, 再次提交"), _GIVE_UP),
        "dont-submit",
        "answer_s_no_submit",
    ),
    "unsettled": Template(
        "I1",
        "It is not known whether {name} was submitted: {why} Keep looking, or submit again?",
        "不清楚 {name} 是否已提交: {why} 继续查找, 还是再次提交?",
        (
            Option("look", Act.keep, "keep looking, don't submit", "继续查找, 不提交"),
            Option("again", Act.resend, "it is not there: submit again", "确认不存在, 再次提交"),
            _GIVE_UP,
        ),
        "look",
        "answer_s",
    ),
    "twins": Template(
        "I1",
        "Two jobs of {name} run at once: {why} The first is the one that is watched. Stop the other one?",
        "{name} 有两个任务同时在跑: {why} 正在看护的是前一个。停止另一个吗?",
        (
            Option("keep-both", Act.keep, "leave both", "都保留"),
            Option("stop-other", Act.go_on, "stop the other one", "停止另一个"),
        ),
        "keep-both",
        "answer_s",
    ),
    "held": Template(
        "E3",
        "{name} is held and will not start by itself: {why}",
        "{name} 被挂起, 不会自己开始: {why}",
        (_WAIT, _STOP),
        "wait",
        "answer_s",
    ),
    "never-fits": Template(
        "C3",
        "{name} can never start as it was asked for: {why}",
        "{name} 按现在的要求永远不会开始: {why}",
        (_WAIT, _STOP),
        "wait",
        "answer_s",
    ),
    "waits-long": Template(
        "E1",
        "{name} has been waiting for long: {why} Go on waiting?",
        "{name} 等了很久: {why} 继续等吗?",
        (_WAIT, _STOP),
        "wait",
        "answer_s",
    ),
    "unreachable": Template(
        "E9",
        "The cluster of {name} has not answered for long: {why} Keep waiting?",
        "{name} 所在的集群很久没有回应: {why} 继续等吗?",
        (_WAIT,),
        "wait",
        "answer_s",
    ),
    "clear-case": Template(
        "A10",
        "{name} (handed over to be watched) looks lost: {why} Stop it?",
        "{name} (受托看护) 看来已无希望: {why} 停止吗?",
        (_KEEP, _STOP),
        "keep",
        "answer_s",
    ),
}


def worded(question: Question, language: Language = "en") -> str:
    """The question as one paragraph in the person's language."""
    template = question.template
    return (template.zh if language == "zh" else template.en).format_map(_Facts(question.facts)).strip()


def option_text(option: Option, language: Language = "en") -> str:
    return option.zh if language == "zh" else option.en


class _Facts(dict[str, str]):
    """Facts for wording: a missing one is left out of the sentence, never an error in the night."""

    def __missing__(self, key: str) -> str:
        return ""
