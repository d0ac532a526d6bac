"""Sentences that say where a run stands without a counter: phases, the end, overflow, throughput.

General sentences of many frameworks, English and Chinese, never a line of one program alone.

Never: take the end of a part (`epoch 3 done`, `finished loading`) for the end of the run.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from states.logs.shapes import per_shape, shape

OVERFLOW_CHARS = 2_000
SENTENCE_CHARS = 400
"""Characters of a line that are searched for a sentence; sentences stand near the start."""

_WORK = (
    r"(?:training|train|fitting|fit|fine-?tuning|finetuning|pre-?training|run|job|experiment|evaluation|eval"
    r"|inference|prediction|optimi[sz]ation|simulation|conversion|script|program|process|pipeline|benchmark"
    r"|generation|search|everything|all(?: \w{1,20}){0,2}|workflow|calculation|build|processing"
    r"|download(?:ing)?)"
)
_ENDED = r"(?:completed?|finished|done|ended|succeeded|successful(?:ly)?)"
_FINISHED = re.compile(
    rf"(?<![\w-]){_WORK} (?:(?:has|have|was|is|are|now|been|run|job|process|task|loop|phase)\s){{0,3}}"
    rf"{_ENDED}(?![\w-])"
    r"|(?<![\w-])(?:finished|completed|done(?: with)?|end of|successfully (?:finished|completed))"
    rf" (?:the |all )?{_WORK}(?![\w-])"
    r"|Trainer\.fit` stopped|[\"']?train_runtime[\"']?\s{0,20}[:=]"
    r"|(?:reached|hit) (?:the )?max(?:imum)?[_ ](?:steps|epochs|iter\w*)"
    r"|total (?:training|train|execution|run|wall)[ _-]?time\b"
    r"|completed successfully|finished successfully|successfully completed|\brun_stop\b.{0,80}\bsuccess"
    r"|final (?:result|test|validation|accuracy|metrics|model saved)|saved? (?:the )?final model"
    r"|^\W{0,4}final[ _]\w{0,40}[ :=].{0,40}(?:loss|acc|score|ppl|bpb|perplexity)"
    r"|\d{1,6} passed(?:, \d{1,6} \w{1,12}){0,4} in [\d.]{1,10}s|JOB DONE|Normal termination|\bfinished!{1,5}"
    r"|^\W{0,4}(?:all )?(?:done|finished|complete|completed)\W{0,4}$|download (?:completed?|finished)"
    r"|(?:训练|任务|评估|推理|运行|全部|下载|处理)(?:已经?)?(?:全部|顺利)?(?:完成|结束|完毕)",
    re.IGNORECASE,
)
_EXITED = re.compile(r"\b(?:exit(?:ed)?(?: with)?(?: code)?|ret(?:urn)?_?code)[ :=]{1,3}0\b")
_PART = re.compile(
    r"(?:epoch|step|iter\w*|stage|task|batch|shard|fold|layer|chunk|worker|rank|phase|round|turn) ?[#:]? ?"
    r"\d[\d./]{0,12}[^.]{0,24}(?:done|finished|completed?)"
    r"|(?:finished|completed?|done) (?:the )?(?:job|run|process|experiment|trial|search|simulation)s? ?[#:]? ?\d"
    r"|(?:not|never|when|until|once|after|before|if|will be|unless|to be|isn't|wasn't) (?:\w{1,20} ){0,3}"
    r"(?:training|finished|completed?|done)"
    r"|(?:did|has|have|was|is) not|loading|epoch (?:time|done)|warm-?up|compil|init|sanity|未完成|尚未",
    re.IGNORECASE,
)
_CLOSES = re.compile(
    r"(?:^|[\]:>|-] ?)\W{0,4}(?:the )?(?:total |overall |complete )?"
    r"(?:execution|elapsed|running|run|wall|wall[- ]clock|training|train|cpu)"
    r"[ _-]?time(?: elapsed| taken)?\s{0,4}(?:[:=]|was|is)?\s{0,4}\d"
)
_GAP = r"(?:\w{1,20} ){0,4}"
_PHASES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "saving checkpoint",
            rf"(?<![\w-])(?:saving|saved|writing|wrote|save) {_GAP}"
            r"(?:checkpoint|ckpt|model|state|weights|optimizer)"
            r"|checkpoints? (?:is |are )?(?:being )?sav|async checkpoint|保存(?:模型|检查点|权重)",
        ),
        (
            "resuming",
            rf"(?<![\w-])(?:resum|restor)(?:e|ed|ing) {_GAP}(?:from|training|checkpoint)|恢复训练|断点续训",
        ),
        (
            "evaluating",
            r"\*{3,8} ?running (?:evaluation|prediction)|(?<![\w-])evaluating\b|validating\b"
            r"|(?<![\w-])(?:start(?:ing)?|running|begin) (?:\w{1,20} ){0,2}"
            r"(?:evaluation|validation|inference|prediction)|开始(?:评估|验证|推理)",
        ),
        (
            "training",
            r"\*{3,8} ?running training|training (?:has )?start|开始训练"
            r"|(?<![\w-])(?:start(?:ing)?|begin(?:ning)?|started) (?:the )?train",
        ),
        (
            "loading model",
            rf"(?<![\w-])load(?:ing)? {_GAP}(?:model|weights|safetensors|shards)|loading checkpoint"
            r"|model (?:weights )?load|加载(?:模型|权重)",
        ),
        (
            "loading data",
            r"(?<![\w-])(?:load(?:ing)?|read(?:ing)?|preload(?:ing)?|prepar(?:e|ing)|build(?:ing)?) (?:the )?"
            rf"{_GAP}"
            r"(?:data|dataset|datasets|corpus|dataloader|index)\b|加载数据|读取数据|数据加载",
        ),
        ("tokenizing", r"(?<![\w-])(?:tokeniz|preprocess)ing\b|running tokenizer|分词|预处理"),
        (
            "compiling",
            r"(?<![\w-])(?:compil(?:e|ing)|jit|building (?:wheel|extension|cuda)|torch\.compile|tracing)\b"
            r"|captur(?:e|ing) (?:cuda )?graph|\bxla\b|编译",
        ),
        ("downloading", r"(?<![\w-])(?:downloading|fetching|cloning|pulling)\b|正在下载|开始下载"),
        ("installing", r"(?<![\w-])(?:collecting|installing|processing triggers|setting up)\b \S|正在安装"),
        (
            "waiting for peers",
            rf"waiting for {_GAP}(?:peers?|nodes?|workers?|ranks?|members|rendezvous)|rendezvous|barrier"
            r"|is not ready yet|等待(?:其他|所有)?(?:节点|进程)",
        ),
        (
            "initializing",
            r"(?<![\w-])(?:initiali[sz](?:e|ing|ed)|init_process_group|launching|spawning|bootstrap)"
            r"|nccl info|初始化",
        ),
        ("warming up", r"(?<![\w-])warm(?:ing)?[ -]?up\b|预热"),
        (
            "serving",
            r"application startup complete|uvicorn running|server (?:is )?(?:started|ready|running)"
            r"|listening on",
        ),
        ("uploading", r"(?<![\w-])uploading\b|正在上传"),
        (
            "cleaning up",
            r"(?<![\w-])(?:shutting down|cleaning up|destroy_process_group|tearing down)|wandb: synced \d",
        ),
    )
)
OPENING = frozenset(
    {
        "initializing",
        "loading model",
        "loading data",
        "resuming",
        "compiling",
        "tokenizing",
        "waiting for peers",
        "warming up",
    }
)
"""Phases that come before the first step."""

_PHASE_HINTS = {
    "saving checkpoint": ("sav", "writ", "wrote", "checkpoint", "保存"),
    "resuming": ("resum", "restor", "恢复", "断点"),
    "evaluating": ("evaluat", "validat", "running", "start", "begin", "开始"),
    "training": ("train", "训练"),
    "loading model": ("load", "加载"),
    "loading data": ("load", "read", "prepar", "build", "数据"),
    "tokenizing": ("tokeniz", "preprocess", "分词", "预处理"),
    "compiling": ("compil", "jit", "building", "captur", "tracing", "xla", "编译"),
    "downloading": ("download", "fetch", "cloning", "pulling", "下载"),
    "installing": ("collecting", "installing", "triggers", "setting up", "安装"),
    "waiting for peers": ("wait", "rendezvous", "barrier", "not ready", "等待"),
    "initializing": ("init", "launch", "spawn", "bootstrap", "nccl", "初始化"),
    "warming up": ("warm", "预热"),
    "serving": ("startup", "running", "server", "listening"),
    "uploading": ("upload", "上传"),
    "cleaning up": ("shut", "clean", "destroy", "tear", "synced"),
}
"""Pieces one of which must stand in a line before its pattern is worth trying; lower case."""

_FINISHED_HINTS = (
    "finish", "complet", "done", "end", "succe", "stopped", "train_runtime", "reached", "hit", "total", "final",
    "exit", "ret", "passed in", " passed,", "normal", "完", "结束",
)  # fmt: skip
_OVERFLOW = re.compile(
    r"overflow[! ].{0,60}skip|skip\w* step|overflow detected|gradient overflow|found (?:inf|nan)"
    r"|grad(?:ient)?s? (?:are|is) (?:nan|inf)",
    re.IGNORECASE,
)
_SKIPPED = re.compile(r"number of skipped iterations:\s{0,6}[1-9]")
_SPEED = r"(?:tok(?:en)?s?/s|req(?:uest)?s?/s|samples/s|images/s)"
_THROUGHPUT = re.compile(
    rf"(?:throughput|{_SPEED}|tokens[_ ]per[_ ]sec\w{{0,4}}|qps|rps)[^\d\n]{{0,24}}"
    rf"(?P<after>\d{{1,12}}(?:\.\d{{1,6}})?)|(?P<before>\d{{1,12}}(?:\.\d{{1,6}})?) ?{_SPEED}",
    re.IGNORECASE,
)
_SERVED = re.compile(r"\"? (?:HTTP/\d(?:\.\d)?\"?:? )\"?2\d\d\b|\b200 OK\b")
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.,:]\d+)*")
_SPINNER = re.compile(r"[-\\|/\u2800-\u28ff◐◓◑◒]+")


class _Told(NamedTuple):
    """What all lines of one shape say. exits, skips: where a digit decides, so that the line itself is asked.

    figures: where the throughputs stand.
    """

    phase: str
    finished: bool
    closes: bool
    exits: bool
    overflowed: bool
    skips: bool
    figures: tuple[tuple[int, int], ...]


_NOTHING_TOLD = _Told("", False, False, False, False, False, ())


@per_shape
def _told(of: str) -> _Told:
    near, far = of[:SENTENCE_CHARS].lower(), of[:OVERFLOW_CHARS].lower()
    whole = _PART.search(near) is None
    ends = any(hint in near for hint in _FINISHED_HINTS)
    wrong = any(hint in far for hint in ("overflow", "skip", "nan", "inf"))
    return _Told(
        phase=_phase(near),
        finished=ends and whole and _FINISHED.search(near) is not None,
        closes="time" in near and _CLOSES.search(near) is not None,
        exits=ends and whole and _EXITED.search(near) is not None,
        overflowed=wrong and _OVERFLOW.search(far) is not None,
        skips="skipped iterations" in far,
        figures=tuple(
            found.span(found.lastgroup or 0) for found in _THROUGHPUT.finditer(of[:OVERFLOW_CHARS])
        ),
    )


def _phase(near: str) -> str:
    for name, pattern in _PHASES:
        if any(hint in near for hint in _PHASE_HINTS[name]) and pattern.search(near):
            return name
    return ""


class Sentences(NamedTuple):
    """What one line says in words; throughput: work per second, None if it names none."""

    phase: str
    finished: bool
    closes: bool
    overflowed: bool
    throughput: float | None


_SILENT = Sentences("", False, False, False, None)


def sentences(text: str) -> Sentences:
    """All of it at once."""
    told = _told(shape(text))
    if told == _NOTHING_TOLD:
        return _SILENT
    return Sentences(told.phase, finished(text), told.closes, overflowed(text), throughput(text))


def closes(text: str) -> bool:
    """Whether the line tells how long all took, as many programs do once, at their end."""
    return _told(shape(text)).closes


def finished(text: str) -> bool:
    """Whether the line says that the whole work is complete."""
    told = _told(shape(text))
    return told.finished or (told.exits and _EXITED.search(text[:SENTENCE_CHARS].lower()) is not None)


def phase(text: str) -> str:
    """The phase that a line speaks of, or ""."""
    return _told(shape(text)).phase


def overflowed(text: str) -> bool:
    """Whether the line reports a step that was skipped for an overflow."""
    told = _told(shape(text))
    return told.overflowed or (told.skips and _SKIPPED.search(text[:OVERFLOW_CHARS].lower()) is not None)


def throughput(text: str) -> float | None:
    """Work per second on a line of a service; None if it names none. The best figure on the line counts."""
    spans = _told(shape(text)).figures
    return max(float(text[start:end]) for start, end in spans) if spans else None


def served(text: str) -> bool:
    """Whether the line records a request that succeeded: a sign of life that no retry line outweighs."""
    if "HTTP/" not in text and "200 OK" not in text:
        return False
    return _SERVED.search(text[:SENTENCE_CHARS]) is not None


def template(text: str) -> str:
    """A message without its numbers, addresses and spinner signs, so that repeats can be told."""
    return " ".join(_SPINNER.sub("-", _NUMBERS.sub("#", text[:SENTENCE_CHARS])).split())
