"""Coming in and going out: the token's form, the session cookie, the reader's language.

The link that is printed at the first start carries the token behind a `#`, which no browser sends to a server and no
log holds; the page's script puts it into the form.

Never: a token in a URL that is sent, or in a cookie.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from agent.web.door import COOKIE, address_of
from agent.web.here import here
from agent.web.pages import LANGUAGE_COOKIE

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

YEAR_S = 365 * 86_400


@router.get("/login")
def login_form(request: Request) -> HTMLResponse:
    """The form."""
    return here(request).pages.page(request, "login.html", wrong=False)


@router.post("/login")
def login(request: Request, token: Annotated[str, Form(max_length=200)]) -> Response:
    """Come in: a signed cookie that this site alone gets back, and that no script can read."""
    place = here(request)
    person = place.door.open(token.strip(), address_of(request))
    if person is None:
        return place.pages.page(request, "login.html", status=401, wrong=True)
    answer = RedirectResponse(f"{place.prefix}/", 303)
    answer.set_cookie(
        COOKIE,
        place.door.session(person),
        max_age=int(place.door.session_s),
        path=f"{place.prefix}/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post("/logout")
def logout(request: Request) -> Response:
    """Go out."""
    place = here(request)
    answer = RedirectResponse(f"{place.prefix}/login", 303)
    answer.delete_cookie(COOKIE, path=f"{place.prefix}/", httponly=True, samesite="strict")
    return answer


@router.post("/language")
def language(request: Request, to: Annotated[str, Form()]) -> Response:
    """Read in English or in Chinese from here on, and back to where one was."""
    place = here(request)
    came_from = urlsplit(request.headers.get("referer", "")).path
    is_ours = came_from.startswith(f"{place.prefix}/") and not came_from.startswith("//")
    answer = RedirectResponse(came_from if is_ours else f"{place.prefix}/", 303)
    answer.set_cookie(
        LANGUAGE_COOKIE,
        "zh" if to == "zh" else "en",
        max_age=YEAR_S,
        path=f"{place.prefix}/",
        samesite="strict",
    )
    return answer
