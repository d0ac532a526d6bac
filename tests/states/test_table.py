"""The table as a text: whole, readable, and each row justified; the lint finds what a reader overlooks."""

from __future__ import annotations

import re

import pytest

from states import check, diagram, ignored, table
from states.events import KINDS
from states.ignored import IGNORED, OTHERWISE
from states.job import TERMINAL, State
from states.table import TABLE, Row, row


def test_the_table_is_whole() -> None:
    assert check.findings() == []


def test_every_cell_has_a_row_or_a_reason() -> None:
    covered = {(state, kind) for line in TABLE for kind in line.on for state in line.source}
    assert covered | set(IGNORED) == {(state, kind) for state in State for kind in KINDS}
    assert not covered & set(IGNORED)
    assert all(IGNORED.values())
    assert all(OTHERWISE.values())


def test_every_row_names_its_rules() -> None:
    for line in TABLE:
        assert re.fullmatch(r"[A-I]\d+( [A-I]\d+)*", line.why), line


def test_every_guard_and_verb_reads_as_words() -> None:
    for line in TABLE:
        assert re.fullmatch(r"[a-z_]+", line.do.__name__)
        assert line.when is None or re.fullmatch(r"[a-z_]+", line.when.__name__)
        assert line.do.__doc__


def test_each_exported_guard_and_verb_is_used() -> None:
    from states import actions, guards

    used = {line.do.__name__ for line in TABLE} | {line.when.__name__ for line in TABLE if line.when}
    shared = {"WAITS", "Change", "act_of", "question_at", "verdict_topic"}
    shared |= {
        "twin_topic",
        "running_twin_topics",
        "twins_to_stop",
        "twins_to_tell",
        "is_of_an_earlier_attempt",
    }
    offered = (set(actions.__all__) | set(guards.__all__)) - shared
    assert offered - used - {"is_settled_as_absent"} == set()


class TestLint:
    """Each finding on a table that has the fault."""

    def found(self, monkeypatch: pytest.MonkeyPatch, *lines: Row) -> str:
        monkeypatch.setattr(check, "TABLE", (*TABLE, *lines))
        return "\n".join(check.findings())

    def test_an_unknown_event(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wrong = row("sneezed", State.running, None, None, TABLE[0].do, "E1")
        assert "no event 'sneezed'" in self.found(monkeypatch, wrong)

    def test_a_row_that_is_never_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wrong = row("stop_requested", State.running, None, None, TABLE[0].do, "A2")
        assert "decided by an earlier row" in self.found(monkeypatch, wrong)

    def test_a_way_out_of_the_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wrong = row("wake_due", State.failed, State.running, None, TABLE[0].do, "A2")
        assert "leaves the terminal state failed" in self.found(monkeypatch, wrong)

    def test_a_cell_without_a_word(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cell = (State.preflight, "submitted")
        monkeypatch.setattr(
            check, "IGNORED", {key: why for key, why in ignored.IGNORED.items() if key != cell}
        )
        assert "submitted in preflight" in "\n".join(check.findings())

    def test_a_state_that_nothing_leads_to_or_from(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            check, "TABLE", tuple(line for line in TABLE if State.stopping not in (line.to, *line.source))
        )
        told = "\n".join(check.findings())
        assert "stopping is never reached" in told
        assert "stopping is live and has no way out" in told


class TestPictures:
    def test_the_diagram_shows_every_state_and_the_ends(self) -> None:
        drawn = diagram.mermaid()
        assert drawn.startswith("stateDiagram-v2")
        assert all(str(state) in drawn for state in State)
        assert all(f"{state} --> [*]" in drawn for state in TERMINAL)

    def test_every_row_can_be_read_aloud(self) -> None:
        told = diagram.read_aloud().splitlines()
        assert len(told) == len(TABLE)
        assert "[A2] On stop requested in queued, running: stop on request, then go to stopping." in told

    def test_the_table_has_no_duplicates(self) -> None:
        keys = [(line.on, line.source, line.when, line.do) for line in table.TABLE]
        assert len(set(keys)) == len(keys)
