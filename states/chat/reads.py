"""What a message asks to be shown: the first of an ordered list of readings that fits.

The order is from what says most of itself (help, why, the library) to what says least (status, a look). Reads do no
harm, so they are read generously: the person sees at once if another was meant.

Never: an order; a read that answers nothing that was said.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from states.chat.marked import GROUP, NAMES, QUOTE, VALUE, Marked
from states.chat.understood import Intent
from states.chat.vocabulary import has, pattern, source

_NAME = re.compile(f"[{NAMES}]")
_HELP_ALONE = re.compile(
    rf"(?:{source('opening')} ?)*+(?:help(?: me)?|/help|\?+|帮助|救命|menu|man|-h|--help)[ !.?]*", re.ASCII
)
_OVER = re.compile(
    r"(?:did|has|is|was|have|had|does)(?:n't)? .*(?:die|crash|fail|stop|finish|end"
    r"|start|kill|delet|cancel)\w*|(?:挂|死|崩|停|失败|炸)了?(?:没有|没|吗|么)"
    r"|是不是(?:又)?(?:挂|死|崩|停)",
    re.ASCII,
)
_STATE_OF_ALL = re.compile(r"(?:status|state|stats|situation|状态|情况)", re.ASCII)


def find(said: Marked, text: str) -> Intent | None:
    """The read that the message asks for; None if it asks for none. text: the masked text without negated orders."""
    for intent, reads in _READINGS:
        if reads(text, said):
            return intent
    return None


def _help(text: str, said: Marked) -> bool:
    if _HELP_ALONE.fullmatch(text):
        return True
    if re.search(r"(?<![a-z])why(?![a-z])|为什么|为啥", text):
        return False
    return has("help", text) and not (
        _NAME.search(text) and not re.search(r"how (?:do|can|would|to)|what happens|怎么|如何|会怎", text)
    )


def _why(text: str, said: Marked) -> bool:
    if has("why", text) and not re.search(r"explain (?:lanes?|how)", text):
        return True
    return (
        has("failure", text)
        and not _OVER.search(text)
        and not has("tail", text)
        and not has("list", text)
        and not has("status_word", text)
    )


def _library(text: str, said: Marked) -> bool:
    return has("library", text) or (has("library_forget", text) and bool(said.of(VALUE)))


def _watch(text: str, said: Marked) -> bool:
    return (
        has("watch", text)
        and not re.search(r"(?<![a-z])(?:gpus?|free)(?![a-z])|卡", text)
        and not has("tail", text)
    )


def _events(text: str, said: Marked) -> bool:
    return has("events", text)


def _tail(text: str, said: Marked) -> bool:
    return has("tail", text)


def _capacity(text: str, said: Marked) -> bool:
    named = bool(_NAME.search(text))
    text = re.sub(r"(?:空闲|闲时)(?:任务|作业|job)|idle (?:jobs?|runs?|tasks?|lane)", " ", text)
    if has("resource", text) and has("free", text):
        return True
    if named and not re.search(r"free|available|空闲|剩|还有", text):
        return False
    if has("list_of_jobs", text):
        return False
    return has("capacity", text) or (
        has("resource", text)
        and bool(
            re.search(r"how many|how much|any|多少|几张|几块|几个|有没有|吗|么|\?|can i|could i|能", text)
        )
    )


def _list(text: str, said: Marked) -> bool:
    return has("list", text) and not (_NAME.search(text) and not re.search(r"list|jobs|哪些|几个", text))


def _status(text: str, said: Marked) -> bool:
    return has("status", text) or asks_whether_over(text)


def _check(text: str, said: Marked) -> bool:
    return has("check", text)


_CHECK_FIRST = re.compile(
    r"check (?:up )?(?:on|in on)|take a|have a|look|healthy|anything|everything"
    r"|stuck|hung|hanging|frozen|(?:is|does|are) .{0,24}(?:ok|okay|fine|alright"
    r"|healthy|wrong|weird|off|normal|sane|well|diverg\w+)(?![a-z])|any (?:problem"
    r"|issue|trouble|error)|一?眼|检查|查一?下|异常|正常|问题[吗吧没么]|卡(?:住|死)"
    r"|瞄|瞅|健康|对劲|看看(?!状态|进度)",
    re.ASCII,
)


def _check_first(text: str, said: Marked) -> bool:
    """A look is asked for and not only how it stands."""
    plain = re.search(
        r"status|state(?![a-z])|progress|eta(?![a-z])|how far|状态|进度|跑到哪|多久"
        r"|alive|活着|done|finished|完了|跑完|running(?![a-z])",
        text,
    )
    return bool(_CHECK_FIRST.search(text)) and has("check", text) and not plain


_READINGS: tuple[tuple[Intent, Callable[[str, Marked], bool]], ...] = (
    ("help", _help),
    ("why", _why),
    ("library", _library),
    ("watch", _watch),
    ("events", _events),
    ("capacity", _capacity),
    ("tail", _tail),
    ("list", _list),
    ("check_once", _check_first),
    ("status", _status),
    ("check_once", _check),
)  # fmt: skip


def is_how(text: str) -> bool:
    """How something is done, or what would come of it, is asked."""
    return bool(
        re.search(
            r"(?<![a-z])(?:how (?:do|can|would|should|could|to)|what do (?:i|we) need|what (?:happens|would happen"
            r"|will happen)|what does)(?![a-z])|怎么(?:停(?!了|下来了|掉了)|删(?!了)|提交|用"
            r"|设|配|取消|申请)|如何|怎样|会怎么?样|会发生什么",
            text,
            re.ASCII,
        )
    )


def asks_whether_over(text: str) -> bool:
    """Whether something has happened already is asked (`did it stop?`, 停了吗), which is no order."""
    return bool(
        re.search(
            r"(?<![a-z])(?:did|has|have|had|was|were|is|are|does)(?:n't)? .{0,40}?(?:stop"
            r"|kill|delet|cancel|end|abort|terminat|halt|remov)\w*"
            r"|^(?:already )?(?:stopped|killed|deleted|cancell?ed|ended)(?: yet"
            r"| already)? ?\?|(?:停|杀|删|取消|终止|关|停掉|删掉|停止"
            r"|删除)(?:掉)?(?:了(?:没有|没|吗|么|嘛)|没有?)|是不是(?:已经)?(?:停|删|杀)"
            r"|停没停|删没删|^[^要该吧]*(?:停|删)了\?",
            text,
            re.ASCII,
        )
    ) and not re.search(r"要不|该|应|可以|能|要停|要删", text)


def quotes_only(said: Marked) -> bool:
    """Nothing is said beside a quotation."""
    return bool(said.of(QUOTE)) and not re.sub(rf"[{QUOTE}\W]", "", said.text)


__all__ = ["GROUP", "VALUE", "find", "pattern", "quotes_only"]
