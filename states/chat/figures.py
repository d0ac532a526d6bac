"""The figures and values of a message: GPUs, replicas, lane, priority, group, lines, image, mounts, limits.

GPUs are per replica (C9): `2 nodes, 16 cards` is 8 each; `16 cards` alone stays 16, since how they are spread is for
sizing, never for the chat to shrink.

Never: a figure that the message does not give.
"""

from __future__ import annotations

import re
from typing import Any

from states.chat.marked import FILE, GROUP, VALUE, Marked

_DIGITS = {
    "零": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "双": 2,
    "单": 1,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
}
_SPELLED = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split(),
    )
} | {
    "sixteen": 16,
    "single": 1,
    "half a dozen": 6,
    "a": 1,
    "an": 1,
    "dual": 2,
    "twenty": 20,
    "thirty": 30,
    "fifty": 50,
    "hundred": 100,
    "thirty-two": 32,
    "sixty-four": 64,
    "couple": 2,
}
COUNT = r"(?:\d{1,5}|[零一二两双单三四五六七八九十百千]{1,6}|(?:" + "|".join(_SPELLED) + r")(?![a-z]))"
_GPU = re.compile(
    rf"(?<![\w.])({COUNT}) ?(?:x|\*|×|more|free|idle|spare|of those|张|块"
    rf"|个)? ?(?:nvidia )?(?:[hav]\d{{2,3}}s?|4090s?|gpus?|cards?|卡|显卡|张卡"
    rf"|块卡)(?![a-z])",
    re.ASCII,
)
_NODES = re.compile(
    rf"(?<![\w.])({COUNT}) ?(?:x |个|台)?(?:nodes?|machines?|replicas?|servers?|机"
    rf"|节点|台机器|机器|副本|台)(?![a-z])",
    re.ASCII,
)
_TIMES = re.compile(
    rf"(?<![\w.])({COUNT}) ?(?:x|\*|×|乘) ?({COUNT})(?: ?(?:gpus?|卡|张|[hav]\d{{2,3}}))?(?![\w.])", re.ASCII
)
_EACH = re.compile(
    r"(?<![a-z])(?:each|per (?:node|replica|machine)|a node|apiece|/ ?node)(?![a-z])"
    r"|每(?:台|个|机|节点|副本|个节点)|各"
)
_TYPE = re.compile(
    r"(?<![a-z0-9])([hav]\d{2,3}|a800|h800|h20|l40s?|4090|3090|mi300x?)s?(?![a-z0-9])", re.ASCII
)
_PRIORITY = re.compile(
    r"(?:priority|prio|优先级)(?: ?(?:of|to|is|=|:|设为|为|调到|是))? ?(\d)(?!\d)", re.ASCII
)
_IDLE = re.compile(
    r"(?<![a-z])(?:idle|preemptible|spot|best-?effort|opportunistic)(?: (?:lane"
    r"|queue|job|task|tab|pool|priority))?(?![a-z])|闲时|空闲(?:任务|队列|通道)"
    r"|可抢占"
)
_NORMAL = re.compile(
    r"(?<![a-z])(?:normal|regular|standard)(?: (?:lane|queue|job|task|tab"
    r"|priority))?(?![a-z])|常规(?:任务|队列)?|普通(?:任务|队列)?"
)
_LINES = re.compile(
    rf"(?<![\w.])(?P<count>{COUNT}) ?(?:more |log |last )?(?:lines?|行|rows?|ll)(?![a-z])"
    rf"|(?:tail|last|-n|--lines[ =]?|head|最后|末尾|后"
    rf"|lines?) ?-?n? ?-?(?P<count2>\d{{1,6}})(?![\w.%]| ?(?:gpu|min|hour|h\b|s\b"
    rf"|step|epoch|卡|步|分|小))",
    re.ASCII,
)
_NEGATIVE = re.compile(r"(?<!tail )(?<!head )(?<!\w)-\d|minus |负", re.ASCII)
_BARE = re.compile(
    r"(?<![a-z])(?:can|could|do) (?:i|we) (?:get|have|grab|use|take|run|fit"
    r"|squeeze in) (\d{1,4})(?![\w.])|(?<![a-z])(?:need|want"
    r"|require) (\d{1,4})(?![\w.]| ?(?:more |log )?lines?)",
    re.ASCII,
)
_CPU = re.compile(rf"({COUNT}) ?(?:cpus?|cpu cores?|cores?|核)(?![a-z])", re.ASCII)
_MEMORY = re.compile(
    r"(\d{1,6}) ?(t|g|m)i?b?(?: (?:of )?(?:memory|ram|mem)|内存| 内存)|(?:memory|mem"
    r"|ram|内存)[ :=]*(\d{1,6}) ?(t|g|m)i?b?",
    re.ASCII,
)
_NAMED = re.compile(
    r"(?:name it|named|call it|called|as job|--name[ =]|名字叫|取名|命名为?"
    r"|叫做?) ?([a-z][a-z0-9-]{1,39})(?![a-z0-9-])",
    re.ASCII,
)
_PURPOSE = re.compile(
    r"(?:(?<![a-z])for|用于|给|做)(?: the| our)? ?([a-z][a-z0-9_-]{1,30}|评测|训练"
    r"|预训练|微调|推理)(?: (?:jobs?|runs?|work|training))?$",
    re.ASCII,
)
_STOP_IF = re.compile(
    r"((?:stop|kill|停)[^,.;]*?(?:if|when|once|after|at)\b[^,.;]*|(?:如果|要是|一旦)[^,;]*?(?:停|杀)\S*)",
    re.ASCII,
)
MIB = {"m": 1, "g": 1024, "t": 1024 * 1024}


def count_of(text: str) -> int:
    """A number in digits, English or Chinese. ValueError for no number."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text)
    if text in _SPELLED:
        return _SPELLED[text]
    total = unit = 0
    for sign in text:
        if sign in _DIGITS:
            unit = _DIGITS[sign]
        elif sign in "十百千":
            total += (unit or 1) * {"十": 10, "百": 100, "千": 1000}[sign]
            unit = 0
        else:
            raise ValueError(text)
    return total + unit


def resources(said: Marked) -> dict[str, Any]:
    """What a run or a capacity question asks for: gpu, replicas, cpu, memory_mib, gpu_type, lane, group, ..."""
    text = said.text
    slots: dict[str, Any] = {}
    slots |= _gpus(text)
    for name, found in (("gpu_type", _TYPE.search(text)), ("name", _NAMED.search(text))):
        if found:
            slots[name] = found[1].upper() if name == "gpu_type" else found[1]
    slots |= {_FLAGS.get(flag, flag): int(number) for flag, number in _FLAG.findall(text)}
    priority, cpu = _PRIORITY.search(text), _CPU.search(text)
    if priority:
        slots["priority"] = int(priority[1])
    if cpu:
        slots["cpu"] = count_of(cpu[1])
    memory = _MEMORY.search(text)
    if memory:
        slots["memory_mib"] = int(memory[1] or memory[3]) * MIB[memory[2] or memory[4]]
    lane = "idle" if _IDLE.search(text) else "normal" if _NORMAL.search(text) else ""
    if lane:
        slots["lane"] = lane
    if said.of(GROUP):
        slots["group"] = said.of(GROUP)[0].text
    return slots


_FLAG = re.compile(r"--(gpus?|replicas|nodes|priority)[ =](\d{1,5})", re.ASCII)
_FLAGS = {"gpus": "gpu", "nodes": "replicas"}


def lane_of(text: str) -> str:
    """The lane that a text names; "" for none."""
    return "idle" if _IDLE.search(text) else "normal" if _NORMAL.search(text) else ""


def _gpus(text: str) -> dict[str, Any]:
    """GPUs per replica, and replicas where several are asked for."""
    text = re.sub(r"(?<!\S)last \d+ lines?", " ", text)
    times, nodes, gpus = _TIMES.search(text), _NODES.search(text), _GPU.search(text)
    if times and not (nodes and gpus):
        first, second = count_of(times[1]), count_of(times[2])
        return {"gpu": second} | ({"replicas": first} if first > 1 else {})
    found: dict[str, Any] = {}
    bare = _BARE.search(text)
    if bare and not gpus:
        return {"gpu": int(bare[1] or bare[2])}
    if gpus:
        found["gpu"] = count_of(gpus[1])
    if nodes:
        replicas = count_of(nodes[1])
        if replicas > 1:
            found["replicas"] = replicas
            if (
                gpus
                and not _EACH.search(text)
                and found["gpu"] % replicas == 0
                and nodes.start() != gpus.start()
            ):
                found["gpu"] //= replicas if not _per_node(found["gpu"], replicas) else 1
    return found


def _per_node(gpu: int, replicas: int) -> bool:
    """A figure too small to be a total over the nodes is meant for each."""
    return gpu < replicas


def lines_of(text: str) -> int | None:
    """How many log lines are wanted; negative as written; None if the message does not tell."""
    found = _LINES.search(text)
    if not found:
        return None
    sign = -1 if _NEGATIVE.search(text) else 1
    return sign * count_of(found["count"] or found["count2"])


def places(said: Marked) -> dict[str, Any]:
    """The mounts, the image, the proxy and the request file that a run names."""
    slots: dict[str, Any] = {}
    mounts: list[str] = []
    for piece in said.of(VALUE):
        if is_image(piece.text):
            slots["image"] = piece.text
        elif "://" in piece.text:
            slots["proxy"] = piece.text
        else:
            mounts.append(piece.text)
    if mounts:
        slots["mounts"] = ",".join(mounts)
    if said.of(FILE):
        slots["request"] = said.of(FILE)[0].text
    return slots


def is_image(text: str) -> bool:
    """Whether a value reads as an image reference: no URL, no path, with a tag, a digest or a registry."""
    if "://" in text or text.startswith(("/", "~", ".")):
        return False
    last = text.rpartition("/")[2]
    return "@sha256:" in text or (":" in last and not re.fullmatch(r"[\w.-]+:\d{2,5}", text)) or "/" in text


def purpose_of(text: str) -> str:
    """The kind of work that a message names at its end (`... for sft`); "" for none."""
    found = _PURPOSE.search(text.strip())
    return found[1] if found else ""


def stop_if(text: str) -> str:
    """The condition under which the person wants a run stopped, in their words; "" if none is said."""
    found = _STOP_IF.search(text)
    return found[1].strip() if found else ""
