"""Commands for the open questions: `questions`, `answer`.

Never: an answer that the service did not check; a credential taken as an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.acting import carried_on
from agent.cli.completion import complete_question, complete_reply, complete_run
from agent.cli.output import BLANK, JsonFlag, emit, opened, say, show

if TYPE_CHECKING:
    from states.job import Job
    from states.questions import Question

PANEL = "Runs and questions"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(rich_help_panel=PANEL)(questions)
    app.command(rich_help_panel=PANEL)(answer)


def questions(
    run: Annotated[
        str, typer.Argument(help="Only those of this run.", autocompletion=complete_run, show_default=False)
    ] = "",
    json_wanted: JsonFlag = False,
) -> None:
    """List the open questions and how to answer them."""
    from states.words.rows import question_rows, text

    app = opened()
    jobs = [app.service.job(run)] if run else app.store.with_open_questions()
    found = [(job, question) for job in jobs for question in job.open_questions]
    if json_wanted:
        emit([question_data(job, question) for job, question in found])
        return
    if not found:
        say("No open questions.")
        return
    for place, (job, question) in enumerate(found):
        say(*([BLANK] if place else []), text(*question_rows(job, question)))


def answer(
    question: Annotated[
        str, typer.Argument(help="A question's id, or its run's.", autocompletion=complete_question)
    ],
    reply: Annotated[
        list[str],
        typer.Argument(
            help="An option's key or number, with its value where it takes one.",
            autocompletion=complete_reply,
        ),
    ],
    key: Annotated[
        str,
        typer.Option(
            "--key", help="Your own key: the same answer again changes nothing.", show_default=False
        ),
    ] = "",
    json_wanted: JsonFlag = False,
) -> None:
    """Answer an open question. The work goes on at once."""
    app = opened()
    applied = app.service.answer(question, " ".join(reply), key=key)
    carried_on(app, applied.job.id)
    job = applied.job
    document = {
        "run": job.id,
        "state": str(job.state),
        "duplicate": applied.duplicate,
        "said": applied.reason,
    }
    show(
        json_wanted,
        document,
        f"{job.id}: {applied.reason or 'answered'}. It is {str(job.state).replace('_', ' ')} now.",
    )


def question_data(job: Job, question: Question) -> dict[str, Any]:
    """A question for a program: what it asks, the options with what they do, the default, the deadline."""
    from states.questions import option_text
    from states.words.rows import asks

    return {
        "id": question.id,
        "run": job.id,
        "kind": question.kind,
        "asks": asks(job, question),
        "options": [
            {"key": option.key, "text": option_text(option, job.language), "value": option.value or None}
            for option in question.template.options
        ],
        "default": question.default.key,
        "default_value": question.preset_value or None,
        "by_order": question.preset_by or question.deadline_by or None,
        "asked_at": question.asked_at,
        "answer_by": question.answer_by,
        "evidence": [quote.model_dump() for quote in question.evidence],
        "rule": question.template.rule,
    }
