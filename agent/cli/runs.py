"""Commands about delegated runs: `jobs`, `show`, `why`.

Never: a call to a cluster.
"""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from agent.cli.completion import complete_run
from agent.cli.output import BLANK, JsonFlag, ago, columns, emit, opened, safe, say, table

PANEL = "Runs and questions"
Run = Annotated[str, typer.Argument(help="A run: its id or a beginning of it.", autocompletion=complete_run)]
WIDE = 76
"""Columns from which a run fits on one line."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(rich_help_panel=PANEL)(jobs)
    app.command("show", rich_help_panel=PANEL)(show_run)
    app.command(rich_help_panel=PANEL)(why)


def jobs(
    live: Annotated[bool, typer.Option("--live", help="Only what has not ended.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many, the newest.", min=1)] = 50,
    json_wanted: JsonFlag = False,
) -> None:
    """List the runs, the newest first."""
    from agent.clock import SystemClock

    rows = [row for row in _rows(live, limit) if not row.board.get("parent")]
    if json_wanted:
        emit([_data(row) for row in rows])
        return
    if not rows:
        say(
            "No runs yet." if not live else "Nothing is live.",
            "Delegate one: wk run job.yaml, or wk run -- COMMAND",
        )
        return
    now = SystemClock().now()
    say(*board_lines(rows, now, columns()), as_it_is=True)


def board_lines(rows: Sequence[Any], now: datetime, width: int) -> list[str]:
    """The board as text: one line a run, or two where the terminal is narrow. What needs an answer is marked."""
    if width < WIDE:
        return [line for row in rows for line in _two_lines(row, now, width)]
    lanes, clusters = ({value(row) for row in rows} for value in (_lane, lambda row: row.cluster))
    more = [*(["LANE"] if len(lanes) > 1 else []), *(["CLUSTER"] if len(clusters) > 1 else [])]
    cells = []
    for row in rows:
        told = {"LANE": _lane(row), "CLUSTER": row.cluster}
        cells.append(
            [row.id, row.state, _step(row.board), _left(row), _age(row, now), _loss(row.board)]
            + [told[name] for name in more]
            + [_note(row, now)]
        )
    head = ["RUN", "STATE", "STEP", "LEFT", "TIME", "LOSS", *more, "NOTE"]
    return [_cut(line, width) for line in table(head, cells, right=(2, 3, 4))]


def _lane(row: Any) -> str:
    return str(row.board.get("lane", ""))


def _two_lines(row: Any, now: datetime, width: int) -> list[str]:
    left = _left(row)
    facts = [_step(row.board), f"{left} left" if left else "", _note(row, now)]
    second = ", ".join(fact for fact in facts if fact)
    lines = [f"{row.id}  {row.state}, {_age(row, now)}", f"  {second}" if second else ""]
    return [_cut(line, width) for line in lines if line]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"


def _age(row: Any, now: datetime) -> str:
    return ago(((row.ended_at or now) - row.created_at).total_seconds())


def _step(board: Mapping[str, Any]) -> str:
    step, total = board.get("step"), board.get("total")
    if step is None:
        return ""
    return f"{step:g}/{total:g}" if isinstance(total, (int, float)) else f"{step:g}"


def _left(row: Any) -> str:
    eta = row.board.get("eta_s")
    return ago(eta) if eta is not None and row.ended_at is None else ""


def _loss(board: Mapping[str, Any]) -> str:
    loss = board.get("loss")
    return f"{loss:.4g}" if isinstance(loss, (int, float)) else str(loss or "")


def _note(row: Any, now: datetime) -> str:
    """What a list must not hide: the open questions, else how it ended, else what it waits for."""
    questions = row.board.get("questions")
    if questions:
        return f"needs an answer: {', '.join(questions)}"
    if row.ended_at is not None:
        return safe(str(row.board.get("outcome", "")))
    milestone = row.board.get("milestone_at")
    if milestone:
        return f"milestone {ago((now - datetime.fromisoformat(milestone)).total_seconds())} ago"
    return safe(str(row.board.get("reason", "") or ""))


def show_run(
    run: Run,
    reports: Annotated[
        bool, typer.Option("--reports", help="With every report and question so far.")
    ] = False,
    json_wanted: JsonFlag = False,
) -> None:
    """Show how a run stands, or how it ended."""
    from states import reports as words

    app = opened()
    job = app.service.job(run)
    inbox = app.store.messages(job.id)
    if json_wanted:
        document = job.model_dump(mode="json") | {"open_questions": [q.id for q in job.open_questions]}
        emit(document | ({"messages": [dict(row) for row in inbox]} if reports else {}))
        return
    if reports:
        for row in inbox:
            say(f"--- {row['stage']} {row['at'].isoformat(timespec='seconds')}", row["text"], BLANK)
    last = [row["text"] for row in inbox if row["stage"] == "wrap-up"]
    if job.is_terminal and last:
        from agent.cli.views import closing_words

        say(*([] if reports else [last[-1]]), *closing_words(job, columns()))
    else:
        say(words.status(job, app.clock.now()))
        say(*_watched(app, job))


def _watched(app: Any, job: Any) -> list[str]:
    """Said when nobody carries a live run, since then nothing moves."""
    if job.is_terminal or app.watchers.anyone():
        return []
    return [f"Nobody is watching it now. Carry it on: wk follow {job.id}, or wk serve for every run."]


def why(run: Run, json_wanted: JsonFlag = False) -> None:
    """Explain every decision of a run."""
    app = opened()
    decisions = app.service.why(run)
    if json_wanted:
        emit([decision._asdict() for decision in decisions])
        return
    for decision in decisions:
        say(*decision_lines(decision, columns()))


def decision_lines(decision: Any, width: int) -> list[str]:
    """One decision on a few lines: when and what happened, what became of it, by which rule, why."""
    moved = decision.outcome == "moved" and decision.source != decision.to
    became = f"{decision.source} -> {decision.to}" if moved else f"{decision.to} ({decision.outcome})"
    rule = f"  [{decision.rule}]" if decision.rule else ""
    lines = [f"{decision.seq:>3}  {decision.at:%Y-%m-%d %H:%M:%S}  {decision.event}: {became}{rule}"]
    if decision.action:
        lines.append(f"     did: {decision.action.replace('_', ' ')}")
    if decision.said:
        lines.append(f"     because: {' '.join(safe(decision.said).split())}")
    if decision.asked:
        counts = Counter(decision.asked)
        asked = (kind if count == 1 else f"{kind} ({count})" for kind, count in counts.items())
        lines.append(f"     asked for: {', '.join(asked).replace('_', ' ')}")
    return [part for line in lines for part in textwrap.wrap(line, max(width, 40), subsequent_indent=" " * 9)]


def _rows(live: bool, limit: int) -> list[Any]:
    """From the file where that is possible, else through the store."""
    from agent.peek import Peek, Row

    peek = Peek.of(os.environ)
    if peek is not None:
        return list(peek.rows(live=live, limit=limit))
    return [Row(**dict(row)) for row in opened().store.boards(live=live, limit=limit)]


def _data(row: Any) -> dict[str, Any]:
    times = {name: getattr(row, name) for name in ("created_at", "ended_at", "wake_at")}
    return {"id": row.id, "state": row.state, "cluster": row.cluster, **times, **row.board}
