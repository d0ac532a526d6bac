"""What a story says must be seen, and what must never be seen.

Counts are exact unless they carry a sign (`<= 3`). Times count from the delegation.

Never: a default that makes a wrong story pass.
"""

from __future__ import annotations

from typing import Any

from agent.scenarios.units import Bound, EffectKind, Op, Rule, Seconds, Texts
from states.job import State
from states.questions import Status
from states.reading import Frozen


class QuestionSeen(Frozen):
    """A question as it must have been asked and closed. deadline: between asking and its latest answer."""

    kind: str
    status: Status | None = None
    chosen: str | None = None
    value: str | None = None
    default: str | None = None
    by: str | None = None
    deadline: Seconds | None = None
    asked_by: Seconds | None = None
    asked_after: Seconds | None = None
    closed_by: Seconds | None = None
    says: Texts = ()
    closed_why: str = ""


class ReportSeen(Frozen):
    """A message in the inbox that must be there (count: how many of its stage)."""

    stage: str
    contains: Texts = ()
    lacks: Texts = ()
    must_not_miss: bool | None = None
    by: Seconds | None = None
    after: Seconds | None = None
    count: Bound | None = None


class EntrySeen(Frozen):
    """An entry that the library must hold at the end."""

    purpose: str
    image: str | None = None
    environment: str | None = None
    proxy: str | None = None
    worked: int | None = None
    used: int | None = None
    stale: bool | None = None
    notes: Texts = ()


class MomentSeen(Frozen):
    """What must be true at a moment. doing: what it is at, looking through `blocked`; open: kinds of questions."""

    t: Seconds
    state: State | None = None
    doing: State | None = None
    open: tuple[str, ...] | None = None
    calls: dict[Op, Bound] = {}


class Expect(Frozen):
    """What must be seen. Counts are exact unless they carry a sign."""

    refused: str = ""
    state: State | None = None
    settled: bool = False
    """Every run has ended, or waits for an answer, or keeps looking for its job by name as it was told to."""
    states: tuple[State, ...] | None = None
    at: tuple[MomentSeen, ...] = ()
    attempts: int | None = None
    runs: int | None = None
    jobs: int | None = None
    """Cluster jobs that this Watchkeeper created."""
    calls: dict[Op, Bound] = {}
    effects: dict[EffectKind, Bound] = {}
    questions: tuple[QuestionSeen, ...] | None = None
    """All questions, in order."""
    reports: tuple[ReportSeen, ...] = ()
    stages: tuple[str, ...] | None = None
    """Stages of all messages, in order."""
    sent: tuple[dict[str, Any], ...] = ()
    """Fields of the spec of each submit call, in order."""
    library: tuple[EntrySeen, ...] = ()
    entries: int | None = None
    why: tuple[Rule, ...] = ()
    """Rules that decisions of the journal name."""
    said: dict[str, Bound] = {}
    """How many decisions of the journal give these words as their reason or evidence (`wk why`)."""
    outcome: Texts = ()
    artifacts: tuple[str, ...] | None = None
    excluded: tuple[str, ...] | None = None
    """Nodes that the last submit leaves out."""


class Never(Frozen):
    """What must never be seen, at any time."""

    states: tuple[State, ...] = ()
    effects: tuple[EffectKind, ...] = ()
    questions: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    calls: tuple[Op, ...] = ()
    texts: Texts = ()
    """In any message to the person."""
    stored: Texts = ()
    """In anything that is stored."""
