"""The world a message is said in: the runs that are known and the questions that are put.

Never: read a store; whoever calls says what there is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from states.questions import Language, Question, option_text
from states.reading import Frozen

ENDED = frozenset(
    "succeeded success complete completed done finished ended failed error errored dead stopped cancelled canceled "
    "killed aborted deleted gone unknown not_submitted rejected lost timeout oom preempted".split()
)
"""Words for a state in which nothing of the run is live any more."""
CLOSED = frozenset("closed answered defaulted withdrawn expired late over".split())

_MARKS = re.compile(r"^\s*(?:\[\d+\]|\d+[.)])\s*|\((?:default|free[ _-]?text|默认|自由文本)\)", re.IGNORECASE)
_FREE = re.compile(r"\(free[ _-]?text\)|<\w+>", re.IGNORECASE)
_TAKES_VALUE = re.compile(r"\b(?:path|proxy|image|address|url)\b|路径|代理|镜像|地址", re.IGNORECASE)


def state_word(state: str) -> str:
    """The state itself without what is told about it: `failed two hours ago` is `failed`."""
    words = re.findall(r"[^\W_]+", state.lower())
    return "_".join(words[:2]) if words[:1] == ["not"] else words[0] if words else ""


class Seen(Frozen):
    """A run. state: the word the board shows for it; anything that is no word for an end counts as live."""

    name: str
    state: str = "running"

    @property
    def live(self) -> bool:
        return state_word(self.state) not in ENDED


class Option(Frozen):
    """One option. texts: its words in each language; value: what it must be given ("" for nothing)."""

    texts: tuple[str, ...]
    key: str = ""
    value: str = ""


class Asked(Frozen):
    """A question. default: number of the option that is carried out at the deadline, 1-based, 0 if not told.

    free_text: a value answers it although no option says so. open: False once it is answered or too late (G4).
    """

    id: str
    job: str = ""
    options: tuple[Option, ...] = ()
    default: int = 0
    free_text: bool = False
    open: bool = True


class Context(Frozen):
    """Runs and questions. groups: the configured ones, never shown (B3). language: of the person's settings."""

    jobs: tuple[Seen, ...] = ()
    questions: tuple[Asked, ...] = ()
    groups: tuple[str, ...] = ()
    language: Language = "en"

    @property
    def open(self) -> tuple[Asked, ...]:
        return tuple(question for question in self.questions if question.open)

    @property
    def live(self) -> tuple[str, ...]:
        """Names of the live runs. One that a question is open on is live, whatever its state is called."""
        asked = {question.job for question in self.open}
        return tuple(job.name for job in self.jobs if job.live or job.name in asked)

    def state_of(self, name: str) -> str:
        """The state's word of a run; "" for one that is not known."""
        return next((job.state for job in self.jobs if job.name == name), "")


def asked(question: Question, job: str) -> Asked:
    """A question of a run as a chat sees it; options in both languages, since a person may write either."""
    options = question.template.options
    return Asked(
        id=question.id,
        job=job,
        options=tuple(
            Option(
                texts=(option_text(option, "en"), option_text(option, "zh"), option.key),
                key=option.key,
                value=option.value,
            )
            for option in options
        ),
        default=1 + [option.key for option in options].index(question.template.default),
        open=question.is_open,
    )


# --- as JSON ------------------------------------------------------------------------------------------------


def context_of(data: object) -> Context:
    """A context from JSON: `{jobs: [{name, state}], questions: [{id, job, options, default, free_text}]}`.

    Options are texts or objects with `key`/`text`/`value`; default is a number or an option's text; free_text is a
    flag or the numbers of the options that take a value. Raises ValueError with the field that is wrong.
    """
    if data is None:
        return Context()
    if not isinstance(data, Mapping):
        raise ValueError("context must be an object with `jobs` and `questions`")
    return Context(
        jobs=tuple(_job(one) for one in _listed(data, "jobs")),
        questions=tuple(_question(one) for one in _listed(data, "questions")),
        groups=tuple(str(group) for group in _listed(data, "groups")),
    )


def _listed(data: Mapping[Any, Any], field: str) -> list[Any]:
    value = data.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"context.{field} must be a list")
    return value


def _job(data: object) -> Seen:
    if isinstance(data, str):
        return Seen(name=data)
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str) or not data["name"]:
        raise ValueError("each of context.jobs needs a `name`")
    return Seen(name=data["name"], state=str(data.get("state") or "running"))


def _question(data: object) -> Asked:
    if not isinstance(data, Mapping) or not isinstance(data.get("id"), str | int):
        raise ValueError("each of context.questions needs an `id`")
    given = data.get("options") or []
    if isinstance(given, Mapping):
        given = list(given.values())
    if not isinstance(given, list):
        raise ValueError(f"options of question {data['id']} must be a list")
    free = data.get("free_text")
    options = [_option(one) for one in given]
    marked = _numbers(free, options)
    options = [
        option if number not in marked or option.value else option.model_copy(update={"value": "value"})
        for number, option in enumerate(options, start=1)
    ]
    state = str(data.get("state") or data.get("status") or "").lower()
    is_open = not (state in CLOSED or data.get("closed") or data.get("open") is False)
    return Asked(
        id=str(data["id"]),
        job=str(data.get("job") or ""),
        options=tuple(options),
        default=_default(data.get("default"), options),
        free_text=bool(free) and not any(option.value for option in options),
        open=is_open,
    )


def _option(data: object) -> Option:
    if isinstance(data, Mapping):
        texts = [str(data[name]) for name in ("text", "label", "en", "zh", "title", "key") if data.get(name)]
        takes = data.get("value") or data.get("free_text")
        key = str(data.get("key") or data.get("id") or "")
        return Option(
            texts=tuple(texts), key=key, value=takes if isinstance(takes, str) else "value" * bool(takes)
        )
    text = str(data)
    bare = _MARKS.sub("", text).strip()
    return Option(texts=(bare,), value="value" if _FREE.search(text) else "")


def _numbers(free: object, options: list[Option]) -> set[int]:
    """The options that a free-text flag speaks of: those named, else the only one whose words ask for a value."""
    if isinstance(free, bool) or free is None:
        asking = [
            n for n, option in enumerate(options, start=1) if _TAKES_VALUE.search(" ".join(option.texts))
        ]
        return set(asking) if free and len(asking) == 1 else set()
    wanted = free if isinstance(free, list) else [free]
    return {_default(one, options) for one in wanted} - {0}


def _default(value: object, options: list[Option]) -> int:
    """The number of the option meant; 0 if none is."""
    if isinstance(value, bool) or value is None:
        return 0
    if isinstance(value, int) or (isinstance(value, str) and value.isascii() and value.isdigit()):
        return int(value) if 1 <= int(value) <= len(options) else 0
    text = _MARKS.sub("", str(value)).strip().lower()
    for number, option in enumerate(options, start=1):
        if text and text in (option.key.lower(), *(one.lower() for one in option.texts)):
            return number
    return 0
