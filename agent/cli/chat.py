"""`chat`: say what you want in your own words, in English or Chinese; no model is asked.

    wk chat                       a conversation, line by line
    wk chat "how far is it?"      one message
    wk chat < messages.txt        one message a line
    wk chat --understand < lines  JSON lines in, readings out; nothing is done

What a message means is read in `states/chat`; what it asks for is done by the commands of `wk` themselves.

Never: carry out a message that asks back; keep a line of the conversation anywhere.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.output import Exit, JsonFlag, emit, hint, opened, report, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent.app import App
    from states.chat import Context, Understood

PANEL = "Runs and questions"
PROMPT = "wk> "
LEAVING = frozenset({"exit", "quit", "bye", "q", ":q", "退出", "再见"})
"""Words that end a conversation; as one message they are read like any other."""


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command(rich_help_panel=PANEL)(chat)


def chat(
    message: Annotated[
        list[str] | None,
        typer.Argument(help="What you want; without it, a conversation.", show_default=False),
    ] = None,
    understand: Annotated[
        bool,
        typer.Option(
            "--understand", help="Only read: JSON lines {id, message, context} on stdin, a reading for each."
        ),
    ] = False,
    json_wanted: JsonFlag = False,
) -> None:
    """Say what you want in your own words, in English or Chinese.

    A stop needs the word and one run that is live, a delete the run's name. What can be read in two ways is asked
    back. No model is involved.
    """
    if understand:
        code = _understand_lines(sys.stdin.buffer)
    elif message:
        code = Talk(opened(), json_wanted).hear(" ".join(message))
    else:
        code = _converse(Talk(opened(), json_wanted))
    if code:
        raise typer.Exit(code)


class Talk:
    """A conversation: what was asked back last may be settled by the next message."""

    def __init__(self, app: App, json_wanted: bool) -> None:
        self.app = app
        self.json_wanted = json_wanted
        self._before: Understood | None = None

    def hear(self, message: str) -> Exit:
        """Read one message, do what it asks for, or ask back. Raises what the commands raise."""
        from agent.cli.chat_doing import carry_out
        from states.chat import settled, understand

        context = context_now(self.app)
        read = settled(self._before, message, context) if self._before is not None else None
        read = read or understand(message, context)
        self._before = read if read.ask_back else None
        if self.json_wanted:
            emit({"understood": read.model_dump(mode="json", exclude={"choices"})})
        elif read.reply:
            say(read.reply)
        if read.ask_back or "refused" in read.slots:
            return Exit.refused
        return carry_out(self.app, read, self.json_wanted)


def context_now(app: App) -> Context:
    """The runs and the open questions of this Watchkeeper."""
    from states.chat import Context, Seen, asked

    rows = app.store.boards(limit=200)
    questions = [
        asked(question, job.id) for job in app.store.with_open_questions() for question in job.open_questions
    ]
    return Context(
        jobs=tuple(Seen(name=row["id"], state=row["state"]) for row in rows),
        questions=tuple(questions),
        language=app.settings.language,
    )


def _converse(talk: Talk) -> Exit:
    """Every line of stdin, with a prompt on a terminal. A message that fails does not end the conversation."""
    first = Exit.ok
    for line in _lines():
        try:
            code = talk.hear(line)
        except BrokenPipeError:
            raise
        except Exception as error:
            code = Exit(report(error, talk.json_wanted))
        first = first or code
    return Exit.ok if sys.stdin.isatty() else first


def _lines() -> Iterator[str]:
    """What is typed or piped, without empty lines; Ctrl-D, Ctrl-C or a word of leaving ends it on a terminal."""
    if not sys.stdin.isatty():
        yield from (line.strip() for line in sys.stdin if line.strip())
        return
    _editing()
    hint("Say what you want; `help` shows what is understood, Ctrl-D leaves.")
    while True:
        try:
            line = input(PROMPT).strip()
        except (EOFError, KeyboardInterrupt):
            say(" ")
            return
        if line.lower() in LEAVING:
            return
        if line:
            yield line


def _editing() -> None:
    """Arrow keys on the prompt, where Python was built with them; nothing is kept in a file."""
    import contextlib
    from importlib import import_module

    with contextlib.suppress(ImportError):
        import_module("readline")


# --- only reading ------------------------------------------------------------------------------------------------


def _understand_lines(lines: Iterable[bytes]) -> Exit:
    """A reading for each JSON line, in order, at once. Lines that are wrong are told on stderr; the rest is read."""
    wrong = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            emit(_reading(line.decode("utf-8-sig")))
        except UnicodeDecodeError:
            wrong += 1
            hint(f"wk: line {number}: not UTF-8")
        except ValueError as error:
            wrong += 1
            hint(f"wk: line {number}: {error}")
    return Exit.usage if wrong else Exit.ok


def _reading(line: str) -> dict[str, Any]:
    """`{id, intent, slots, ask_back, reply}` of one line. Raises ValueError with what is wrong in it."""
    from states.chat import context_of, understand

    try:
        asked = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        where = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f'not JSON{where}; write {{"id": ..., "message": ..., "context": ...}}') from None
    if not isinstance(asked, dict):
        raise ValueError("a line is one JSON object with `id`, `message` and `context`")
    if not isinstance(asked.get("message"), str):
        raise ValueError("`message` is missing, or no text")
    message = asked["message"].encode("utf-8", "replace").decode()  # half a surrogate pair cannot be printed
    read = understand(message, context_of(asked.get("context")))
    shown = read.model_dump(mode="json", include={"intent", "slots", "ask_back", "reply"})
    return {"id": asked.get("id"), **shown}
