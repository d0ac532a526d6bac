"""Steps of the pure machine in a second: a look, a log, a whole life.

Never: a judgement on the figure.
"""

from __future__ import annotations

from collections.abc import Iterator

from states.machine import step
from states.observation import Phase
from tests.benchmarks.measuring import Figure, per_second
from tests.states import builders as b


def figures() -> Iterator[Figure]:
    """Steps a second, on one core."""
    running, queued = b.in_running(), b.in_queued()
    look = b.seen(Phase.running)(running, b.after(30))
    logs = b.log(b.moving(400))(running, b.after(90))
    late = b.submitted()(running, b.after(30))
    yield Figure("machine: a look that changes nothing", per_second(lambda: step(running, look)), "steps/s")
    yield Figure("machine: a log that moved", per_second(lambda: step(running, logs)), "steps/s")
    yield Figure("machine: an event that is ignored", per_second(lambda: step(running, late)), "steps/s")
    start = b.seen(Phase.running)(queued, b.after(30))
    yield Figure(
        "machine: queued to running, with its report", per_second(lambda: step(queued, start)), "steps/s"
    )
