"""Replies of a model as files: recorded once with a key, replayed without one (tests, scenarios, evaluations).

A file is named by the hash of the case's data, so a recorded reply outlives a new wording of the instructions and
another model. Replayed replies pass through every check that live ones pass.

Never: a credential in a file (the data were redacted, and keys are not part of them).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent.clock import Clock, SystemClock
from agent.reader.budget import Limits, Notebook
from agent.reader.prices import Tokens
from agent.reader.prompt import Prompt
from agent.reader.read import Caller, ModelReader
from agent.reader.reply import Answer, NoAnswer

UNBOUNDED = Limits(job_usd=1e9, day_usd=1e9, job_calls=1_000_000, day_calls=1_000_000)
"""A replay costs nothing."""


class Recorded:
    """A `Caller` that answers from `<folder>/<hash of the data>.json`, else from `<folder>/default.json`."""

    name = "recorded"
    how = ""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ask(self, prompt: Prompt) -> Answer:
        """The recorded answer. Raises NoAnswer: the recorded one, or "unrecorded" with the name that is missing."""
        for name in (prompt.data_key, "default"):
            try:
                text = (self._folder / f"{name}.json").read_text(encoding="utf-8")
            except FileNotFoundError:
                continue
            return _from_json(json.loads(text))
        raise NoAnswer("unrecorded", f"no reply is recorded for this case: {prompt.data_key}.json")

    def worst_usd(self, prompt: Prompt) -> float | None:
        """Nothing."""
        return 0.0

    def close(self) -> None:
        """Nothing to close."""


class Recording:
    """A `Caller` that passes the question on and keeps what came back."""

    def __init__(self, inner: Caller, folder: Path) -> None:
        self._inner, self._folder = inner, folder
        self.name, self.how = inner.name, inner.how

    def ask(self, prompt: Prompt) -> Answer:
        """The inner answer, written down before it is returned; a failure is written down as well."""
        try:
            answer = self._inner.ask(prompt)
        except NoAnswer as failure:
            self._keep(prompt, {"no_answer": failure.kind, "reason": failure.reason})
            raise
        self._keep(prompt, answer._asdict() | {"tokens": answer.tokens._asdict()})
        return answer

    def worst_usd(self, prompt: Prompt) -> float | None:
        """As the inner one says."""
        return self._inner.worst_usd(prompt)

    def close(self) -> None:
        self._inner.close()

    def _keep(self, prompt: Prompt, fields: dict[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        kept = {"prompt": f"{prompt.file.name} v{prompt.file.version}", **fields}
        text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
        (self._folder / f"{prompt.data_key}.json").write_text(text, encoding="utf-8")


def recorded_reader(folder: Path, clock: Clock | None = None) -> ModelReader:
    """A reader that replays a folder: for scenarios and tests. Plugs into `Ports.reader`."""
    return ModelReader(Recorded(folder), Notebook(), clock or SystemClock(), limits=UNBOUNDED)


def _from_json(kept: dict[str, Any]) -> Answer:
    """An answer from its file. `reply` (an object) may stand for `text`, so that a file is easy to write by hand."""
    if "no_answer" in kept:
        raise NoAnswer(kept["no_answer"], str(kept.get("reason", "recorded as failed")))
    text = kept["text"] if "text" in kept else json.dumps(kept["reply"], ensure_ascii=False)
    return Answer(
        text=text,
        stop_reason=kept.get("stop_reason", "end_turn"),
        model=kept.get("model", Recorded.name),
        tokens=Tokens(**kept.get("tokens", {})),
        request_id=kept.get("request_id", ""),
    )
