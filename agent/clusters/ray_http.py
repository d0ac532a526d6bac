"""The way to Ray's dashboard: JSON over HTTP with a time-out, and what a bad answer means.

Ray answers a fault with HTTP 500 and a traceback, whatever the fault is; the last line of it is the only part worth
telling. A connection is made for each call: it is cheap beside the interval of the looks, and a head that was
replaced behind its name is simply the next one.

Never: put a token into a message; take a proxy or a token from the agent's environment; retry.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.clusters.base import Refused, Unclear, Unreachable
from agent.clusters.ray_options import Options
from agent.secrets import SecretsError, advice

if TYPE_CHECKING:
    import httpx2

WORDS_MAX = 300
"""Characters of Ray's own words in a message."""
BUSY_S = 15.0
"""When to ask again after an answer that says "too much at once"."""

Secret = Callable[[str], str | None]


class Answer(NamedTuple):
    """Status and text of an answer; date: its `Date` header, "" if it has none."""

    status: int
    text: str
    date: str = ""

    def json(self) -> Any:
        """The text as JSON. Raises Unclear."""
        import json

        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            raise Unclear(f"not an answer of Ray's API: {last_line(self.text)}") from None


class Http:
    """Calls to one dashboard. secret: value of a key by name, None if it is not set."""

    def __init__(self, options: Options, secret: Secret) -> None:
        self.options, self._secret = options, secret

    def get(self, path: str, **params: str) -> Answer:
        """A look. An answer with 404 is given back. Raises Unreachable, or Refused without a valid token."""
        answer = self._call("GET", path, params=params)
        if answer.status not in (200, 404):
            raise self.failure(answer)
        return answer

    def send(self, method: str, path: str, body: Any = None, *, timeout_s: float | None = None) -> Answer:
        """A change; any answer but a refused token is given back. Raises Unreachable (it was not sent), Unclear (it
        may have arrived), Refused."""
        answer = self._call(method, path, body=body, timeout_s=timeout_s)
        if answer.status in (401, 403):
            raise self.failure(answer)
        return answer

    def failure(self, answer: Answer) -> Refused | Unreachable:
        """What a bad status of a look means."""
        if answer.status in (401, 403):
            name = self.options.token
            help_ = advice(name) if name else "Set `token: RAY_AUTH_TOKEN` for the cluster and give that key."
            return Refused(
                f"{self.options.address} does not let us in (HTTP {answer.status}). {help_}",
                cause="auth.denied",
            )
        retry_after_s = BUSY_S if answer.status in (429, 503) else None
        said = f"Ray at {self.options.address} answered HTTP {answer.status}: {last_line(answer.text)}"
        return Unreachable(said, retry_after_s=retry_after_s)

    @contextmanager
    def stream(self, path: str, **params: str) -> Iterator[httpx2.Response]:
        """An open answer, to be read as far as wanted. Raises Unreachable, also from within."""
        with (
            self._client() as client,
            self._faults(sent=False),
            client.stream("GET", path, params=params) as got,
        ):
            yield got

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        with self._client() as client, self._faults(sent=method != "GET"):
            got = client.request(
                method, path, json=body, params=params, timeout=timeout_s or self.options.timeout_s
            )
        return Answer(got.status_code, got.content.decode(errors="replace"), got.headers.get("date", ""))

    def _client(self) -> httpx2.Client:
        import httpx2

        options = self.options
        headers = {**options.headers, **self._token()}
        return httpx2.Client(
            base_url=options.address,
            headers=headers,
            verify=self._trust if options.address.startswith("https:") else False,
            proxy=options.proxy or None,
            timeout=options.timeout_s,
            trust_env=False,
        )

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.options.ca_file or None)

    def _token(self) -> dict[str, str]:
        if not self.options.token:
            return {}
        try:
            value = (self._secret(self.options.token) or "").strip()
        except SecretsError as error:
            raise Refused(f"nothing was sent to Ray: {error}", cause="auth.denied") from None
        if not value:
            said = f"nothing was sent to Ray: {self.options.token} is not set. {advice(self.options.token)}"
            raise Refused(said, cause="auth.denied")
        return {"Authorization": f"Bearer {value}"}

    @contextmanager
    def _faults(self, *, sent: bool) -> Iterator[None]:
        """sent: what failed after the connection stood may have been done all the same."""
        import httpx2

        at = self.options.address
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            said = f"nobody answers at {at} ({_said(error)}); is the head up, and its dashboard reachable from here?"
            raise Unreachable(said) from None
        except httpx2.TransportError as error:
            if sent:
                raise Unclear(
                    f"the answer of {at} was lost ({_said(error)}); it may have been done"
                ) from None
            raise Unreachable(f"no answer from {at} ({_said(error)})") from None


def last_line(text: str) -> str:
    """The line that tells: the last of a traceback, or of whatever came."""
    lines = [line.strip() for line in text.splitlines() if line.strip() not in ("", ".")]
    return re.sub(r"\s+", " ", lines[-1])[:WORDS_MAX] if lines else "(nothing)"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:WORDS_MAX]
