"""The door: who is it, and may they do that. A bearer token or a signed session cookie; three roles.

A session says who, by which token, and until when, signed with the key of the people's file; its end is checked by
the clock port. Wrong tokens are counted by address and over all, so that nobody can try many (OWASP ASVS 2.2.1).

Never: a right without a person; the reason why a token was refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from fastapi import HTTPException, Request
from itsdangerous import BadSignature, URLSafeSerializer

from agent.clock import Clock
from agent.people import People, Person, Role

COOKIE = "wk_session"
SESSION_S = 12 * 3600.0
"""A working day; then the token is asked for again."""
WINDOW_S = 60.0
WRONG_MAX = 5
"""Wrong tokens of one address in a window; more are not even looked at."""
WRONG_MAX_ALL = 100


class TooMany(HTTPException):
    """Too many wrong tokens. Says when to try again."""

    def __init__(self) -> None:
        super().__init__(
            429, "too many wrong tokens; wait a minute and try again", {"Retry-After": str(int(WINDOW_S))}
        )


class Door:
    """Who comes in. session_s: seconds that a session lasts."""

    def __init__(self, people: People, clock: Clock, *, session_s: float = SESSION_S) -> None:
        self._people = people
        self._clock = clock
        self.session_s = session_s
        self._wrong: deque[tuple[datetime, str]] = deque()
        self._lock = Lock()

    def open(self, token: str, address: str) -> Person | None:
        """Whose token it is; None for a wrong one, which is counted. Raises TooMany."""
        self._refuse_many(address)
        person = self._people.of_token(token)
        if person is None:
            with self._lock:
                self._wrong.append((self._clock.now(), address))
        return person

    def session(self, person: Person) -> str:
        """The cookie's value for somebody who has come in."""
        until = self._clock.now() + timedelta(seconds=self.session_s)
        return str(self._signer().dumps([person.name, person.stamp, until.timestamp()]))

    def who(self, request: Request) -> Person | None:
        """Who sends this request: by the bearer token if there is one, else by the session. Raises TooMany."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind:
            known = self.open(token.strip(), address_of(request)) if kind.lower() == "bearer" else None
            return known
        return self._of_session(request.cookies.get(COOKIE, ""))

    def _of_session(self, value: str) -> Person | None:
        if not value or not self._people.signing_key():
            return None
        try:
            name, stamp, until = self._signer().loads(value)
        except (BadSignature, ValueError, TypeError):
            return None
        if self._clock.now().timestamp() >= until:
            return None
        return self._people.of_stamp(name, stamp)

    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self._people.signing_key(), salt="session")

    def _refuse_many(self, address: str) -> None:
        since = self._clock.now() - timedelta(seconds=WINDOW_S)
        with self._lock:
            while self._wrong and self._wrong[0][0] <= since:
                self._wrong.popleft()
            same = sum(each == address for _, each in self._wrong)
            if same >= WRONG_MAX or len(self._wrong) >= WRONG_MAX_ALL:
                raise TooMany


def address_of(request: Request) -> str:
    """Where a request comes from; behind a proxy on this machine, whom it tells of."""
    return request.client.host if request.client else ""


def needs(role: Role) -> Callable[[Request], Person]:
    """The dependency of a route that wants at least this role: 401 for nobody, 403 for too little."""

    def admitted(request: Request) -> Person:
        door: Door = request.app.state.here.door
        person = door.who(request)
        if person is None:
            raise HTTPException(
                401,
                "who is it? Send your token as the bearer of the Authorization header, or log in",
                {"WWW-Authenticate": "Bearer"},
            )
        if not person.role.covers(role):
            raise HTTPException(
                403, f"{person.name} may {person.role}, and this needs {role}; `wk people add` gives roles"
            )
        request.state.person = person
        return person

    admitted.__name__ = f"needs_{role}"
    return admitted
