"""Faults of a story: calls that go wrong, a cluster that is away, and Watchkeeper's own machine: processes that die,
stand still, work side by side or are upgraded, a clock that steps, a database that does not take a write.

Never: a job (those are in `model`); how a fault comes about (that is `play` and `world`).
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from agent.crash import POINTS
from agent.scenarios.units import EffectKind, Op, Seconds
from agent.tables import SCHEMA_VERSION
from states.reading import Frozen

# --- the cluster and its calls -----------------------------------------------------------------------------


class SubmitStory(Frozen):
    """What happens at the n-th submit call."""

    n: int = Field(default=1, ge=1)
    answer: Literal["given", "lost", "refused", "taken"] = "given"
    created: bool = True
    visible_after: Seconds = 0.0
    takes: Seconds = 0.0
    reason: str = ""
    cause: str = ""
    retryable: bool = False


class PreviewStory(Frozen):
    """The cluster refuses a preview: the first one given refuses the first call, and so on."""

    reason: str
    cause: str = ""


class AwayStory(Frozen):
    """No answer from the cluster for a while. calls: which operations; all when left out."""

    since: Seconds = Field(alias="from")
    until: Seconds = Field(alias="to")
    calls: tuple[Op, ...] = ()


class StaleStory(Frozen):
    """Status looks tell what was true `age` before."""

    since: Seconds = Field(alias="from")
    until: Seconds = Field(alias="to")
    age: Seconds


class AgainStory(Frozen):
    """An event that was taken before arrives once more (or late): the n-th of its kind."""

    at: Seconds
    event: str = "observed"
    n: int = Field(default=1, ge=1)
    run: int = 0
    """Of which run: the story's own, or one of `runs`, counted from 1."""


# --- Watchkeeper's own machine ------------------------------------------------------------------------------


class KillStory(Frozen):
    """Watchkeeper is killed when it passes this crash point for the n-th time, and starts again after `down`."""

    point: str
    n: int = Field(default=1, ge=1)
    down: Seconds = 0.0

    @model_validator(mode="after")
    def _is_a_point(self) -> Self:
        _point(self.point)
        return self


class PauseStory(KillStory):
    """The process stands still there for `lasts` while another one carries on.

    alone: there is no other one (a suspended laptop, a paused VM).
    """

    lasts: Seconds
    alone: bool = False


class BesideStory(Frozen):
    """A second process works over the same database: at every n-th crash point that the first one passes, the other
    does all that is due, and then the first one goes on."""

    since: Seconds = Field(default=0.0, alias="from")
    until: Seconds = Field(alias="to")
    every: int = Field(default=1, ge=1)


class UpgradeStory(Frozen):
    """The process ends and a newer Watchkeeper starts after `down`, over what the one before left: the database in
    that `form` (left out: the present one), each run, event and effect marked with the machine before.

    point: it is killed when it next passes this crash point; left out, it ends in good order.
    """

    at: Seconds
    form: str = Field(default=f"{SCHEMA_VERSION:04}", pattern=r"^\d{4}$")
    point: str = ""
    down: Seconds = 0.0

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        if self.point:
            _point(self.point)
        if not 1 <= int(self.form) <= SCHEMA_VERSION:
            raise ValueError(f"there is no form {self.form!r}; they run from 0001 to {SCHEMA_VERSION:04}")
        return self


class BrokenStory(Frozen):
    """Effects of one kind cannot be performed for a while: whatever does it raises. They are tried again with growing
    pauses, and given up in the end. name: only those about this check, run or attempt; all when left out."""

    effect: EffectKind
    since: Seconds = Field(default=0.0, alias="from")
    until: Seconds = Field(alias="to")
    name: str = ""


class ClockStory(Frozen):
    """At a moment the clock of Watchkeeper's machine steps by so many seconds, back when negative; the cluster's
    goes on rightly."""

    at: Seconds
    by: float


class StoreStory(Frozen):
    """Writes to the database fail, from the n-th of the story on, `times` in a row.

    busy: nothing was begun; full: it was taken back as it was committed; unclear: it was committed and the answer
    was lost.
    """

    n: int = Field(ge=1)
    times: int = Field(default=1, ge=1)
    says: Literal["busy", "full", "unclear"] = "busy"


def _point(name: str) -> None:
    if name not in POINTS:
        raise ValueError(f"{name!r} is no crash point; they are: {', '.join(POINTS)}")
