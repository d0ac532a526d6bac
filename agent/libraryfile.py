"""The config library as a YAML file that a team shares: written whole, read with a line for every fault.

Never: a credential, by name or by value (H4): an entry that carries one is left out when written, and ends the
import when read, unrepeated.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from agent.yamlfile import Document, Loc, UserFileError, read_document, validate
from states.credentials import find_credentials, is_secret
from states.reading import Frozen

WHAT = "the library file"
FIELDS = ("image", "environment", "proxy")
"""What an entry remembers of a set-up."""

HEAD = "# Set-ups that were used and worked, by kind of work. Take it in with: wk library import FILE\n"


class Stale(Frozen):
    """Since when an entry no longer works, and the evidence."""

    at: AwareDatetime
    why: str = ""


class Entry(Frozen):
    """One entry: what it is for, the set-up, how often it was used and worked, and whether it still does."""

    purpose: str = Field(min_length=1)
    image: str | None = Field(default=None, min_length=1)
    environment: str | None = Field(default=None, min_length=1)
    proxy: str | None = Field(default=None, min_length=1)
    used: int = Field(default=0, ge=0)
    worked: int = Field(default=0, ge=0)
    first_at: AwareDatetime
    last_at: AwareDatetime
    stale: Stale | None = None
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.settings and not self.notes:
            raise ValueError(f"says nothing: give one of {', '.join(FIELDS)}, or notes")
        if self.first_at > self.last_at:
            raise ValueError("first_at is after last_at")
        return self

    @property
    def settings(self) -> dict[str, str]:
        return {name: value for name in FIELDS if (value := getattr(self, name)) is not None}


class LibraryFile(Frozen):
    """The whole file."""

    version: Literal[1] = 1
    entries: tuple[Entry, ...] = ()


def read_library(file: Path) -> tuple[Entry, ...]:
    """The entries of a file. Raises UserFileError with every fault and its line, and for a credential in it."""
    document = read_document(file, what=WHAT)
    if carrying := list(_carrying(document)):
        raise UserFileError(*carrying, "nothing was taken in")
    _date(document.data)
    return validate(document, LibraryFile).entries


def write_library(entries: Iterable[Entry], file: Path) -> tuple[int, int]:
    """Write them in one step. Answers (written, left out because they look like they carry a credential)."""
    told = [entry.model_dump(mode="json", exclude_defaults=True) for entry in entries]
    clean = [data for data in told if not any(_is_secret(place, text) for place, text in _texts(data, ()))]
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(as_yaml(clean), encoding="utf-8")
    draft.replace(file)
    return len(clean), len(told) - len(clean)


def as_yaml(entries: Iterable[Mapping[str, Any]]) -> str:
    """The text of a file with these entries, which may be empty."""
    import yaml

    body = {"version": 1, "entries": list(entries)}
    return HEAD + yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=10_000)


def _date(data: dict[str, Any]) -> None:
    """An entry that a person writes needs no dates: it counts from the beginning of time, as the oldest."""
    entries = data.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            oldest = datetime(1970, 1, 1, tzinfo=UTC).isoformat()
            entry.setdefault("first_at", entry.get("last_at", oldest))
            entry.setdefault("last_at", entry["first_at"])


def _carrying(document: Document) -> Iterator[str]:
    for place, text in _texts(document.data, ()):
        if _is_secret(place, text):
            near = (place[:n] for n in range(len(place), -1, -1) if place[:n] in document.labels)
            name = next((step for step in reversed(place) if isinstance(step, str)), "it")
            yield (
                f"{document.labels[next(near)]}: {name!r} looks like a credential; the library keeps none (H4), "
                "take it out"
            )


def _is_secret(place: Loc, text: str) -> bool:
    name = next((step for step in reversed(place) if isinstance(step, str)), "")
    return is_secret(name, text) or bool(find_credentials(text))


def _texts(value: Any, place: Loc) -> Iterator[tuple[Loc, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, (*place, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*place, number))
    elif isinstance(value, (str, int)) and not isinstance(value, bool):
        yield place, str(value)
