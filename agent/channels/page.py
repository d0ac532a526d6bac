"""What a signed link opens: one question, with its options, until its deadline; no login, and nothing else.

Opening it changes nothing, since programs that preview links open them too; an answer is a form that is sent.

Never: more of a run than the question shows; an answer to another question than the link's.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse

from agent.channels.links import PATH, Links, NotGood
from agent.clock import serial
from agent.service import Refusal
from agent.store import Unknown
from agent.web.here import here
from states.questions import Question, option_text, worded
from states.words.rows import chosen_words

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get(PATH + "{token}")
def show(request: Request, token: str) -> HTMLResponse:
    """The question of a link, or why there is none."""
    return _shown(request, token)


@router.post(PATH + "{token}")
def reply(
    request: Request,
    token: str,
    option: Annotated[str, Form(max_length=100)] = "",
    text: Annotated[str, Form(max_length=4000)] = "",
    key: Annotated[str, Form(max_length=40)] = "",
) -> HTMLResponse:
    """An answer to the question of a link."""
    try:
        link = _links(request).read(token)
    except NotGood:
        return _shown(request, token)
    said = f"{option}={text}" if option and text else option or text
    try:
        event_key = f"link:{key}" if key else ""
        here(request).service.answer(link.question_id, said, by=f"{link.by} (link)", key=event_key)
    except Refusal as refused:
        return _shown(request, token, refused=str(refused), status=409)
    return _shown(request, token)


def _shown(request: Request, token: str, *, refused: str = "", status: int = 200) -> HTMLResponse:
    pages, service = here(request).pages, here(request).service
    try:
        link = _links(request).read(token)
        run, _, number = link.question_id.rpartition("/")
        job = service.job(run).but(language=pages.language(request))
        question = next(q for q in job.questions if str(q.number) == number)
    except (NotGood, Unknown, StopIteration) as error:
        words = str(error) or "there is no such question any more"
        return pages.page(request, "link.html", status=410, question=None, words=words)
    facts = {
        "question": question,
        "asks": worded(question, job.language),
        "options": _options(question, job.language),
        "taken": "" if question.is_open else chosen_words(job, question),
        "refused": refused,
        "run": job.id,
        "key": serial(12),
        "words": "",
    }
    return pages.page(request, "link.html", status=status, **facts)


def _options(question: Question, language: str) -> list[tuple[str, str, str, bool]]:
    """(key, words, what it must be given, whether it is the default)."""
    zh = language == "zh"
    return [
        (one.key, option_text(one, "zh" if zh else "en"), one.value, one == question.default)
        for one in question.template.options
    ]


def _links(request: Request) -> Links:
    links: Links = request.app.state.links
    return links
