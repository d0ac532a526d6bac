"""Carrying out a reading of a chat message, by the commands of `wk` and the service.

Never: a decision about what was meant; a request that differs from what was said without saying so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.cli.output import Exit, Fault, columns, emit, say, show

if TYPE_CHECKING:
    from agent.app import App
    from states.chat import Understood
    from states.spec import Request

LINES = 200
LINES_MAX = 2000
DECISIONS = 5
FIELDS = ("gpu", "cpu", "memory_mib", "replicas", "lane", "priority", "group", "image", "proxy", "name")
"""Slots that are fields of a request, by the same names."""


def carry_out(app: App, read: Understood, json_wanted: bool) -> Exit:
    """Do what was understood. Raises what the commands raise."""
    from agent.cli import steps

    slots, names = read.slots, _names(read)
    match read.intent:
        case "capacity":
            steps.capacity(group=slots.get("group", ""), json_wanted=json_wanted)
        case "list":
            _list(app, slots, json_wanted)
        case "status" | "check_once" | "tail" | "events" | "why":
            _show(app, read, json_wanted)
        case "stop" | "delete" | "stop+delete" if read.is_act:
            for name in names:
                _order(app, read.intent, name, json_wanted)
        case "run" | "submit_only":
            _run(app, read, json_wanted)
        case "answer" if read.is_act:
            _answer(app, slots, json_wanted)
        case "watch":
            _watch(app, names[0], json_wanted)
        case "library":
            _library(app, slots, json_wanted)
        case _:
            pass
    return Exit.ok


def _names(read: Understood) -> list[str]:
    return [name for name in str(read.slots.get("job", "")).split(",") if name]


# --- reads ---------------------------------------------------------------------------------------------------------


def _list(app: App, slots: dict[str, Any], json_wanted: bool) -> None:
    from agent.cli import questions, runs

    if slots.get("what") == "questions":
        questions.questions(json_wanted=json_wanted)
        return
    from agent.peek import Row
    from states.chat import Seen
    from states.chat.context import Context
    from states.chat.referents import by_state

    rows = [Row(**dict(row)) for row in app.store.boards(limit=200)]
    if slots.get("state"):
        seen = Context(jobs=tuple(Seen(name=row.id, state=row.state) for row in rows))
        wanted = by_state("finished" if slots["state"] == "done" else slots["state"], seen) or ()
        rows = [row for row in rows if row.id in wanted]
    if slots.get("lane"):
        rows = [row for row in rows if row.board.get("lane") == slots["lane"]]
    if json_wanted:
        emit([{"id": row.id, "state": row.state, "cluster": row.cluster, **row.board} for row in rows])
    elif not rows:
        say("No such runs.")
    else:
        say(*runs.board_lines(rows, app.clock.now(), columns()), as_it_is=True)


def _show(app: App, read: Understood, json_wanted: bool) -> None:
    """One command for each run; a name that is no run of ours is looked for on the cluster."""
    from agent.cli import runs, steps

    names = _names(read)
    if not names or names == ["*"]:
        if names or not read.moot:
            runs.jobs(live=True, json_wanted=json_wanted)
        return
    lines = min(int(read.slots.get("lines", LINES)), LINES_MAX)
    for name in names:
        match read.intent:
            case "tail":
                steps.logs(name, lines=lines, json_wanted=json_wanted)
            case "events":
                steps.events(name, json_wanted=json_wanted)
            case "check_once":
                steps.check(name, json_wanted=json_wanted)
            case "why":
                _why(app, name, json_wanted)
            case _:
                (steps.get if read.moot else runs.show_run)(name, json_wanted=json_wanted)
    if read.slots.get("follow") and not json_wanted:
        say(f"Follow it as it goes on: wk follow {names[0]}")


def _why(app: App, name: str, json_wanted: bool) -> None:
    """How it stands or ended, with the cause, and the last decisions (I5)."""
    from agent.cli import runs

    if json_wanted:
        runs.why(name, json_wanted=True)
        return
    runs.show_run(name)
    decisions = [decision for decision in app.service.why(name) if decision.action or decision.said]
    for decision in decisions[-DECISIONS:]:
        say(*runs.decision_lines(decision, columns()))
    say(f"Every decision: wk why {name}")


# --- acts ----------------------------------------------------------------------------------------------------------


def _order(app: App, intent: str, name: str, json_wanted: bool) -> None:
    """A stop, a delete, or both in order; a run that takes its time to stop keeps its record for now."""
    from agent.cli import steps

    if intent != "delete" and not app.service.job(name).is_terminal:
        steps.stop(name, reason="asked in the chat", json_wanted=json_wanted)
    if intent == "stop":
        return
    if app.service.job(name).is_terminal:
        steps.delete(name, name=name, json_wanted=json_wanted)
    elif not json_wanted:
        say(f"{name} is still ending; its record can be deleted then: delete {name}")


def _run(app: App, read: Understood, json_wanted: bool) -> None:
    slots = read.slots
    if slots.get("predict_only"):
        from agent.cli import steps

        steps.capacity(group=slots.get("group", ""), json_wanted=json_wanted)
        return
    request, workspace = _request(app, slots)
    if read.intent == "submit_only":
        sent = app.service.submit_once(request, workspace=workspace)
        told = f"Submitted to {sent.cluster}: {sent.name} ({sent.cluster_job_id}). Nobody watches it."
        show(json_wanted, sent._asdict(), told, sent.note)
        return
    from agent.cli.acting import carried_on

    job = app.service.delegate(request, workspace=workspace).job
    carried_on(app, job.id)
    now = app.store.load(job.id)
    show(
        json_wanted,
        {"run": now.id, "state": str(now.state)},
        f"{now.id} is delegated, and watched in the background. Follow it: wk follow {now.id}",
    )


def _request(app: App, slots: dict[str, Any]) -> tuple[Request, str]:
    """What is to be run, and where. Raises Fault for a wish that a chat cannot put into a request."""
    from agent.requestfile import request_from

    if slots.get("stop_if"):
        raise Fault(
            Exit.refused,
            f"a stop condition ({slots['stop_if']!r}) is not taken from a chat; nothing was submitted. Write it as "
            "`stop_when` in a request file, or leave it out and watch the reports.",
        )
    flags: dict[str, Any] = {field: slots[field] for field in FIELDS if field in slots}
    if slots.get("mounts"):
        flags["mounts"] = str(slots["mounts"]).split(",")
    if slots.get("again_of"):
        old = app.service.job(slots["again_of"])
        return old.request.model_copy(update=flags), old.spec.workspace
    configured = {"local": {}, **app.settings.clusters}
    request = request_from(
        Path(slots["request"]) if "request" in slots else None,
        flags=flags,
        command=(slots["command"],) if "command" in slots else None,
        default_workspace=app.settings.workspace,
        cwd=Path.cwd(),
        clusters={name: str(options.get("kind", name)) for name, options in configured.items()},
        default_cluster=app.settings.cluster,
    )
    return request, request.workspace or ""


def _answer(app: App, slots: dict[str, Any], json_wanted: bool) -> None:
    """The option's key, with its value where it takes one; the service checks it once more."""
    from agent.cli import questions
    from states.questions import Question

    open_now = {q.id: q for job in app.store.with_open_questions() for q in job.open_questions}
    options = str(slots.get("option", "")).split(",")
    for place, number in enumerate(str(slots["question"]).split(",")):
        asked: Question | None = open_now.get(number)
        if asked is None:
            raise Fault(Exit.refused, f"{number} is not open any more; `wk questions` lists the open ones")
        option = options[min(place, len(options) - 1)]
        key = asked.template.default if option == "default" else ""
        if option.isdigit():
            key = asked.template.options[int(option) - 1].key
        value = str(slots.get("value", ""))
        questions.answer(number, [word for word in (key, value) if word], json_wanted=json_wanted)


def _watch(app: App, name: str, json_wanted: bool) -> None:
    from agent.cli.acting import carried_on

    job = app.service.watch_text(name).job
    carried_on(app, job.id)
    show(json_wanted, {"run": job.id}, f"{job.id} is watched to its end. Follow it: wk follow {job.id}")


def _library(app: App, slots: dict[str, Any], json_wanted: bool) -> None:
    """Recall; or record for a kind of work: an image or a proxy, which are looked up again (H1), a path as a note."""
    from agent.cli import library

    values: dict[str, str] = {field: str(slots[field]) for field in ("image", "proxy") if field in slots}
    note = f"told in the chat: {slots['path']}" if slots.get("path") else "told in the chat"
    if slots.get("forget"):
        library.library_list(json_wanted=json_wanted)
        say("" if json_wanted else "Forget one by its number: wk library forget NUMBER")
        return
    if not slots.get("record"):
        library.library_list(json_wanted=json_wanted)
        return
    if not slots.get("purpose"):
        raise Fault(
            Exit.refused,
            "the library keeps everything for a kind of work; say which, for example: remember IMAGE for sft",
        )
    from agent.clock import serial
    from states.effects import Remember

    purpose = str(slots["purpose"])
    effect = Remember(what="fact", purpose=purpose, values=values, note=note)
    app.library.remember(f"chat:{serial()}", effect, app.clock.now())
    told = ", ".join([*values.values(), *([slots["path"]] if slots.get("path") else [])])
    show(json_wanted, {"recorded": values, "note": note, "for": purpose}, f"Remembered for {purpose}: {told}")
