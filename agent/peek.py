"""A light, read-only look at the board, straight from the SQLite file: for `wk jobs`, `wk questions` and completion.

The ORM takes half a second to import, which a list or a TAB should not cost. With another database (or settings that
must be read first) the caller goes through the store.

Never: write, create or lock the database; know more of it than the columns it names.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from agent.paths import config_dir, state_dir

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BUSY_S = 2.0
URL_VARIABLE = "WATCHKEEPER_DATABASE_URL"
SQLITE = "sqlite:///"
NEWEST = "ORDER BY created_at DESC, id DESC LIMIT ?"
IDS_MAX = 200
"""As many as a completion can show."""


class Row(NamedTuple):
    """A run on the board; `board` as `states.board.board` made it. Times are aware (UTC)."""

    id: str
    state: str
    cluster: str
    board: dict[str, Any]
    created_at: datetime
    ended_at: datetime | None
    wake_at: datetime | None


class Peek:
    """One SQLite file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Peek | None:
        """The database of this environment; None when only the settings can tell, or when it is no SQLite file."""
        file = database_file(env)
        return None if file is None else cls(file)

    def rows(self, *, live: bool, limit: int = 200) -> list[Row]:
        """Runs, newest first; [] where there is no database yet."""
        where = "WHERE ended_at IS NULL" if live else ""
        found = self._read(
            f"SELECT id, state, cluster, board, created_at, ended_at, wake_at FROM job {where} {NEWEST}",
            (limit,),
        )
        return [
            Row(run, state, cluster, json.loads(board), _at(created) or EPOCH, _at(ended), _at(wake))
            for run, state, cluster, board, created, ended, wake in found
        ]

    def run_ids(self) -> list[str]:
        """Ids of runs, live ones first, newest first."""
        live = self._read(f"SELECT id FROM job WHERE ended_at IS NULL {NEWEST}", (IDS_MAX,))
        over = self._read(f"SELECT id FROM job WHERE ended_at IS NOT NULL {NEWEST}", (IDS_MAX - len(live),))
        return [run for (run,) in live + over]

    def may_know(self, text: str) -> bool:
        """Whether a run is meant by this text: its id, a beginning of it, or its attempt's name."""
        begins = "SELECT 1 FROM job WHERE id BETWEEN ? AND ?"
        query = f"{begins} UNION ALL SELECT 1 FROM job WHERE attempt_name = ? LIMIT 1"
        return bool(self._read(query, (text, f"{text}\U0010ffff", text)))

    def question_ids(self) -> list[str]:
        """Ids of the open questions."""
        found = self._read("SELECT board FROM job WHERE state = ? ORDER BY created_at DESC", ("blocked",))
        return [question for (board,) in found for question in json.loads(board).get("questions", ())]

    def question_kind(self, question: str) -> str:
        """The kind of an open question, by its id, or by its run's where that has one; "" for none."""
        run, _, number = question.partition("/")
        for (snapshot,) in self._read("SELECT snapshot FROM job WHERE id = ?", (run,)):
            asked = [
                q for q in json.loads(snapshot).get("questions", ()) if q.get("status", "open") == "open"
            ]
            fitting = [q["kind"] for q in asked if not number or str(q["number"]) == number]
            return str(fitting[0]) if len(fitting) == 1 else ""
        return ""

    def _read(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        if not self._file.exists():
            return []
        connection = sqlite3.connect(f"{self._file.as_uri()}?mode=ro", uri=True, timeout=BUSY_S)
        try:
            return connection.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise
        finally:
            connection.close()


def database_file(env: Mapping[str, str]) -> Path | None:
    """The SQLite file, as far as it can be told without reading the settings."""
    url = env.get(URL_VARIABLE, "")
    if not url:
        config = config_dir(env) / "config.yaml"
        if config.exists() and "database_url" in config.read_text(encoding="utf-8", errors="replace"):
            return None
        return state_dir(env) / "watchkeeper.db"
    plain = url.startswith(SQLITE) and "?" not in url and len(url) > len(SQLITE) and "memory" not in url
    return Path(url.removeprefix(SQLITE)).absolute() if plain else None


def _at(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)
