"""The one call to a model's server, by the provider's client: an unchecked answer or a typed failure comes out.

The client is imported when the first call is made. Its traps are in STACK 1: no repeats of its own, no credentials
from the environment or a profile, the body read piece by piece under a time-out of ours, and parsed by us.

Never: judge a reply; wait or repeat because a server says so; put the key anywhere but into request headers.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from agent.clock import Clock
from agent.reader.budget import worst_case_usd
from agent.reader.prices import Tokens
from agent.reader.prompt import Prompt
from agent.reader.reply import Answer, NoAnswer, VoidKind
from agent.settings import ModelSettings
from states.words.wording import plain

if TYPE_CHECKING:
    import anthropic

BASE_URL = "https://api.anthropic.com"
GATEWAY_VERSION = "2023-06-01"
"""The protocol version that gateways and compatible servers know."""

BODY_BYTES_MAX = 1 << 20
CONNECT_S_MAX = 10.0
REST_S_MAX = 3600.0
"""Longest rest that a server is believed to need."""

WITHOUT_THINKING = frozenset({"claude-haiku-5-5"})
"""Models that accept thinking switched off (STACK 1); others are asked without the setting."""


class _Block(BaseModel):
    type: str
    text: str = ""


class _Usage(BaseModel):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(BaseModel):
    """As much of a reply as is used; a server's other fields are its own affair."""

    type: str = "message"
    content: list[_Block]
    stop_reason: str | None = None
    model: str = ""
    usage: _Usage = _Usage()


class MessagesApi:
    """A `Caller` over the Messages API. The key goes into request headers and nowhere else.

    Another server (`base_url`) also gets the key as `x-api-key` and the version that gateways know. A header of the
    settings wins over both, and may hold `${ANTHROPIC_API_KEY}`. trust_env: whether HTTP(S)_PROXY is honoured;
    by default everywhere but on this machine's loopback, which no proxy can reach.
    """

    def __init__(
        self, settings: ModelSettings, key: str, clock: Clock, *, trust_env: bool | None = None
    ) -> None:
        self._settings, self._key, self._clock = settings, key, clock
        self._url = settings.base_url or BASE_URL
        self._trust_env = not _is_loopback(self._url) if trust_env is None else trust_env
        self._plain = False
        self._lock = threading.Lock()
        self._client: anthropic.Anthropic | None = None

    def __repr__(self) -> str:
        return f"MessagesApi({self._settings.name!r})"

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def how(self) -> str:
        return self._settings.effort

    def worst_usd(self, prompt: Prompt) -> float | None:
        """By list price."""
        return worst_case_usd(self.name, prompt.file.text + prompt.user, self._settings.output_tokens)

    def ask(self, prompt: Prompt) -> Answer:
        """One call, without repeats. A server of another make that refuses structured output is asked without it."""
        return _answer(*self._sent(prompt, plain_only=self._plain))

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _sent(self, prompt: Prompt, *, plain_only: bool) -> tuple[bytes, str]:
        """The body of a good answer and its request id; every failure as NoAnswer."""
        import anthropic
        import httpx2

        try:
            sent = self._posted(prompt, {} if plain_only else self._options(prompt))
            self._plain = plain_only
            return sent
        except anthropic.APIStatusError as error:
            if error.status_code in (400, 422) and self._settings.base_url and not plain_only:
                return self._sent(prompt, plain_only=True)
            raise _refused(error, self._clock.now()) from None
        except (anthropic.APITimeoutError, httpx2.TimeoutException):
            raise _too_slow(self._settings.timeout_s) from None
        except (anthropic.APIConnectionError, httpx2.HTTPError):
            said = "the model's server cannot be reached; check `model.base_url`, the network and the proxy"
            raise NoAnswer("unreachable", said) from None
        except NoAnswer:
            raise
        except Exception as error:  # whatever a client library raises: no reading, and the run goes on (I3)
            raise NoAnswer("invalid", f"the client of the model failed ({type(error).__name__})") from None

    def _posted(self, prompt: Prompt, options: Mapping[str, Any]) -> tuple[bytes, str]:
        """Reads the body piece by piece: a server that drips bytes cannot hold a worker longer than the time-out."""
        settings, begun, body = self._settings, self._clock.now(), bytearray()
        call = self._made().messages.with_streaming_response.create
        with call(
            model=settings.name,
            max_tokens=settings.output_tokens,
            system=prompt.file.text,
            messages=[{"role": "user", "content": prompt.user}],
            **options,
        ) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > BODY_BYTES_MAX:
                    raise NoAnswer("invalid", "the model's server sent more than any reply can hold")
                if (self._clock.now() - begun).total_seconds() > settings.timeout_s:
                    raise _too_slow(settings.timeout_s)
            return bytes(body), response.headers.get("request-id", "")

    def _options(self, prompt: Prompt) -> dict[str, Any]:
        schema = {name: part for name, part in prompt.file.schema.items() if name not in ("$schema", "title")}
        form = {"type": "json_schema", "schema": schema}
        options: dict[str, Any] = {"output_config": {"effort": self._settings.effort, "format": form}}
        if self._settings.name in WITHOUT_THINKING:
            options["thinking"] = {"type": "disabled"}
        return options

    def _made(self) -> anthropic.Anthropic:
        """The client, made once. Key and server are explicit, so that nothing in the environment replaces them;
        redirects are not followed, since they would carry the log and the key elsewhere."""
        import anthropic

        with self._lock:
            if self._client is None:
                timeout_s = self._settings.timeout_s
                self._client = anthropic.Anthropic(
                    api_key=self._key,
                    base_url=self._url,
                    max_retries=0,
                    timeout=anthropic.Timeout(timeout_s, connect=min(CONNECT_S_MAX, timeout_s)),
                    default_headers=self._headers(),
                    http_client=anthropic.DefaultHttpxClient(
                        trust_env=self._trust_env, follow_redirects=False
                    ),
                )
            return self._client

    def _headers(self) -> dict[str, str]:
        gateway = {"x-api-key": self._key, "anthropic-version": GATEWAY_VERSION}
        own = {
            name.lower(): value.replace("${ANTHROPIC_API_KEY}", self._key)
            for name, value in self._settings.headers.items()
        }
        return (gateway if self._settings.base_url else {}) | own


def _answer(body: bytes, request_id: str) -> Answer:
    """A good answer's body as an Answer: the text blocks by their type, never by their place (STACK 1)."""
    try:
        message = _Message.model_validate_json(body)
    except (ValidationError, ValueError):
        said = "the model's server answered with something that is no reply of the protocol; check `model.base_url`"
        raise NoAnswer("invalid", said) from None
    text = "".join(block.text for block in message.content if block.type == "text")
    usage = message.usage
    tokens = Tokens(
        max(0, usage.input_tokens),
        max(0, usage.output_tokens),
        max(0, usage.cache_read_input_tokens or 0),
        max(0, usage.cache_creation_input_tokens or 0),
    )
    return Answer(text, message.stop_reason or "", plain(message.model, 80), tokens, plain(request_id, 80))


def _refused(error: anthropic.APIStatusError, now: datetime) -> NoAnswer:
    """A status that is no success, in our words; the server's own are not repeated, they may echo the log."""
    status, wait_s = error.status_code, _retry_after_s(error.response.headers, now)
    kind: VoidKind
    match status:
        case 401 | 403:
            kind, said = (
                "auth",
                "the model's server does not accept the key: run `wk key set ANTHROPIC_API_KEY`",
            )
        case 402:
            kind, said = "payment", "the account of the model's key has no credit"
        case 404:
            kind, said = (
                "request",
                "the model's server does not know this model or path: check `model.name` and `model.base_url`",
            )
        case 408 | 504:
            kind, said = "timeout", "the model's server ran out of time"
        case 429:
            kind, said = "busy", "the model's server has had too many requests of this key"
        case _ if status >= 500:
            kind, said = "busy", "the model's server is overloaded or broken"
        case _:
            kind, said = "request", "the model's server refuses the request: check the settings under `model`"
    word = plain(str(error.type or ""), 40)
    return NoAnswer(kind, f"{said} (HTTP {status}{', ' + word if word else ''})", wait_s)


def _too_slow(timeout_s: float) -> NoAnswer:
    return NoAnswer("timeout", f"the model did not answer within {timeout_s:g} s (`model.timeout_s`)")


def _retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until the server wants to be asked again; None when it does not say, or says nonsense."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - now).total_seconds()
        except (TypeError, ValueError):
            return None
    return min(seconds, REST_S_MAX) if seconds > 0 else None


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
