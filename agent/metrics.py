"""Figures for Prometheus: what the loop does as counters and histograms, how it stands as gauges read at each scrape.

Names end in their unit, or `_total` for a counter (the conventions of Prometheus). No label takes a value that grows
with the number of runs.

Never: a run's name, a text or a path in a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

from agent.census import census
from agent.clusters.base import ClusterError
from agent.deliveries import Deliveries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.clock import Clock
    from agent.observe import Labels
    from agent.store import Store

PREFIX = "watchkeeper"
LABELS: dict[str, tuple[str, ...]] = {
    "turn": (),
    "effect": ("kind",),
    "wave": (),
    "cluster_call": ("cluster", "operation"),
    "delivery": ("channel",),
}
"""Pieces of work that are counted and timed, and by what they are told apart beside their outcome."""

BUCKETS_S = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120)


class Metrics:
    """The figures of this process. channels: their names."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, store: Store, clock: Clock, channels: Sequence[str] = ()) -> None:
        self._store, self._clock, self._channels = store, clock, channels
        self.registry = CollectorRegistry()
        self._counts = {
            what: Counter(
                f"{PREFIX}_{_plural(what)}",
                f"{what} by outcome",
                (*labels, "outcome"),
                registry=self.registry,
            )
            for what, labels in LABELS.items()
        }
        self._times = {
            what: Histogram(
                f"{PREFIX}_{what}_seconds",
                f"time of a {what}",
                labels,
                registry=self.registry,
                buckets=BUCKETS_S,
            )
            for what, labels in LABELS.items()
        }
        self.registry.register(_Standing(self))

    @contextmanager
    def during(self, what: str, labels: Labels) -> Iterator[None]:
        """Count and time one piece of work (`agent.observe.Listener`)."""
        names = LABELS.get(what)
        if names is None:
            yield
            return
        values = [labels.get(name, "") for name in names]
        times = self._times[what].labels(*values) if values else self._times[what]
        outcome = "ok"
        try:
            with times.time():
                yield
        except BaseException as error:
            outcome = outcome_of(error)
            raise
        finally:
            self._counts[what].labels(*values, outcome).inc()

    def text(self) -> bytes:
        """All figures in the text form that Prometheus reads."""
        return generate_latest(self.registry)

    def standing(self) -> Iterator[Any]:
        """The gauges, as things are now."""
        counted = census(self._store)
        runs = GaugeMetricFamily(f"{PREFIX}_runs", "Runs by state.", labels=("state",))
        for state, count in counted.runs.items():
            runs.add_metric((state,), count)
        yield runs
        yield GaugeMetricFamily(
            f"{PREFIX}_questions_open", "Questions that wait for an answer.", value=counted.questions
        )
        wake = self._store.next_wake()
        late_s = max((self._clock.now() - wake).total_seconds(), 0.0) if wake is not None else 0.0
        yield GaugeMetricFamily(
            f"{PREFIX}_late_seconds", "How long the earliest timer is overdue.", value=late_s
        )
        waiting = GaugeMetricFamily(
            f"{PREFIX}_deliveries_waiting",
            "Messages that are due on a channel and not sent.",
            labels=("channel",),
        )
        failing = GaugeMetricFamily(f"{PREFIX}_channel_failing", "1: the channel fails.", labels=("channel",))
        for name in self._channels:
            stands = Deliveries(self._store).standing(name, self._clock.now())
            waiting.add_metric((name,), stands.waiting)
            failing.add_metric((name,), float(stands.failing_since is not None))
        yield waiting
        yield failing


class _Standing:
    """A collector of the registry; its gauges are made at each scrape."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Any]:
        return self._metrics.standing()

    def describe(self) -> list[Any]:
        return []  # else the registry would read the store at once


def outcome_of(error: BaseException) -> str:
    """One word for how a piece of work ended: the kind of a cluster's error, or `error`."""
    return type(error).__name__.lower() if isinstance(error, ClusterError) else "error"


def _plural(what: str) -> str:
    return f"{what.removesuffix('y')}ies" if what.endswith("y") else f"{what}s"
