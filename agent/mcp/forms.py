"""A question as a form that a client puts to its person, and the reply that a filled form is.

The same form goes out by elicitation and as a task's input request, so that a person sees one question everywhere.

Never: a field for a credential (B6); an option that the question does not have (G1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mcp.server.elicitation import render_elicitation_schema
from pydantic import BaseModel, Field, create_model

from agent.mcp.shapes import question_of
from states.job import Job
from states.questions import Question
from states.words.wording import when


def message_of(job: Job, question: Question) -> str:
    """What is asked, the options, the default and the deadline (G1)."""
    asked = question_of(job, question)
    options = [f"- {o.key}{f' (give the {o.value})' if o.value else ''}: {o.does}" for o in asked.options]
    silent = f"Without an answer by {when(asked.answer_by)}: {asked.default}. Never put a credential here."
    return "\n".join(filter(None, [asked.asks, asked.evidence, *options, silent]))


def model_of(question: Question) -> type[BaseModel]:
    """The form's fields: the option, and a value where one of them takes one."""
    keys = tuple(option.key for option in question.template.options)
    fields: dict[str, Any] = {"option": (Literal[keys], Field(description="What to do"))}
    takes = [f"the {option.value} for {option.key}" for option in question.template.options if option.value]
    if takes:
        fields["value"] = (str, Field(default="", description=", ".join(takes)))
    return create_model("Answer", **fields)


def request_of(job: Job, question: Question) -> dict[str, Any]:
    """The question as an `elicitation/create` request, as a task carries it."""
    schema = render_elicitation_schema(model_of(question))
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message_of(job, question), "requestedSchema": schema},
    }


def reply_of(content: Mapping[str, Any]) -> str:
    """A filled form as the service takes an answer: `image lab/train:2`."""
    return f"{content.get('option', '')} {content.get('value') or ''}".strip()
