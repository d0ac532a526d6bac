"""Standing orders: what a person (or a site) answers beforehand, so that it is not asked, or not waited for, again.

A file of orders is plain data; `Standing` holds the site's below the person's, and each look-up says whose order it
was. What a request states itself goes before both. Orders make a default safer or quicker. They never make a delete,
a second live job or a stop on a guess: a default that stops needs the person's own file, and one that claims that
somebody has mended something is refused (`faults`).

Never: read a file or a clock; widen what the rules allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from states.answers import Choice, checked
from states.goals import StopCondition
from states.questions import QUESTIONS, Act, Option
from states.reading import Frozen
from states.words.nearest import did_you_mean

Layer = Literal["person", "site"]
Text = Annotated[str, Field(min_length=1)]

WHOSE: dict[Layer, str] = {"person": "your standing order", "site": "your site's standing order"}
"""The words by which a decision names the order that it followed."""

PERSON_ONLY = frozenset({Act.stop, Act.set_value, Act.go_on})
"""Acts that only the person whose run it is may order, unless they are the default anyway: a site does not stop or
change somebody's run, nor send it off in spite of a finding."""

NEVER_ORDERED: dict[tuple[str, str], str] = {
    ("smoke-failed", "as-is"): "a failed smoke run never costs the real submit (D4)",
    (
        "clear-case",
        "stop",
    ): "a job that was handed over is stopped only with leave in that request: `may_stop` (A10)",
}
"""Defaults that no order may set, each with its reason."""


def _known_kind(kind: str) -> str:
    if kind not in QUESTIONS:
        raise ValueError(f"there is no question {kind!r}; {did_you_mean(kind, QUESTIONS)}")
    return kind


def _clock_time(text: str) -> str:
    if not re.fullmatch(r"(?:[01]\d|2[0-3]):[0-5]\d", text):
        raise ValueError(f"must be a time of day as 22:00, not {text!r}")
    return text


class QuestionOrder(Frozen):
    """For one kind of question: the default that is carried out (with its value, where it takes one), and when.

    answer_s: seconds until the deadline.
    """

    default: Text | None = None
    value: Text | None = None
    answer_s: float | None = Field(default=None, gt=0, le=30 * 86_400)


class CapacityOrder(Frozen):
    """When a figure does not fit: wait so many seconds for an answer, then submit with `reduce_to` GPUs a replica;
    without `reduce_to` it is queued then, as always (C3, C4)."""

    wait_s: float = Field(gt=0, le=30 * 86_400)
    reduce_to: int | None = Field(default=None, ge=1)


class Budgets(Frozen):
    """restarts after a preemption; gpu_hours of one run; model_usd of a run's readings, model_usd_day of a day's."""

    restarts: int | None = Field(default=None, ge=0)
    gpu_hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    model_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    model_usd_day: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class QuietHours(Frozen):
    """Between these times of day nothing that can wait is sent to a channel that interrupts."""

    begin: Annotated[str, AfterValidator(_clock_time)] = Field(alias="from")
    end: Annotated[str, AfterValidator(_clock_time)] = Field(alias="to")
    zone: str = "UTC"


class WorkOrder(Frozen):
    """What is preferred for a kind of work: its purpose as requests state it, or `*` for every kind."""

    purpose: Text
    lane: Literal["normal", "idle"] | None = None
    image: Text | None = None

    @model_validator(mode="after")
    def _prefers_something(self) -> Self:
        if self.lane is None and self.image is None:
            raise ValueError("says nothing: give `lane` or `image`")
        return self


class Orders(Frozen):
    """One file of standing orders, all of it optional."""

    questions: dict[Annotated[str, AfterValidator(_known_kind)], QuestionOrder] = Field(default_factory=dict)
    capacity: CapacityOrder | None = None
    stop_when: tuple[StopCondition, ...] = ()
    budgets: Budgets = Budgets()
    quiet_hours: QuietHours | None = None
    work: tuple[WorkOrder, ...] = ()
    language: Literal["en", "zh"] | None = None

    def of_question(self, kind: str) -> QuestionOrder | None:
        """The order about a kind of question; `capacity` is one about the question of that name."""
        if kind == "capacity" and self.capacity is not None:
            to = self.capacity.reduce_to
            reduced = {"default": "reduce", "value": str(to)} if to else {}
            return QuestionOrder(answer_s=self.capacity.wait_s, **reduced)
        return self.questions.get(kind)


class Preference(NamedTuple):
    """A value that an order prefers, and in whose words it is said."""

    value: str
    by_order: str


class Standing(Frozen):
    """The orders in force: the site's below the person's."""

    site: Orders = Field(default_factory=Orders)
    person: Orders = Field(default_factory=Orders)

    def deadline_s(self, kind: str) -> tuple[float, str] | None:
        """(seconds, whose order) for the deadline of a kind of question."""
        for layer, orders in self._layers():
            order = orders.of_question(kind)
            if order is not None and order.answer_s is not None:
                return order.answer_s, WHOSE[layer]
        return None

    def default_of(self, kind: str, *, gpu: int, may_stop: bool) -> tuple[Choice, str] | None:
        """(what is carried out without an answer, whose order), or None for the built-in default.

        gpu: the figure as it is, which is only ever reduced (C3), so that an order cannot go round in circles.
        may_stop: False for a job that was handed over without leave to stop it (A10).
        """
        for layer, orders in self._layers():
            order = orders.of_question(kind)
            if order is None or order.default is None:
                continue
            choice = _choice(kind, order)
            if choice is None or (choice.option.act is Act.stop and not may_stop):
                continue
            if choice.option.value == "gpu" and int(choice.value) >= gpu:
                continue
            return choice, WHOSE[layer]
        return None

    def stop_when(self, *, gpu: int) -> tuple[tuple[StopCondition, str], ...]:
        """The conditions that end every run, with whose order each is; GPU-hours only for what has GPUs."""
        found = [
            (condition, WHOSE[layer]) for layer, orders in self._layers() for condition in orders.stop_when
        ]
        hours = self._budget("gpu_hours")
        if hours is not None and gpu:
            found.append((StopCondition(gpu_hours=hours[0]), hours[1]))
        return tuple(found)

    def restarts(self) -> tuple[int, str] | None:
        """(how often a preempted run is restarted, whose order)."""
        found = self._budget("restarts")
        return None if found is None else (int(found[0]), found[1])

    def model_usd(self) -> float | None:
        """What the readings of one run may cost."""
        found = self._budget("model_usd")
        return None if found is None else found[0]

    def model_usd_day(self) -> float | None:
        """What the readings of a day may cost."""
        found = self._budget("model_usd_day")
        return None if found is None else found[0]

    def preferred(self, field: Literal["lane", "image"], purpose: str) -> Preference | None:
        """The value for a kind of work: an order for this purpose before one for every kind."""
        for wanted in (folded(purpose), "*"):
            for layer, orders in self._layers():
                for work in orders.work:
                    value = getattr(work, field)
                    if wanted and folded(work.purpose) == wanted and value is not None:
                        return Preference(value, WHOSE[layer])
        return None

    @property
    def language(self) -> Literal["en", "zh"] | None:
        return self.person.language or self.site.language

    @property
    def quiet_hours(self) -> QuietHours | None:
        return self.person.quiet_hours or self.site.quiet_hours

    def for_a_run(self) -> Standing:
        """What a run needs to keep: the rest was used when it was delegated, or is for channels."""
        done = {"work": (), "language": None, "quiet_hours": None}
        return Standing(site=self.site.model_copy(update=done), person=self.person.model_copy(update=done))

    def for_a_child(self) -> Standing:
        """A smoke or preparation run is bounded by itself: no condition that ends the run it is for."""
        ended = {"stop_when": (), "budgets": Budgets()}
        return Standing(site=self.site.model_copy(update=ended), person=self.person.model_copy(update=ended))

    def _layers(self) -> tuple[tuple[Layer, Orders], ...]:
        return ("person", self.person), ("site", self.site)

    def _budget(self, name: str) -> tuple[float, str] | None:
        for layer, orders in self._layers():
            value = getattr(orders.budgets, name)
            if value is not None:
                return value, WHOSE[layer]
        return None


NO_ORDERS = Standing()


def folded(purpose: str) -> str:
    """A purpose as it is compared: capitals and spaces do not tell kinds of work apart."""
    return " ".join(purpose.casefold().split())


# --- what no order may say ---------------------------------------------------------------------------------


class OrderFault(NamedTuple):
    """What is wrong with an order that is well-formed, and where it stands in the file."""

    place: tuple[str | int, ...]
    fault: str


def faults(orders: Orders, layer: Layer) -> Iterator[OrderFault]:
    """Everything that the rules forbid, or that could not be carried out."""
    for kind, order in orders.questions.items():
        if order.default is None:
            if order.value is not None:
                yield OrderFault(
                    ("questions", kind, "value"), "a value belongs to a `default`; name the option too"
                )
            continue
        fault = _fault_of(kind, order, layer)
        if fault:
            yield OrderFault(("questions", kind, "default"), fault)
    if orders.capacity is not None and "capacity" in orders.questions:
        yield OrderFault(("questions", "capacity"), "`capacity:` says the same; keep one of the two")
    yield from _site_faults(orders) if layer == "site" else ()


def _site_faults(orders: Orders) -> Iterator[OrderFault]:
    if orders.capacity is not None and orders.capacity.reduce_to is not None:
        yield OrderFault(
            ("capacity", "reduce_to"), "a site does not shrink a person's figure (C3); leave it out"
        )
    for place, condition in enumerate(orders.stop_when):
        if not condition.is_budget:
            said = f"a site may set budgets (wall_s, gpu_hours), and does not judge a run: {condition.in_words()}"
            yield OrderFault(("stop_when", place), said)
    for place, work in enumerate(orders.work):
        if work.lane == "idle":
            said = "a site does not put a person's run where it can be preempted (C8); leave it out"
            yield OrderFault(("work", place, "lane"), said)


def _fault_of(kind: str, order: QuestionOrder, layer: Layer) -> str:
    options = {option.key: option for option in QUESTIONS[kind].options}
    option = options.get(order.default or "")
    if option is None:
        return f"{order.default!r} is no option of {kind!r}; {did_you_mean(order.default or '', options)}"
    if option.act in (Act.recheck, Act.resend):
        return (
            f"{option.key!r} says that somebody has mended something, which no order can know; leave it out"
        )
    if (kind, option.key) in NEVER_ORDERED:
        return f"{NEVER_ORDERED[kind, option.key]}; leave it out"
    if layer == "site" and option.act in PERSON_ONLY and option.key != QUESTIONS[kind].default:
        return f"{option.key!r} is the person's own to order, not a site's; leave it out"
    if option.value and order.value is None:
        return f"{option.key!r} needs a value: add `value: <{option.value}>`"
    if not option.value and order.value is not None:
        return f"{option.key!r} takes no value; leave `value` out"
    heard = checked(option, order.value or "")
    return "" if isinstance(heard, Choice) else heard.reason


def _choice(kind: str, order: QuestionOrder) -> Choice | None:
    options: dict[str, Option] = {option.key: option for option in QUESTIONS[kind].options}
    option = options.get(order.default or "")
    heard = checked(option, order.value or "") if option is not None else None
    return heard if isinstance(heard, Choice) else None
