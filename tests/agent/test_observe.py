"""What the loop tells of itself: spans in each other, figures by outcome, words on log lines; no text of a run."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from agent import observe
from agent.app import JsonLines
from agent.clusters.base import Unreachable
from agent.metrics import Metrics
from agent.observe import Listener
from agent.observed import ObservedCluster
from agent.settings import load_settings
from agent.store import Store
from agent.tracing import Tracing
from states.job import State
from tests.agent.fakes import GOOD, Desk

MakeDesk = Callable[..., Desk]


@pytest.fixture
def listening() -> Iterator[Callable[[Listener], None]]:
    """Lets listeners listen for one test."""
    put: list[Listener] = []

    def listen(listener: Listener) -> None:
        put.append(listener)
        observe.listen(listener)

    yield listen
    for listener in put:
        observe.forget(listener)


@pytest.fixture
def store() -> Iterator[Store]:
    """SQLite alone: nothing here depends on the database."""
    made = Store("sqlite://")
    made.create_schema()
    yield made
    made.close()


def spans(listening: Callable[[Listener], None]) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    listening(Tracing(processor=SimpleSpanProcessor(exporter)))
    return exporter


class Away:
    """A cluster that cannot be reached."""

    name = "lab"

    def capacity(self, group: str | None = None) -> None:
        raise Unreachable(f"no route for {group}")


class TestMetrics:
    def test_a_run_is_counted_by_outcome(
        self, desk: MakeDesk, store: Store, listening: Callable[[Listener], None]
    ) -> None:
        here = desk(GOOD)
        metrics = Metrics(here.store, here.clock)
        listening(metrics)
        run = here.delegate()
        here.run_to(run, State.succeeded)
        text = metrics.text().decode()
        assert 'watchkeeper_effects_total{kind="submit",outcome="ok"} 1.0' in text
        assert 'watchkeeper_runs{state="succeeded"} 1.0' in text
        assert 'watchkeeper_runs{state="running"} 0.0' in text
        assert "watchkeeper_questions_open 0.0" in text
        assert run not in text

    def test_a_clusters_failure_is_counted_by_its_kind(
        self, store: Store, desk: MakeDesk, listening: Callable[[Listener], None]
    ) -> None:
        metrics = Metrics(store, desk().clock)
        listening(metrics)
        with pytest.raises(Unreachable):
            ObservedCluster(Away()).capacity("g1")
        text = metrics.text().decode()
        assert (
            'watchkeeper_cluster_calls_total{cluster="lab",operation="capacity",outcome="unreachable"} 1.0'
            in text
        )
        assert 'watchkeeper_cluster_call_seconds_count{cluster="lab",operation="capacity"} 1.0' in text
        assert "g1" not in text

    def test_what_is_overdue_shows(self, desk: MakeDesk) -> None:
        here = desk(GOOD)
        metrics = Metrics(here.store, here.clock)
        here.run_to(here.delegate(), State.running)
        assert "watchkeeper_late_seconds 0.0" in metrics.text().decode()
        wake = here.store.next_wake()
        assert wake is not None
        here.clock.jump_to(wake)
        here.clock.step(90)
        assert "watchkeeper_late_seconds 90.0" in metrics.text().decode()


class TestTracing:
    def test_an_effect_stands_in_its_turn(
        self, desk: MakeDesk, listening: Callable[[Listener], None]
    ) -> None:
        exporter = spans(listening)
        here = desk(GOOD)
        run = here.delegate()
        here.settle()
        found = exporter.get_finished_spans()
        turns = {span.context.span_id for span in found if span.name == "watchkeeper.turn" and span.context}
        effects = [span for span in found if span.name == "watchkeeper.effect"]
        assert effects
        assert all(span.parent is not None and span.parent.span_id in turns for span in effects)
        assert {
            span.attributes["watchkeeper.run"]
            for span in found
            if span.attributes and "watchkeeper.run" in span.attributes
        } == {run}

    def test_an_error_is_told_by_its_kind_alone(self, listening: Callable[[Listener], None]) -> None:
        exporter = spans(listening)
        with pytest.raises(Unreachable):
            ObservedCluster(Away()).capacity("a text of somebody")
        (span,) = exporter.get_finished_spans()
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "Unreachable")
        assert "a text of somebody" not in _all_of(span)


def _all_of(span: ReadableSpan) -> str:
    return str(span.to_json())


def test_what_listens_and_breaks_does_not_break_the_work(listening: Callable[[Listener], None]) -> None:
    class Broken:
        def during(self, what: str, labels: observe.Labels) -> Iterator[None]:
            raise RuntimeError("cannot count")

    listening(Broken())  # type: ignore[arg-type]
    with observe.during("turn", run="r"):
        done = True
    assert done


def test_a_log_line_says_what_it_stands_in() -> None:
    record = logging.LogRecord("agent.turn", logging.WARNING, __file__, 1, "slow", (), None)
    with observe.during("turn", run="run-1"), observe.during("effect", kind="submit"):
        told = json.loads(JsonLines().format(record))
    assert (told["run"], told["kind"], told["message"]) == ("run-1", "submit", "slow")
    assert "run" not in json.loads(JsonLines().format(record))


def test_one_variable_makes_the_log_json(tmp_path: object) -> None:
    env = {"WATCHKEEPER_HOME": str(tmp_path), "HOME": str(tmp_path), "WATCHKEEPER_LOG": "json"}
    settings = load_settings(env)
    assert settings.logging.format == "json"
    (source,) = [one.source for one in settings.describe() if one.name == "logging.format"]
    assert source == "environment WATCHKEEPER_LOG"


def test_nothing_of_it_is_imported_unless_it_is_set() -> None:
    code = (
        "import sys; from agent.app import build; app = build({'HOME': '/nowhere', 'WATCHKEEPER_HOME': '/nowhere'});"
        "app.observed(); import agent.carry;"
        "sys.exit(bool({'prometheus_client', 'opentelemetry', 'apprise', 'slack_bolt'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
