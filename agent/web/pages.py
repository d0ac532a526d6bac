"""Pages from templates: escaped, redacted, in the reader's language, with the prefix of a proxy before every path.

Every value that a template shows passes `ports.redact` on its way (the templates' `finalize`) and loses what cannot
be seen, so that no page can forget it.

Never: a text that is marked safe and was not made here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from agent.people import Role
from agent.redaction import bare
from agent.service import Service
from agent.web.words import Language, language_of, word
from states.words.wording import duration, plain, since, when

LANGUAGE_COOKIE = "wk_language"


class Pages:
    """The templates. prefix: before every path."""

    def __init__(self, service: Service, prefix: str) -> None:
        self._service = service
        self._prefix = prefix
        self._environment = Environment(
            loader=PackageLoader("agent.web", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=self._redacted,
        )
        self._environment.globals.update(Role=Role, when=when)

    def page(self, request: Request, template: str, *, status: int = 200, **facts: Any) -> HTMLResponse:
        """The page of this template, for whoever asks."""
        language = self.language(request)
        now = self._service.ports.clock.now()
        person = getattr(request.state, "person", None)
        shown = self._environment.get_template(template).render(
            facts
            | {
                "status": status,
                "t": _words(language),
                "ago": _ages(language, now),
                "time": lambda seconds: duration(seconds, language),
                "language": language,
                "now": now,
                "to": self._prefix,
                "person": person,
                "base": "bare.html" if "hx-request" in request.headers else "base.html",
                "may": (lambda role: person.role.covers(role)) if person else (lambda role: False),
                "plain": plain,
                "here": request.url.path.removeprefix(self._prefix),
            }
        )
        return HTMLResponse(shown, status)

    def language(self, request: Request) -> Language:
        """The language that the reader chose, or that their browser asks for."""
        chosen = request.cookies.get(LANGUAGE_COOKIE, "")
        return language_of(chosen, request.headers.get("accept-language", ""), self._service.language)

    def _redacted(self, value: Any) -> Any:
        if value is None:
            return ""
        if isinstance(value, (Markup, int, float)):
            return value
        return bare(self._service.ports.redact(str(value)))


def _words(language: Language) -> Callable[..., str]:
    return lambda key, **facts: word(language, key, **{name: str(value) for name, value in facts.items()})


def _ages(language: Language, now: datetime) -> Callable[[datetime], str]:
    return lambda then: word(language, "ago", time=duration(since(then, now), language))
