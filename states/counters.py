"""Finds the numbers on one line that count work: bars, `n/N` pairs, unit words, percentages, bare numbers.

One line in, readings out; what a series of readings means is judged in `series`. Five shapes cover nearly all
logs (findings 7, 8 and 11 of the corpus): a bar or bracket with `n/N`, a unit word beside a number, a percentage,
a running count without a total, a bare counter at the line start.

Never: count attempts, waiting, memory, ports, versions or points of restart as work; scan a line without bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from states.stamps import DURATION, duration_s

Kind = Literal["unit", "quota", "bar", "pair", "percent", "bytes", "countdown", "word", "bare"]
"""How a number was recognised. `quota`: a unit with a word like max or total: a goal, unless it moves."""

NUMBERS_PER_LINE_MAX = 400

_N = r"(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15})(?:\.\d{1,12})?"
_FLOAT = rf"[-+]?(?:{_N}|\.\d{{1,12}})(?:[eE][-+]?\d{{1,3}})?"
_ODD_FLOAT = r"[-+]?(?:nan|NaN|NAN|inf|Inf|INF|[Ii]nfinity)(?![A-Za-z])"

_KEYED = re.compile(
    r"(?<![\w/.\-])(?P<key>[A-Za-z_\u4e00-\u9fff][\w/.@\-]{0,60})(?:\((?P<note>[^()]{0,24})\))?[\"'*`]{0,2}"
    r"(?P<sep>\s{0,24}[:=|：]{1,2}\s{0,24}|\s{0,8}\.{3,80}\s{0,4}|\s{1,12}#?|\s{0,2}[\[(#]\s{0,6})"
    r"[\"']?\[?(?:(?:np|torch|jnp)\.\w{1,9}\(|[Tt]ensor\(|Array\()?"
    rf"(?P<value>{_FLOAT}|{_ODD_FLOAT})"
)
_PAIR = re.compile(
    rf"(?<![\w.,/\\+~-])(?<!\d:)(?P<n>{_N})(?P<nu>\s?(?:[kKMGTP]i?)?(?:it|[Bb]|bytes)?)\)?\s{{0,8}}"
    rf"(?:/|／|\bof\b|out of)\s{{0,8}}(?P<N>{_N})(?P<Nu>\s?(?:[kKMGTP]i?)?(?:it|[Bb]|bytes)?)"
    r"(?![\w/\\]|[.:\-]\d)(?P<tail>\s?[A-Za-z\u4e00-\u9fff]{0,16})"
)
_DATE_PAIR = re.compile(r"[01]?\d/[0-3]?\d(?:/\d\d(?:\d\d)?)?[ T]\d\d:\d\d")
_TQDM = re.compile(
    rf"(?P<pct>\d{{1,3}})(?:\.\d{{1,2}})?%\s?[|▕](?P<bar>[^|▏%]{{0,400}})[|▏]\s{{0,4}}(?P<n>{_N})(?P<nu>[kKMGTP]i?)?"
    rf"(?:it|B)?/(?P<N>{_N})(?P<Nu>[kKMGTP]i?)?[A-Za-z]{{0,12}}"
)
_TQDM_OPEN = re.compile(rf"(?<![\w/.])(?P<n>{_N})(?P<nu>[kKMGTP]i?)?(?:it|B| [a-z]{{1,20}}) ?\[\d{{1,6}}:\d\d(?::\d\d)?, ")
_TIMES = re.compile(rf"\s{{0,4}}\[\s?(?P<elapsed>{DURATION})\s?<\s?(?P<eta>{DURATION}|\?)")
_PERCENT = re.compile(r"(?<![\d.,:\-])(?P<pct>\d{1,3}(?:\.\d{1,4})?)\s?%(?![|▕\w])")
_WGET_DOTS = re.compile(r"\s{0,12}(?P<n>\d{1,12})K (?:[. ,]{11,70})")
_WGET_LENGTH = re.compile(r"Length: (?P<n>\d{1,15})\b")
_CURL = re.compile(
    r"\s{0,3}(?P<pct>\d{1,3})(?:\s{1,8}[\d.]{1,7}[kKMGTP]?){7}(?:\s{1,8}[\d:dh-]{1,9}){3}(?:\s|$)"
)
_RECEIVED = re.compile(rf"(?P<n>{_N}) bytes[^\d]{{1,24}}(?:expected|of|total) (?P<N>{_N})", re.IGNORECASE)
_COUNTDOWN = re.compile(rf"(?<![\w.])(?P<n>{_N}) (?:more (?P<what>\w{{2,20}})|(?P<what2>\w{{2,20}}) (?:left|remaining|to go))\b")
_ORDINAL = re.compile(rf"第\s{{0,2}}(?P<n>{_N})(?:\s?/\s?(?P<N>{_N}))?\s{{0,2}}(?:个|次)?(?P<unit>轮|步|代|批|迭代|回合|epoch|个)")
_AFTER = re.compile(rf"(?<![\w.,/:\-])(?P<n>{_N}) (?P<unit>[A-Za-z]{{3,14}})\b(?!\s?/|\s?per\b)")
_AHEAD = re.compile(r"(?:[A-Za-z_\u4e00-\u9fff]{1,24} ){1,2}$")
_BARE = re.compile(r"\s{0,12}[\[(]?(?P<n>\d{1,12})[\])]?(?:\s|[:,|;])")
_ETA = re.compile(
    r"(?:\b(?:[Ee][Tt][Aa]|remaining(?:[_ ]time)?|[Rr]emaining(?:[_ ][Tt]ime)?|time[_ ]left|left)|剩余(?:时间)?|预计(?:还需|剩余)?|还需)"
    rf"[\"']?\s{{0,4}}[:=：]?\s{{0,4}}[\"']?(?P<eta>{DURATION})"
)
_RATE = re.compile(rf"(?<![\w.])(?P<r>{_N})\s?(?P<what>k?(?:it|iter|step|iteration|epoch|batch|sample|example|item|file)(?:e?s)?)\s?/\s?s(?:ec)?\b")
_SLOW_RATE = re.compile(
    rf"(?<![\w.])(?P<r>{_N})\s?(?P<u>ms|s|sec|min)\s?/\s?(?P<what>it|iter|step|iteration|epoch|batch|sample|example|item|file)\b"
)
_PER_ITERATION = re.compile(
    rf"(?:elapsed time per iteration|time per (?:step|iteration)|step_avg|iter_time|step_time)\s?(?:\((?P<u>ms|s)\))?\s?[:=]\s?(?P<r>{_N})\s?(?P<u2>ms|s)?"
)

STEP_WORDS = frozenset(
    "step steps iter iters iteration iterations it its update updates timestep timesteps ts 步 步数 迭代 迭代次数 训练步数".split()
)
EPOCH_WORDS = frozenset("epoch epochs ep eps 轮 轮次 轮数 回合".split())
EPISODE_WORDS = frozenset("episode episodes rollout rollouts game games trial trials generation generations round rounds 代".split())
BATCH_WORDS = frozenset("batch batches minibatch batchid batchidx 批 批次".split())
ITEM_WORDS = frozenset(
    "sample samples example examples request requests task tasks taskid file files item items document documents doc docs"
    " prompt prompts question questions image images video videos frame frames record records row rows chunk chunks"
    " page pages stage job jobs sequence sequences test tests case cases target targets shard shards part parts node nodes"
    " query queries molecule molecules structure structures conversation conversations 样本 文件 条 张 个".split()
)
_UNITS_OF_WORK = ("step", "epoch", "episode", "batch")
_GOAL_WORDS = frozenset("max maximum total num target planned final nb number count iters".split())
_POSITION_WORDS = frozenset("id idx index num no number count i start end begin started ended done finished".split())
_COUNTER_QUALIFIERS = frozenset("global warmup current inner outer env train 全局 当前".split())
_CONFIG_AHEAD = ("every", "per", "each", "last", "first", "next", "of", "after", "within")
_SOURCE_FILE = re.compile(r"\.(?:py|pyx|cc?|cpp|cxx|cu|h|hpp|rs|go|java|scala|js|ts|sh|jl)$")
_MEASURE = re.compile(r"\s?(?:ms|s|sec|secs|seconds|min|minutes|h|hours|[kKMG]i?B|it/s|%|x)(?![A-Za-z])")
_CONFIG_WORDS = frozenset(
    "save saving eval logging log accumulation per every interval freq frequency checkpoint ckpt decay ema warmup warm"
    " start resume initial first best patience last size len length limit keep gradient grad lr scheduler between after before"
    " delay offset rollback skip skipped ignore minimum min ref sync cooldown ramp ramping time parallel worker workers"
    " device".split()
)
_DENIED = re.compile(
    r"attempt|retr(?:y|ies)|\btries\b|\btry\b|restart|reconnect|backoff|heartbeat|keep-?alive|elapsed|waited|uptime|sleep"
    r"|time-?out|重试|尝试|心跳|等待",
    re.IGNORECASE,
)
_RESTORED = re.compile(
    r"resum\w*|restor\w*|load(?:ed|ing)?|continu\w+|start(?:ing|ed)? (?:\w+ )?(?:from|at)|from (?:\w+ )?(?:step|iteration|epoch)"
    r"|rollback|roll\w* back|恢复|加载|checkpoint|ckpt|sav(?:e|ed|ing)|snapshot|保存|best",
    re.IGNORECASE,
)
_METRIC = re.compile(
    r"(?<![a-z])(?:mem|memory|vram|ram|gpus?|cuda|cpu|disk|quota|util\w*|usage|cache|free|avail\w*|acc|accuracy|correct"
    r"|score|reward|recall|precision|f1|hits?|passed|failed|rank|local_rank|world|version|ratio|sparsity|mfu|clip|win"
    r"|temp|power|errors?|loss|prob|params|trainable|port|pid|confidence|threshold|dropout|up to|limit|layers?|heads?"
    r"|显存|内存|准确)(?![a-z])",
    re.IGNORECASE,
)
_NOT_WORD = re.compile(
    r"time|elapsed|sec|second|ms$|eta$|pid|tid|port|attempt|retr|tries|wait|heartbeat|uptime|age$|stamp|wall|duration|hour|minute"
    r"|mem|bytes|[kmg]i?b$|free|used|cpu|gpu|cuda|temp|power|line|version|code|status|err|broadcast|block|piece|thread|reward|acc"
    r"|score|norm|lr$|rate|loss|size|len|rank|world|seed|scale|dim|width|height|ip$|host|address|offset|date|day|year|month|info"
    r"|warn|debug|python|level|took|in$|to$|from$|of$|for$|with$|and$|at$|on$|by$|is$|reducing|free|fps|speed|throughput|flops"
    r"|lineno|grad|value|mean|std|max|min|avg|took|received|expected|http|got|remaining|left|on$|entropy|kl$|id_$|uid|addr|0x|epsilon|beta|gamma",
    re.IGNORECASE,
)
EVAL_CONTEXT = re.compile(
    r"(?<![a-z])(?:eval\w*|valid\w*|val|test\w*|infer\w*|predict\w*|sanity|bench\w*|generating|sampling|评估|验证|测试|推理)(?![a-z])",
    re.IGNORECASE,
)
LOAD_CONTEXT = re.compile(
    r"load\w*|shards?|download\w*|fetch\w*|resolv\w*|\bmap\b|\bmap \(|tokeniz\w*|filter\w*|build\w*|compil\w*|captur\w*|sav(?:e|ing)|extract\w*"
    r"|warm-?up\w*|cach\w*|preload\w*|prepar\w*|preprocess\w*|read\w*|pack\w*|upload\w*|import\w*|convert\w*|collect\w*|adding"
    r"|generating \w+ split|install\w*|pull\w*|copy\w*|加载|下载|预处理|读取",
    re.IGNORECASE,
)
_SI = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class Reading(NamedTuple):
    """One number that may count work, on one line.

    name: tells series apart. unit: the word beside it, in the singular and lower case ("" if none).
    context: "", "eval" or "load": what the words around it speak of.
    """

    name: str
    kind: Kind
    value: float
    total: float | None = None
    unit: str = ""
    context: str = ""


class Pulse(NamedTuple):
    """What else a line says about speed: the ETA and elapsed time in seconds, units per second of a bar."""

    eta_s: float | None = None
    elapsed_s: float | None = None
    rate_per_s: float | None = None


class Keyed(NamedTuple):
    """A key with a number: `key` as written, `before` the words ahead of it, `value` may be NaN or infinite."""

    key: str
    before: str
    value: float
    start: int
    end: int
    sep: str = " "


def keyed(text: str) -> list[Keyed]:
    """All `key: number` pieces of a line, at most `NUMBERS_PER_LINE_MAX`."""
    found: list[Keyed] = []
    for match in _KEYED.finditer(text):
        before = text[max(0, match.start() - 40) : match.start()]
        note = match["note"] or ""
        key = f"{match['key']} {note}" if note.isalpha() and note.islower() else match["key"]
        found.append(Keyed(key, before, _number(match["value"]), match.start(), match.end(), match["sep"].strip()[:1].replace("：", ":") or " "))
        if len(found) >= NUMBERS_PER_LINE_MAX:
            break
    return found


def readings(text: str, pieces: list[Keyed]) -> list[Reading]:
    """Every number on the line that may count work. `pieces` is what `keyed` found on the same line."""
    if not any(map(str.isdigit, text)):
        return []
    bars = [*_bars(text), *_ordinals(text)]
    found = [reading for _, _, reading in bars]
    spans = [(start, end) for start, end, _ in bars]
    pairs = [(start, end, reading) for start, end, reading in _pairs(text) if not _covered(start, spans)]
    found.extend(reading for _, _, reading in pairs)
    spans.extend((start, end) for start, end, _ in pairs)
    found.extend(_units(text, pieces, spans))
    found.extend(_others(text, found))
    return found


def pulse(text: str) -> Pulse:
    """ETA, elapsed time and speed as the line itself shows them."""
    eta = elapsed = None
    if times := _last(_TIMES, text):
        eta, elapsed = duration_s(times["eta"]), duration_s(times["elapsed"])
    elif written := _last(_ETA, text):
        eta = duration_s(written["eta"])
    return Pulse(eta, elapsed, _rate(text))


def words(key: str) -> list[str]:
    """A key cut into lower-case words: `train/globalStep_idx` -> train, global, step, idx."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", key)
    return [word for word in re.split(r"[^0-9A-Za-z\u4e00-\u9fff]+", spaced.lower()) if word]


def unit_of(word: str) -> str:
    """The canonical unit of a word: step, epoch, episode, batch, or the item word in the singular; else ""."""
    if word in STEP_WORDS:
        return "step"
    if word in EPOCH_WORDS:
        return "epoch"
    if word in EPISODE_WORDS:
        return "episode"
    if word in BATCH_WORDS:
        return "batch"
    return word.removesuffix("s") if word in ITEM_WORDS else ""


def _bars(text: str) -> Iterator[tuple[int, int, Reading]]:
    if "%" in text:
        for match in _TQDM.finditer(text):
            label = _label(text[max(0, match.start() - 100) : match.start()])
            total = _scaled(match["N"], match["Nu"])
            value = _scaled(match["n"], match["nu"])
            name = f"bar:{_generic(label)}" if label else f"bar/{total:g}"
            unit = _unit_in(label) if _is_unit_label(label) else ""
            yield match.start(), match.end(), Reading(name, "bar", value, total, unit, _context(label))
    if "[" in text and (match := _TQDM_OPEN.search(text)):
        label = _label(text[max(0, match.start() - 60) : match.start()])
        name = f"bar:{_generic(label)}"
        yield match.start(), match.end(), Reading(name, "bar", _scaled(match["n"], match["nu"]), None, "", _context(label))
    if text[:3].lstrip()[:1].isdigit() and (match := _CURL.match(text)):
        yield 0, len(text), Reading("percent", "percent", float(match["pct"]), 100.0, "percent", "load")
    elif "K ....." in text and (match := _WGET_DOTS.match(text)):
        yield 0, len(text), Reading("kib", "bytes", float(match["n"]), None, "KiB", "load")
    elif text.startswith("Length: ") and (match := _WGET_LENGTH.match(text)):
        yield 0, len(text), Reading("length", "quota", round(float(match["n"]) / 1024), None, "KiB", "load")


def _pairs(text: str) -> Iterator[tuple[int, int, Reading]]:
    for count, match in enumerate(_PAIR.finditer(text)):
        if count >= NUMBERS_PER_LINE_MAX:
            return
        value, total = _scaled(match["n"], match["nu"]), _scaled(match["N"], match["Nu"])
        before = text[max(0, match.start() - 60) : match.start()]
        near = before[-32:] + match["tail"]
        if total <= 0 or value > total * 1.2 + 1 or _DATE_PAIR.match(text, match.start()):
            continue
        if _DENIED.search(near) or _METRIC.search(near):
            continue
        unit_text = (match["nu"] + match["Nu"]).strip()
        size = unit_text.endswith(("B", "b", "bytes")) or match["tail"].strip() in ("B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "kB")
        label = _label(before)
        unit = (_unit_in(label) if _is_unit_label(label) else "") or unit_of(match["tail"].strip().lower())
        name = _generic(label) or unit or "pair"
        kind: Kind = "bytes" if size else "pair"
        if size and match["nu"].strip() == "" and match["Nu"].strip() != "":
            value = _scaled(match["n"], match["Nu"].strip())
        if not size and unit in ("step", "epoch", "episode", "batch") and _is_unit_label(label):
            kind, name = "unit", _unit_name(label)
        yield match.start(), match.end(), Reading(name, kind, value, total, unit, _context(label))
    if "bytes" in text and (match := _RECEIVED.search(text)):
        yield match.start(), match.end(), Reading("bytes", "bytes", _number(match["n"]), _number(match["N"]), "byte", "load")


def _units(text: str, pieces: list[Keyed], spans: list[tuple[int, int]]) -> Iterator[Reading]:
    for piece in pieces:
        if _covered(piece.end - 1, spans) or not math.isfinite(piece.value) or piece.value < 0:
            continue
        reading = _unit_reading(text, piece)
        if reading is not None:
            yield reading


def _ordinals(text: str) -> Iterator[tuple[int, int, Reading]]:
    for match in _ORDINAL.finditer(text) if "第" in text else ():
        total = _number(match["N"]) if match["N"] else None
        unit = unit_of(match["unit"]) or "item"
        context = _context(text[: match.start()][-40:])
        yield match.start(), match.end(), Reading(unit, "unit", _number(match["n"]), total, unit, context)


def _unit_reading(text: str, piece: Keyed) -> Reading | None:
    """A keyed number as a reading: by its unit word, or as an unnamed word whose value may turn out to rise."""
    ahead = [word.lower() for word in found[0].split()] if (found := _AHEAD.search(piece.before)) else []
    tokens = words(piece.key)
    if ahead and tokens and set(tokens) <= _POSITION_WORDS:
        tokens = [*words(ahead.pop()), *tokens]
    near = " ".join([*ahead, piece.key])
    if not tokens or _SOURCE_FILE.search(piece.key) or _DENIED.search(near) or _is_measured(text, piece.end):
        return None
    base = len(tokens)
    while base > 1 and tokens[base - 1] in _POSITION_WORDS:
        base -= 1
    unit = unit_of(tokens[base - 1])
    integral = piece.value.is_integer()
    if not unit:
        if not integral or _NOT_WORD.search(piece.key) or _METRIC.search(near):
            return None
        return Reading("_".join([*ahead[-1:], *tokens]), "word", piece.value, None, "", _context(near))
    if not integral and unit != "epoch":
        return None
    if unit in _UNITS_OF_WORK and _RESTORED.search(text[max(0, piece.start - 28) : piece.start]):
        return None
    return _judged(tokens, base, ahead, unit, piece, near)


def _judged(
    tokens: list[str], base: int, ahead: list[str], unit: str, piece: Keyed, near: str
) -> Reading | None:
    """A unit word with its qualifiers: a counter, a goal, or a setting (None)."""
    setting = piece.sep in ":=.|" and bool(ahead)
    qualifiers = {*tokens[: base - 1], *tokens[base:], *(ahead if setting else ())}
    if qualifiers & _CONFIG_WORDS or (ahead and ahead[-1] in _CONFIG_AHEAD):
        return None
    word = tokens[base - 1]
    plural = word.endswith("s") and word not in ("its", "ts")
    goal = plural or bool(qualifiers & _GOAL_WORDS) or (bool(ahead) and ahead[-1] in _GOAL_WORDS)
    name = "_".join([*(ahead if setting and goal else ()), *tokens])
    if unit not in _UNITS_OF_WORK:
        return Reading(name, "word", piece.value, None, unit, _context(near))
    return Reading(name, "quota" if goal else "unit", piece.value, None, unit, _context(near))


def _is_measured(text: str, end: int) -> bool:
    """A number with a unit of time or size behind it measures something and counts nothing."""
    return _MEASURE.match(text, end) is not None


def _others(text: str, found: list[Reading]) -> Iterator[Reading]:
    """Percentages, countdowns, `N units`, and a bare number at the line start, where nothing better stands."""
    if "%" in text and not any(reading.kind in ("bar", "percent") or reading.name == "kib" for reading in found):
        for match in list(_PERCENT.finditer(text, 0, 4000))[:8]:
            before = text[max(0, match.start() - 40) : match.start()]
            value = float(match["pct"])
            if value <= 105 and not _METRIC.search(before) and not _DENIED.search(before):
                yield Reading("percent", "percent", value, 100.0, "percent", _context(before))
                break
    for match in _COUNTDOWN.finditer(text, 0, 2000):
        what = (match["what"] or match["what2"]).lower()
        if what not in ("seconds", "second", "s", "sec", "ms", "minutes", "time", "times", "retries", "tries", "attempts", "hours", "is", "are"):
            yield Reading(f"left:{what}", "countdown", _number(match["n"]), None, what.removesuffix("s"), "")
    if not found:
        for match in list(_AFTER.finditer(text, 0, 2000))[:4]:
            unit = unit_of(match["unit"].lower())
            if unit and not _DENIED.search(text[:200]):
                name = f"count:{unit}"
                goal = re.search(r"\b(?:for|max|total|of|run|running)\b|训练", text[max(0, match.start() - 24) : match.start()])
                yield Reading(name, "quota" if goal else "word", _number(match["n"]), None, unit, _context(text[:60]))
        if (match := _BARE.match(text)) is not None:
            yield Reading("bare", "bare", float(match["n"]))


def _rate(text: str) -> float | None:
    if fast := _last(_RATE, text):
        return _number(fast["r"]) * (1e3 if fast["what"].startswith("k") else 1.0)
    found = _last(_SLOW_RATE, text) or _last(_PER_ITERATION, text)
    if not found:
        return None
    groups = found.groupdict()
    unit = groups.get("u") or groups.get("u2") or "s"
    seconds = _number(found["r"]) * {"ms": 1e-3, "min": 60.0}.get(unit, 1.0)
    return 1.0 / seconds if seconds > 0 else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for count, found in enumerate(pattern.finditer(text)):
        if count >= NUMBERS_PER_LINE_MAX:
            break
    return found


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _scaled(number: str, suffix: str | None) -> float:
    """`6.41` with `k` is 6410; rounded where the factor makes digits that nobody wrote."""
    suffix = (suffix or "").strip()
    factor = _SI.get(suffix[:1], 1.0)
    if suffix[1:2] == "i":
        factor = 1024.0 ** round(math.log10(factor) / 3)
    return round(_number(number) * factor, 6) if factor != 1.0 else _number(number)


def _label(before: str) -> str:
    """The words that stand right before a number: without brackets and signs, at most four."""
    bare = before.rstrip(" \t:=[(#|-_*\"'<>.,，：").rsplit("]", 1)[-1].rsplit("|", 1)[-1]
    found = re.search(r"[A-Za-z_\u4e00-\u9fff][\w.\-/()=]*(?: [\w.\-/()=]+){0,3}$", bare[-60:])
    return found[0] if found else ""


def _label_words(label: str) -> list[str]:
    return [word for word in words(label) if not word.isdigit()]


def _is_unit_label(label: str) -> bool:
    """The label ends with the unit itself (`step`, `Epoch`, `global step`), so the number is its value."""
    found = words(label)
    return bool(found) and bool(unit_of(found[-1]))


def _unit_name(label: str) -> str:
    """`INFO Training global step` -> `global_step`: the unit with the word before it, if that qualifies it."""
    found = words(label)
    return "_".join(found[-2:] if len(found) > 1 and found[-2] in _COUNTER_QUALIFIERS else found[-1:])


def _unit_in(label: str) -> str:
    for word in reversed(_label_words(label)):
        if unit := unit_of(word):
            return unit
    return ""


def _generic(label: str) -> str:
    """A label that stays the same while its numbers change."""
    return re.sub(r"\d+", "#", label)[:60].strip()


def _context(near: str) -> str:
    if EVAL_CONTEXT.search(near):
        return "eval"
    return "load" if LOAD_CONTEXT.search(near) else ""


def _covered(at: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= at < end for start, end in spans)
