"""The words that tell what a number counts: units of work, goals, settings, and what is never work.

Vocabulary only, English and Chinese, taken from what the training and serving frameworks of issue 4 print.
A number beside a word of `_DENIED` or `_MEASURED` rises without anything getting done (finding 7).

Never: a word that occurs in one program only.
"""

from __future__ import annotations

import functools
import re
from typing import Literal

from states.logs.shapes import per_shape, shape

Context = Literal["", "eval", "load"]

UNITS_OF_WORK = ("step", "epoch", "episode", "batch")
"""Units that a training run itself is counted in; all others count items."""

_STEPS = frozenset(
    "step steps iter iters iteration iterations it its update updates timestep timesteps ts"
    " 步 步数 迭代 迭代次数 训练步数".split()
)
_EPOCHS = frozenset("epoch epochs ep eps 轮 轮次 轮数 回合".split())
_EPISODES = frozenset(
    "episode episodes rollout rollouts game games trial trials generation generations round rounds 代".split()
)
_BATCHES = frozenset("batch batches minibatch batchid batchidx 批 批次".split())
_ITEMS = frozenset(
    "sample samples example examples request requests task tasks taskid file files item items document"
    " documents doc docs prompt prompts question questions image images video videos frame frames record"
    " records row rows chunk chunks page pages stage job jobs sequence sequences test tests case cases"
    " target targets shard shards part parts node nodes query queries"
    " molecule molecules structure structures conversation conversations"
    " agent agents 样本 文件 条 张 个".split()
)
TOTAL_WORDS = frozenset("max maximum total target planned final".split())
GOAL_WORDS = frozenset("num nb number count".split())
POSITION_WORDS = frozenset(
    "id idx index num no number count i start end begin started ended done finished".split()
)
"""Words behind a unit that leave it the unit: `task_id start: 12` counts tasks."""

COUNTER_QUALIFIERS = frozenset("global warmup current inner outer env train 全局 当前".split())
SETTING_WORDS = frozenset(
    "save saving eval logging log accumulation per every interval freq frequency checkpoint ckpt decay ema"
    " warmup warm start resume initial first best patience last size len length limit keep gradient grad lr"
    " scheduler between after before delay offset rollback skip skipped ignore minimum min ref sync cooldown"
    " ramp ramping time parallel worker workers device".split()
)
SETTING_AHEAD = frozenset("every per each last first next of after within".split())
COUNTDOWN_OF_TIME = frozenset(
    "seconds second s sec secs ms minutes minute min hours hour days time times retries retry tries"
    " attempts is are was be".split()
)

_DENIED = re.compile(
    r"attempt|retr(?:y|ies)|\btries\b|\btry\b|restart|reconnect|backoff|heartbeat|keep-?alive|elapsed|waited"
    r"|uptime|sleep|time-?out|重试|尝试|心跳|等待",
    re.IGNORECASE,
)
_RESTORED = re.compile(
    r"resum\w*|restor\w*|load(?:ed|ing)?|continu\w+|start(?:ing|ed)? (?:\w+ )?(?:from|at)"
    r"|from (?:\w+ )?(?:step|iteration|epoch)|rollback|roll\w* back|checkpoint|ckpt|sav(?:e|ed|ing)|snapshot"
    r"|best|恢复|加载|保存",
    re.IGNORECASE,
)
_MEASURED = re.compile(
    r"(?<![a-z])(?:mem|memory|vram|ram|gpus?|cuda|cpu|disk|quota|util\w*|usage|cache|free|avail\w*|acc|accuracy"
    r"|correct|score|reward|recall|precision|f1|hits?|passed|failed|rank|local_rank|world|version|ratio|sparsity"
    r"|mfu|clip|win|temp|power|errors?|loss|prob|params|trainable|port|pid|confidence|threshold|dropout|up to"
    r"|limit|layers?|heads?|显存|内存|准确)(?![a-z])",
    re.IGNORECASE,
)
_NO_COUNT = re.compile(
    r"process|time|elapsed|sec|second|ms$|eta$|pid|tid|port|attempt|retr|tries|wait|heartbeat|uptime|age$|stamp"
    r"|wall|duration|hour|minute|mem|bytes|[kmg]i?b$|free|used|cpu|gpu|cuda|temp|power|line|version|code|status|err"
    r"|broadcast|block|piece|thread|reward|acc|score|norm|lr$|rate|loss|size|len|rank|world|seed|scale|dim|width"
    r"|height|ip$|host|address|offset|date|day|year|month|info|warn|debug|python|level|took"
    r"|(?<![a-z])(?:in|to|from|of|for|with|and|at|on|by|is)$|reducing|fps|speed|throughput|flops|grad|value|mean|std|max|min|avg"
    r"|received|expected|http|got|remaining|left|entropy|kl$|id_$|uid|addr|0x|epsilon|beta|gamma",
    re.IGNORECASE,
)
_EVAL = re.compile(
    r"(?<![a-z])(?:eval\w*|valid\w*|val|test\w*|infer\w*|predict\w*|sanity|bench\w*|generating|sampling"
    r"|评估|验证|测试|推理)(?![a-z])",
    re.IGNORECASE,
)
_LOAD = re.compile(
    r"load\w*|shards?|download\w*|fetch\w*|resolv\w*|\bmap\b|tokeniz\w*|filter\w*|build\w*|compil\w*|captur\w*"
    r"|sav(?:e|ing)|extract\w*|warm-?up\w*|cach\w*|prepar\w*|preprocess\w*|read\w*|pack\w*|upload\w*|import\w*"
    r"|convert\w*|collect\w*|adding|generating \w+ split|install\w*|pull\w*|copy\w*|加载|下载|预处理|读取",
    re.IGNORECASE,
)
_SOURCE_FILE = re.compile(r"\.(?:py|pyx|cc?|cpp|cxx|cu|h|hpp|rs|go|java|scala|js|ts|sh|jl)$")
_CAMEL = re.compile(r"([a-z])([A-Z])")
_KEPT = 4_096
"""Words and short labels whose meaning is remembered: a log uses the same ones on every line."""

_BETWEEN_WORDS = re.compile(r"[^0-9A-Za-z\u4e00-\u9fff]+")


def words(key: str) -> list[str]:
    """A key cut into lower-case words: `train/globalStep_idx` -> train, global, step, idx."""
    return list(_words(key))


@functools.lru_cache(maxsize=_KEPT)
def _words(key: str) -> tuple[str, ...]:
    return tuple(word for word in _BETWEEN_WORDS.split(_CAMEL.sub(r"\1 \2", key).lower()) if word)


@functools.lru_cache(maxsize=_KEPT)
def unit_of(word: str) -> str:
    """The canonical unit of a word: one of UNITS_OF_WORK, or an item word in the singular; else ""."""
    for unit, names in zip(UNITS_OF_WORK, (_STEPS, _EPOCHS, _EPISODES, _BATCHES), strict=True):
        if word in names:
            return unit
    return word.removesuffix("s") if word in _ITEMS else ""


def is_plural(word: str) -> bool:
    """Whether a unit word speaks of many (`epochs: 12` is a goal, `epoch: 12` a position)."""
    return word.endswith("s") and word not in ("its", "ts")


def denied(near: str) -> bool:
    """Whether the words near a number make it an attempt, a wait or a sign of life: never work (E5)."""
    return _denied(shape(near))


def restored(near: str) -> bool:
    """Whether the words near a number make it the point a run was saved at or resumed from."""
    return _restored(shape(near))


@per_shape
def _denied(of: str) -> bool:
    return _DENIED.search(of) is not None


@per_shape
def _restored(of: str) -> bool:
    return _RESTORED.search(of) is not None


@functools.lru_cache(maxsize=_KEPT)
def measured(near: str) -> bool:
    """Whether the words near a number make it a size, a score or an address."""
    return _MEASURED.search(near) is not None


@functools.lru_cache(maxsize=_KEPT)
def countable(key: str) -> bool:
    """Whether a key without a unit word may still name a count; if it rises evenly it is taken for one."""
    return _NO_COUNT.search(key) is None and _SOURCE_FILE.search(key) is None


@functools.lru_cache(maxsize=_KEPT)
def from_source_file(key: str) -> bool:
    """Whether a key is a file name, so that the number behind it is a line of code (`launch.py:256`)."""
    return _SOURCE_FILE.search(key) is not None


def context(near: str) -> Context:
    """What the words around a number speak of: evaluation, loading and fetching, or neither."""
    return _context(shape(near))


@per_shape
def _context(of: str) -> Context:
    if _EVAL.search(of):
        return "eval"
    return "load" if _LOAD.search(of) else ""
