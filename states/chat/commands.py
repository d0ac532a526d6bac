"""Where a command stands in a message: fenced, in backticks, after `--`, or beginning with a word that starts one.

A command in running text ends where the sentence goes on: at a mark between sentences, a Chinese word, a figure of
resources, or a word such as `with` or `on` that no flag asks for.

Never: change a character inside the command.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Found(NamedTuple):
    """`text[start:end]` is replaced by a mark; command: the job's own words."""

    start: int
    end: int
    command: str


STARTERS = (
    r"python[\d.]*|bash|sh|zsh|torchrun|accelerate|deepspeed|colossalai|srun|mpirun|mpiexec|uv run|poetry run"
    r"|conda run|Rscript|julia|perl|ruby|go run|cargo|llamafactory-cli|swift sft|lm_eval|ray job|horovodrun"
    r"|nvidia-smi|nohup|sleep(?=\s+\d)|echo|pytest|fairseq-\w+|tune run"
    r"|(?:make|time|env|exec|node|java|composer)(?=\s+(?:-|[\w.]*/|[A-Z_]+=|python|bash|[\w-]+\.\w))"
)
"""Words that begin a command; those that are words of a sentence too only before what no sentence has."""
_ASSIGNMENTS = r"(?:[A-Z_][A-Z0-9_]*=\S+\s+){0,8}"
_START = re.compile(
    rf"(?<![\w./~-])(?:{_ASSIGNMENTS}(?:(?:{STARTERS})(?=\s+[\w./$\"'-])|\.{{0,2}}/[\w./-]{{1,200}}\.(?:sh|py)\b)"
    rf"|(?:[A-Z_][A-Z0-9_]*=\S+\s+){{1,8}}\S+|[\w./-]{{1,200}}\.(?:sh|py)(?![\w/]))",
    re.ASCII,
)
_FENCE = re.compile(r"```[ \t]*(?:bash|sh|shell|zsh|console|python)?[ \t]*\n?(.*?)\n?[ \t]*```", re.DOTALL)
_TICKS = re.compile(r"`([^`\n]+)`")
_ORDERED = re.compile(
    r"(?:\b(?:run|launch|submit|execute|start)(?: this| the command)?|跑|提交|执行|运行)(?:一下)?[ :：]*$",
    re.IGNORECASE,
)
_DASHES = re.compile(r"(?:^|\s)--\s+(\S.*)$", re.DOTALL)
_CJK = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
_SENTENCE = re.compile(r"[,，。；！？、]|;(?=\s|$)|[.!?:](?=\s|$)|\n")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_ENDS = frozenset(
    "with on using via for in under please pls plz thx thanks ty and then but asap now at to as i i'll i'm no normal "
    "idle priority prio lane group bill image mount queue just if when once after w"
    "hile it its it's is was would will "
    "so because tonight tomorrow later today ok okay or should this that 's the my "
    "again only don't dont why does run runs running ran start started starts work "
    "worked fit fits do yet first then please, "
    "did fails failed crashed dies died keeps works".split()
)
_FIGURE = re.compile(
    r"\d+\s*(?:x|gpus?\b|卡|张|节点|机|nodes?\b|cards?\b|cores?\b|cpus?\b|replicas?\b|块)", re.IGNORECASE
)
_COUNTED = re.compile(r"\d+\s+(?:gpus?|nodes?|cards?|cores?|cpus?|replicas?|machines?)\b", re.IGNORECASE)


def find(text: str) -> tuple[Found, ...]:
    """Every command in the text, in order (usually none or one)."""
    for fence in _FENCE.finditer(text):
        return (Found(fence.start(), fence.end(), fence[1].strip("\n")),)
    ticked = tuple(
        Found(one.start(), one.end(), one[1].strip())
        for one in _TICKS.finditer(text)
        if is_command(one[1].strip()) or _ORDERED.search(text[: one.start()])
    )
    if ticked:
        return ticked
    dashes = _DASHES.search(text)
    if dashes:
        return (Found(dashes.start(), len(text), dashes[1].strip()),)
    start = _START.search(text)
    if start is None:
        return ()
    end = _end(text, start.end())
    return (Found(start.start(), end, text[start.start() : end].strip()),)


def is_command(text: str) -> bool:
    """Whether words in backticks are a command and not a name or a word of a log."""
    start = _START.match(text)
    return start is not None or bool(re.match(r"[\w./-]+ +-{1,2}\w", text))


def _end(text: str, start: int) -> int:
    """The end of a command in a sentence; start: behind the word that began it."""
    place, before = start, ""
    while place < len(text):
        gap = re.compile(r"[ \t]+|\\\n\s*").match(text, place)
        if gap:
            place = gap.end()
            continue
        word_end = _word_end(text, place)
        word = text[place:word_end]
        asked_for = before.startswith("-") and "=" not in before
        ends = word.lower() in _ENDS or _FIGURE.match(text, place) or _COUNTED.match(text, place)
        if not word or (ends and not asked_for):
            return place
        place, before = word_end, word
        if _SENTENCE.match(text, place) or _CJK.match(text, place):
            following = re.match(rf";\s*(?:{STARTERS}|cd|export|source)\b", text[place:])
            if not following:
                return place
            place += 1
    return place


def _word_end(text: str, place: int) -> int:
    """The end of the word that begins here; quotes hold it together."""
    while place < len(text) and not text[place].isspace():
        quoted = _QUOTED.match(text, place)
        if quoted:
            place = quoted.end()
        elif _SENTENCE.match(text, place) or _CJK.match(text, place):
            break
        else:
            place += 1
    return place
