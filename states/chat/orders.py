"""Orders to stop or delete: the one clause that gives the order, read to its last word.

A clause orders only if it is, from its first word to its last: an opening (`please`, `can you`, 帮我), a verb, the
run (by name, pronoun or not at all) and closing words (`now`, `thanks`, 吧). Whatever does not fit is not an order,
and a condition, a doubt or a report beside it takes its force (A2, A7; I2).

Never: an order from a question about the past, a negation, a quotation or a word inside a name.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

from states.chat.marked import JOB, PART, UNKNOWN, WILD
from states.chat.vocabulary import OBJECT, has, source

Verb = Literal["stop", "delete", "stop+delete"]

RECORD_EN = r"(?:'s|s)? ?(?:job )?(?:the |its )?(?:records?|entry|entries)(?: of)?"
OBJECT_ZH = (
    "的?(?:它|他|(?:这个|那个|这|那|该|当前|现在)?(?:正在跑|在跑|跑着|排队|正在运行|卡住|挂掉|失败)?的?(?:那个|这个)?"
    "(?:任务|作业|训练|job|run|实验|程序|进程)|这个|那个|这|那)"
)
ALL = (
    r"(?:all(?: of)?(?: (?:my|the|our|them|it|running|live))*(?: (?:jobs|runs|tasks))?|everything"
    r"|(?:every|each)(?: (?:single )?(?:job|run|task|one))?|both(?: of them| jobs| runs)?"
    r"|全部|所有的?(?:任务|job|作业)?|都|全都?|两个都?)"
)
ENGLISH_LISTED = rf"[{JOB}{UNKNOWN}](?: ?(?:,|&|\+|\ue011) ?[{JOB}{UNKNOWN}])*"
JOINED = re.compile(rf"([{JOB}{UNKNOWN}]) ?(?:, and|,|and|&|\+|和|跟|与|以及|还有) ?(?=[{JOB}{UNKNOWN}])")
SPLIT = re.compile(
    r"[,;!\n]|\.(?!\d)|(?<=\?)|(?<=吧)(?![?吗])|(?<![a-z])(?:and then|and|because"
    r"|cause|cuz|coz|since|so|as) (?![a-z]*ing\b)"
    r"|(?<![a-z])then (?=(?:please )?(?:delete|remove|del|erase)(?![a-z]))|(?:再"
    r"|然后再?|接着|并且?|后)(?=(?:把|将|它|其|也|一起| )*(?:删|清除|移除))"
    r"|(?<=[\ue100-\ue3ff]) (?=(?:it'?s|it is|it has|it keeps|it looks|the loss"
    r"|loss)(?![a-z]))|(?<= it) (?=(?:it'?s|it is|it has|it keeps|the loss"
    r"|loss)(?![a-z]))"
)


CLAUSE_CHARS_MAX = 300
"""Nobody orders at greater length; what is longer was pasted."""


class Order(NamedTuple):
    """A clause that orders. whole: the object is everything; bare: it has none."""

    verb: Verb
    clause: str
    whole: bool = False
    bare: bool = False


class Orders(NamedTuple):
    """What the message orders. rest: its other clauses; tried: a verb that leads a clause which is no order."""

    given: tuple[Order, ...]
    rest: tuple[str, ...]
    tried: Verb | None = None


def clauses(text: str) -> list[str]:
    """The clauses of a masked message, in order, without blanks around; a question mark stays with its clause."""
    joined = JOINED.sub("\\1\ue011", text)
    joined = re.sub(
        rf"({source('stop')}) (?:it )?(?:and then|and|then|&|,)+ ?({source('delete')})", "\ue012", joined
    )
    joined = re.sub(
        r"(?:停掉|停了|停止|停)(?:并且?|然后|后|再|,|、)+(?:把它)?(?:删掉|删除|删了|删)", "\ue012", joined
    )
    return [part for piece in SPLIT.split(joined) if piece is not None and (part := piece.strip(" :"))]


@cache
def grammar(verb: Verb) -> re.Pattern[str]:
    """The whole clause that orders this."""
    said = "\ue012" if verb == "stop+delete" else source(verb)
    openings = rf"(?:{source('opening')}[ :]*)*+"
    closings = rf"(?:[ :]*{source('closing')})*+"
    english = rf"(?P<all>{ALL})|(?:job |run |任务 ?)?{ENGLISH_LISTED}|{OBJECT}|[{PART}{WILD}]"
    after = rf"(?P<object>{english}|{OBJECT_ZH})"
    record = (
        rf"(?: ?{RECORD_EN}| ?的?(?:这个|那个)?(?:记录|任务|作业|job|record))?"
        if verb != "stop"
        else r"(?:(?: job| run)| ?的?(?:这个|那个)?(?:任务|作业|job))?"
    )
    head = r"(?:(?:the |a )?(?:records?|entry) (?:of|for) )?" if verb != "stop" else ""
    english_form = rf"(?:{said})(?:[ !]*(?:{said})){{0,3}} ?(?:一?下 ?)?{head}(?:{after})?{record}"
    listed = rf"[{JOB}{PART}{UNKNOWN}](?: ?\ue011 ?[{JOB}{UNKNOWN}])*"
    before = rf"(?P<first>(?:任务 ?)?{listed}(?:这个|那个)?(?:任务|作业|job)?|{OBJECT_ZH}|{ALL})"
    chinese_form = rf"{before}{record} ?(?:也|都|给我|给|先)?(?:{said})"
    return re.compile(
        rf"{openings}(?:{english_form}|{chinese_form}){closings}[ .]*(?P<asked>吗?\??)", re.ASCII
    )


def find(text: str) -> Orders:
    """Split the message and read each clause for an order."""
    given: list[Order] = []
    rest: list[str] = []
    tried: Verb | None = None
    for clause in clauses(text):
        order = _order(clause)
        if order is not None:
            given.append(order)
        else:
            rest.append(clause)
            tried = tried or _leads(clause)
    return Orders(tuple(given), tuple(rest), tried)


def _order(clause: str) -> Order | None:
    if len(clause) > CLAUSE_CHARS_MAX:
        return None
    for verb in ("stop+delete", "delete", "stop"):
        read = grammar(verb).fullmatch(clause)
        if (
            read is None
            or _is_statement(clause)
            or _MESSAGE.search(clause)
            or (read["asked"] and not _is_polite(clause))
        ):
            continue
        thing = read["object"] or read["first"] or ""
        whole = bool(re.fullmatch(ALL, thing.strip()))
        return Order(verb, clause, whole, not thing)
    return None


_ZH_DONE = re.compile(
    rf"^(?:[^把将]*[{JOB}{PART}{UNKNOWN}任务它])? ?(?:都|全|也|先)?(?:停|杀|删|关|stop|kill) ?了[ 啊呀哦]*\??$",
    re.ASCII,
)
_MESSAGE = re.compile(
    r"(?<![a-z])(?:cancel|end|cut|drop) (?:that|this)(?![a-z]| (?:job|run|task|one|training))", re.ASCII
)
"""`cancel that`: what was just said, as likely as a run."""
_ZH_GIVEN = re.compile(r"把|将|给我|请|麻烦|帮|赶紧|快|马上|我要|我想|吧")


def _is_statement(clause: str) -> bool:
    """`停了`: that it stopped, as likely as an order; 把, 给我 or 吧 make it one."""
    return bool(_ZH_DONE.match(clause)) and not _ZH_GIVEN.search(clause)


def _is_polite(clause: str) -> bool:
    """A question that asks the agent to do it (`can you ...?`), and none about whether it can or should be done."""
    return bool(
        re.search(
            r"(?:can|could|would|will) (?:you|u|ya)(?![a-z])|帮|麻烦|请|能.*一下|可以.*一下"
            r"|能不能|能否|可否|(?:好|行|可以)[吗么]|好不好|行不行",
            clause,
        )
    )


@cache
def _leading(verb: Verb) -> re.Pattern[str]:
    openings = rf"(?:{source('opening')}[ :]*)*+"
    return re.compile(openings + source(verb), re.ASCII)


def _leads(clause: str) -> Verb | None:
    """The verb a clause begins with (in Chinese: after its object too) although it is no order as a whole."""
    bare = re.sub(rf"^(?:[{JOB}{PART}{UNKNOWN}]|{OBJECT_ZH})+", "", clause).strip()
    for verb in ("delete", "stop"):
        for text in (clause, bare):
            read = _leading(verb).match(text)
            if read and not _about_the_past(text):
                return verb
    return None


def _about_the_past(clause: str) -> bool:
    return bool(re.search(r"(?:了|没)(?:没有|没|吗|么|嘛)?(?: |\?|$)|\?$", clause)) and not has(
        "polite_question", clause
    )


_TAKEN_BACK = re.compile(
    r"^(?:no|nope|nah|not)(?![a-z])|(?<![a-z])(?:keep (?:it|going|running)|let it"
    r"|leave it|carry on|continue)(?![a-z])|^不|继续|接着跑",
    re.ASCII,
)


def hedged(rest: tuple[str, ...]) -> str:
    """What in the other clauses takes an order's force: an idea's name, or "" if nothing does."""
    for clause in rest:
        for idea in ("condition", "negation", "never_mind", "reported", "hedge"):
            if has(idea, clause):
                return idea
        if "?" in clause or "吗" in clause or _TAKEN_BACK.search(clause):
            return "hedge"
    return ""


@cache
def _negated() -> re.Pattern[str]:
    """A negation, the verbs it is about, and their object."""
    ideas = ("stop", "stopped", "delete", "deleted", "run", "again", "restart")
    verb = f"(?:{'|'.join(map(source, ideas))})"
    between = (
        rf"(?: (?:you|dare|yet|ever|please|pls|just|to|want|wanna|need|have|be|been|even|think|of|about|go|going|it"
        rf"|{OBJECT})){{0,5}} ?(?:给我|让它?|把它?|急着|乱)?"
    )
    thing = rf"(?: (?:it|{OBJECT}|[{JOB}{PART}]))?[ {JOB}{PART}]*(?:它|任务)?"
    after = (
        r"(?: ?(?:yet|please|now|just yet|for now|ok|okay|again|anything|any|thanks)(?![a-z]))*"
        r"(?:了|啊|呀|掉|哦|哈|吧|的)*"
    )
    return re.compile(
        rf"(?:把 ?)?(?:(?:please|pls|just|so|i|you|we|ever) )*(?<![a-z']){source('negation')}{between}"
        rf"{verb}(?: ?(?:and|or) ?{verb})?{thing}{after}",
        re.ASCII,
    )


def without_negated(text: str) -> tuple[str, bool]:
    """The text without `don't stop it`, 别删 and their like, and whether there was any."""
    done, count = _negated().subn(" ", text)
    return re.sub(r" {2,}", " ", done).strip(), count > 0
