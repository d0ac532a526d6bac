"""Faults of a story that are Watchkeeper's own machine's: a clock that steps, a database that does not take a write.

Never: a fault of the cluster (those are in `model`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agent.scenarios.units import Seconds
from states.reading import Frozen


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
