"""Whether a message answers an open question: by number, by an option's meaning, by the default, or a value.

The whole message must be the answer, apart from courtesy; `1 more epoch then stop` begins with 1 and answers nothing
(G1, G4). What may be an answer or an order at once (`cancel`, `stop` while another run is live) is asked back.

Never: yes or no as a choice between options; an answer to a question that was not singled out.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from states.chat import figures
from states.chat.context import Asked, Context, Option
from states.chat.marked import ASKED, JOB, VALUE, Marked
from states.chat.vocabulary import has, pattern

Doubt = Literal["which_question", "which_option", "answer_or_order", "no_question", "no_such_question"]


class Answer(NamedTuple):
    """A reading as an answer. slots: question, and option (a number or `default`) or value; doubt: why to ask back.

    invalid: the option is not there; late: the question is closed. Both are refused with the reason (G4).
    """

    slots: dict[str, Any] = {}
    doubt: Doubt | None = None
    invalid: bool = False
    late: bool = False
    is_stop: bool = False


class Pick(NamedTuple):
    """What a message picks of one question. ideas: by what; near: the option means it only by the way."""

    option: int | Literal["default"] | None = None
    value: str = ""
    invalid: bool = False
    ideas: frozenset[str] = frozenset()
    near: bool = False


MEANINGS = (
    "no_download", "dont_submit", "wait", "without", "no_change", "reduce", "build", "resend", "recheck", "as_is",
    "stop", "ambiguous",
)  # fmt: skip
"""What an option can mean, read in this order: `stop the download` before `stop`, `keep waiting` before `keep`."""
_NUMBER = re.compile(
    r"(?:option|choice|opt|answer|number|no\.?|nr\.?|#|选项?|选择?|答案?"
    r"|第)* ?[\[(#]? ?(\d{1,3}|[一二两三四五六七八九])[\])]? ?(?:st|nd|rd"
    r"|th)?(?: ?(?:one|option|choice)|个|号|项|条|种)?(?:选项|方案|那个)?",
    re.ASCII,
)
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "former": 1, "latter": 2, "last": -1, 
    "one": 1, "two": 2, "three": 3,
    "前者": 1, "后者": 2, "前面那个": 1, "后面那个": 2, "最后一个": -1,
}  # fmt: skip
_BOTH = re.compile(
    r"(?:for |to |on )?(?:both(?: of them| questions)?|all(?: of them| questions)?)"
    r"|(?:两|二)个?(?:问题)?(?:都)?|都|全部",
    re.ASCII,
)


def find(said: Marked, context: Context) -> Answer | None:
    """The message as an answer; None if it is none."""
    named = [piece.text for piece in said.of(ASKED)]
    text = said.text.strip(" .!,:;")
    if len(text) > 400 or (
        said.of(ASKED)
        and re.search(
            r"(?<![a-z])(?:answered|answer was|why|what|who|when|status)(?![a-z])|已回?答|为什么|什么", text
        )
    ):
        return None
    if named:
        return _to_named(said, context, named)
    bare_number = _number(_unfilled(text)) if _speaks_short(text) else None
    if not context.open:
        return _without_question(said, context, bare_number)
    return _to_open(said, context, text)


def _to_named(said: Marked, context: Context, named: list[str]) -> Answer | None:
    """An answer that names its questions by id."""
    known = {question.id.lower(): question for question in context.questions}
    wanted = [known.get(name.lower()) for name in dict.fromkeys(named)]
    body = re.sub(rf"[{ASKED}]", " ", said.text)
    body = re.sub(r"(?<![a-z])(?:to|for|on|with|question|and|both)(?![a-z])|问题|[:,]", " ", body).strip()
    found = [question for question in wanted if question is not None]
    if not found:
        return Answer(doubt="no_such_question") if _number(_unfilled(body)) or len(body) < 40 else None
    picks = [pick_of(body, said, question) for question in found]
    if not body.strip(" .!?") or any(pick is None for pick in picks):
        return (
            Answer({"question": ",".join(question.id for question in found)}, "which_option")
            if len(body) < 40 and "?" not in body
            else None
        )
    return _answer(found, [pick for pick in picks if pick is not None])


def _to_open(said: Marked, context: Context, text: str) -> Answer | None:
    """An answer that does not say to which question."""
    asked = context.open
    jobs = {name for piece in said.of(JOB) for name in piece.names}
    body = text
    of_jobs = [question for question in asked if question.job in jobs]
    if jobs:
        body = re.sub(rf" ?[{JOB}] ?(?::|的)?", " ", text).strip()
        if has("stop", body) or not of_jobs:
            return None
        asked = tuple(of_jobs)
    both = _BOTH.search(body) if len(asked) > 1 else None
    if both:
        picks = [pick_of(_BOTH.sub(" ", body), said, question) for question in asked]
        if all(pick is not None and pick.option is not None for pick in picks):
            return _answer(list(asked), [pick for pick in picks if pick is not None])
    picked = [(question, pick) for question in asked if (pick := pick_of(body, said, question)) is not None]
    if not picked:
        return _not_settled(text, asked)
    if len(picked) > 1:
        picked = [(question, pick) for question, pick in picked if pick.ideas and not pick.near] or picked
    if len(picked) > 1:
        return Answer(doubt="which_question")
    question, pick = picked[0]
    if "ambiguous" in pick.ideas or (pick.ideas & {"stop"} and not _only_that(question, context)):
        return Answer(doubt="answer_or_order")
    if len(asked) > 1 and pick.ideas <= frozenset() and not pick.value:
        return Answer(doubt="which_question")
    return _answer([question], [pick])


def _only_that(question: Asked, context: Context) -> bool:
    """Stopping as the answer and stopping as an order come to the same thing."""
    return len(context.open) == 1 and context.live == (question.job,)


def _not_settled(text: str, asked: tuple[Asked, ...]) -> Answer | None:
    """Yes, no and their like choose neither option; `cancel` may be an order."""
    bare = text.strip(" .!,?~")
    without = pattern("courtesy").sub(" ", bare).strip(" ,.!~")
    only_thanks = re.search(r"thank|thx|谢|ty(?![a-z])|辛苦|收到|知道|got it|noted|明白|了解", bare)
    if (
        re.fullmatch(
            rf"(?:{pattern('yes').pattern}|{pattern('no').pattern}|[ ,.!吧啊呀的])++", bare, re.ASCII
        )
        and not only_thanks
    ):
        return Answer(doubt="which_option")
    if re.fullmatch(
        r"(?:please )?(?:cancel|abort|quit|取消)(?: it| that| this)?(?: please)?(?:吧|掉|了)*",
        without,
        re.ASCII,
    ):
        return Answer(doubt="answer_or_order")
    if re.fullmatch(
        r"(?:please |just |ok |yes )*(?:stop|kill|halt)(?: it| that| this)?(?: (?:please"
        r"|now))*|(?:请|先)?停(?:掉|止|了|下)?(?:它)?(?:吧|了)*",
        without,
        re.ASCII,
    ) and any(
        "stop" in " ".join(option.texts) or "停" in " ".join(option.texts)
        for question in asked
        for option in question.options
    ):
        return Answer(doubt="answer_or_order")
    return None


def _without_question(said: Marked, context: Context, number: int | None) -> Answer | None:
    """A bare number or `the default` while nothing is open: late, or about nothing."""
    closed = [question for question in context.questions if not question.open]
    text = said.text.strip(" .!,")
    if number is None and not pattern("default").fullmatch(text):
        return None
    if len(closed) == 1:
        return Answer({"question": closed[0].id, "option": number or "default"}, late=True)
    return Answer(doubt="no_question")


def _answer(questions: list[Asked], picks: list[Pick]) -> Answer:
    slots: dict[str, Any] = {"question": ",".join(question.id for question in questions)}
    first = picks[0]
    if first.option is not None:
        options = [pick.option for pick in picks]
        slots["option"] = first.option if len(set(options)) == 1 else ",".join(map(str, options))
    if first.value:
        slots["value"] = first.value
    late = any(not question.open for question in questions)
    return Answer(slots, None, any(pick.invalid for pick in picks), late, "stop" in first.ideas)


# --- one question -----------------------------------------------------------------------------------------


def pick_of(body: str, said: Marked, question: Asked) -> Pick | None:
    """What the whole of `body` picks of this question; None if it is not an answer to it."""
    text = body.strip(" .!,:;~")
    if re.search(r"\?", text) and not re.search(r"(?:好|行|可以)[吗么]\?$", text):
        return None
    if pattern("default").fullmatch(_polite(text)):
        return Pick("default", ideas=frozenset({"default"}))
    same = [
        n for n, option in enumerate(question.options, 1) if text in {one.lower() for one in option.texts}
    ]
    if len(same) == 1:
        option = question.options[same[0] - 1]
        return None if option.value else Pick(same[0], ideas=meanings(text)[0] or frozenset({"text"}))
    number = _number(_unfilled(text)) if _speaks_short(text) and not re.search(f"[{VALUE}]", text) else None
    if number is None:
        number = next(
            (
                n
                for word, n in _ORDINALS.items()
                if re.fullmatch(rf"(?:the |that )?{word}(?: one| option| choice)?", _polite(text))
            ),
            None,
        )
    if number is not None:
        return _by_number(number, question)
    return _by_value(text, said, question) or _by_meaning(text, question)


def _by_number(number: int, question: Asked) -> Pick | None:
    last = len(question.options)
    number = last if number == -1 else number
    if 1 <= number <= last:
        return None if question.options[number - 1].value else Pick(number)
    counts = [n for n, option in enumerate(question.options, 1) if option.value == "gpu"]
    if len(counts) == 1 and number > 0:
        return Pick(counts[0], str(number), ideas=frozenset({"reduce"}))
    return Pick(number, invalid=True)


def _by_value(text: str, said: Marked, question: Asked) -> Pick | None:
    """The value that the question asks for, alone or in a sentence that says no more."""
    values = said.of(VALUE)
    takes = [n for n, option in enumerate(question.options, 1) if option.value and option.value != "gpu"]
    if len(values) != 1 or not (takes or question.free_text):
        return None
    rest = re.sub(f"[{VALUE}]", " ", text)
    number = re.match(r"(\d)(?=\D|$)", rest.strip())
    if number and int(number[1]) in takes:
        return Pick(int(number[1]), values[0].text, ideas=frozenset({"value"}))
    if (
        has("negation", rest)
        or has("library", rest)
        or has("run", rest)
        or has("stop", rest)
        or _unfilled(rest)
    ):
        return None
    fits = [n for n in takes if _fits(question.options[n - 1], values[0].text)]
    return (
        Pick(fits[0] if len(fits) == 1 else None, values[0].text, ideas=frozenset({"value"}))
        if fits or question.free_text
        else None
    )


def _fits(option: Option, value: str) -> bool:
    """A path is no image, and a proxy is an address."""
    is_path = value.startswith(("/", "~", "."))
    if option.value == "image":
        return not is_path and "://" not in value
    if option.value in ("environment", "mounts"):
        return is_path
    return not (option.value == "proxy" and is_path)


def _by_meaning(text: str, question: Asked) -> Pick | None:
    """The only option that means all that the message says."""
    ideas, rest = meanings(_polite(text))
    if not ideas:
        return None
    if ideas == {"ambiguous"}:
        stops = any(ideas_of(option) & {"stop", "no_download", "dont_submit"} for option in question.options)
        return Pick(None, ideas=ideas) if stops and not _unfilled(rest) else None
    numbers = re.findall(r"\d+", rest)
    if _unfilled(re.sub(r"\d+", " ", rest)):
        return None
    direct, fitting = [], []
    for place, option in enumerate(question.options, 1):
        own = ideas_of(option)
        said = re.findall(r"\d+", " ".join(option.texts))
        fits = all(number in said for number in numbers) or (option.value == "gpu" and len(numbers) == 1)
        if fits and not (option.value and not numbers):
            fitting += [place] * (
                ideas <= own | _BY_THE_WAY.get(next(iter(own & _BY_THE_WAY.keys()), ""), frozenset())
            )
            direct += [place] * (ideas <= own)
    chosen = direct if len(direct) == 1 else fitting
    if len(chosen) != 1:
        return None
    takes = question.options[chosen[0] - 1].value
    return Pick(chosen[0], numbers[0] if takes else "", ideas=ideas, near=not direct)


def meanings(text: str) -> tuple[frozenset[str], str]:
    """What a text says in the terms of options, and what is left of it."""
    found = set()
    for idea in MEANINGS:
        text, count = pattern(f"option.{idea}").subn(" ", text)
        if count:
            found.add(idea)
    return frozenset(found), text


def ideas_of(option: Option) -> frozenset[str]:
    """What an option means."""
    return frozenset(idea for text in option.texts for idea in meanings(text.lower().replace("-", " "))[0])


_BY_THE_WAY = {"wait": frozenset({"no_change"}), "without": frozenset({"no_change"})}
"""Waiting and doing without are also ways of going on."""


def _polite(text: str) -> str:
    """Without what courtesy puts around an answer."""
    text = re.sub(
        r"^(?:(?:(?:i(?:'ll|'d| will| would)? )?(?:choose|pick|take|select|prefer|go with)(?= (?:the|option|number))"
        r"|please|pls|ok|okay|yes|yeah|sure|well|then|just|so|hi|hey|let's|lets"
        r"|i'?d say|i say|i think|(?:no|nah|nope)(?=[,.!]| keep| let| leave| continue"
        r"| go on| don))(?![a-z])[ ,.!]*|(?:那|就|请|好的|好|嗯|行|先)(?=[^行要用是好])"
        r"|不[, ]+)*",
        "",
        text,
    )
    return re.sub(
        r"[ ,.!]*(?:(?<![a-z])(?:please|pls|thanks|thank you|thx|ty|then|for now|now|ok"
        r"|okay|i guess|i think|for the moment)|了吧|吧|谢谢|啊|呗|呀|了)*+$",
        "",
        text,
    ).strip(" ,.!")


def _unfilled(text: str) -> str:
    """What is left of an answer without its small words."""
    return re.sub(r"[\s\W]+", " ", pattern("around_an_answer").sub(" ", text)).strip()


def _speaks_short(text: str) -> bool:
    """A bare number stands in few words, none of which carries a meaning of its own."""
    return (
        len(text) <= 40
        and not meanings(text)[0]
        and not re.search(r"lines?|行|gpu|卡|last|tail|个任务|first|second", text)
    )


def _number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text)
    return figures.count_of(found[1]) if found else None


__all__ = ["Answer", "Pick", "find", "ideas_of", "meanings", "pick_of"]
