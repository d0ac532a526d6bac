"""The API server as plain calls: the official client underneath (loaded when first used), dicts above.

Bodies go as they are written and answers come as they were sent: the client's own models would refuse what a newer
server says. A call is made once; nothing is retried here. The environment's proxies are not used, since
keys would pass through them unasked.

    Said            the server answered with an error status (its code, reason and message)
    Unreachable     no answer: refused connection, time-out, 429 and 5xx

Never: log or show a token; retry a create; use the client's process-wide default configuration.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from agent.clusters.base import ClusterError, Refused, Unclear, Unreachable
from agent.clusters.kubernetes_objects import Object, items, text
from agent.clusters.kubernetes_options import Options

MERGE = "application/merge-patch+json"
JSON = "application/json"
PAGE = 500
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
MISSING = "the Kubernetes client is not installed; install watchkeeper[kubernetes]"
MESSAGE_MAX = 600
BODY_MAX = 1 << 16


class Said(Exception):
    """An error status: code (HTTP), reason (`AlreadyExists`, `NotFound`, ...), message, all as the server said."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message

    def refused(self) -> Refused:
        """The same as a refusal by the cluster."""
        return Refused(str(self), cause=_cause(self), retryable="quota" in self.message and self.code == 403)


class Answer(NamedTuple):
    """A whole answer: its bytes (bounded where the call says so) and what the `Date` header said."""

    body: bytes
    date: str = ""
    cut: bool = False


class Api:
    """One API server, for as many threads as like. Every call raises Said, Unreachable or Refused (no access)."""

    def __init__(self, options: Options, name: str) -> None:
        self.options, self.name = options, name
        self._lock = threading.Lock()
        self._client: Any = None

    @cached_property
    def namespace(self) -> str:
        """Where jobs go when no group says otherwise: the option, the context's, the pod's own, `default`."""
        if self.options.namespace:
            return self.options.namespace
        if self._inside():
            with contextlib.suppress(OSError):
                return NAMESPACE_FILE.read_text(encoding="utf-8").strip() or "default"
            return "default"
        with self._configured():
            contexts, active = _package("kubernetes.config").list_kube_config_contexts(self._kubeconfig())
        wanted = self.options.context
        context = next((one for one in contexts if one.get("name") == wanted), None) if wanted else active
        return text(context, "context", "namespace") or "default"

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return _object(self._call("GET", path, query).body)

    def post(self, path: str, body: Object, **query: Any) -> dict[str, Any]:
        return _object(self._call("POST", path, query, body).body)

    def patch(self, path: str, body: Object, **query: Any) -> dict[str, Any]:
        """A JSON merge patch: null takes a field away."""
        return _object(self._call("PATCH", path, query, body, MERGE).body)

    def delete(self, path: str, body: Object) -> None:
        self._call("DELETE", path, {}, body)

    def date(self) -> str:
        """What the server's clock says (the `Date` header of `/version`), "" when it does not tell."""
        return self._call("GET", "/version", {}).date

    def raw(self, path: str, limit: int, **query: Any) -> Answer:
        """The first `limit` bytes of an answer that may be no text."""
        return self._call("GET", path, query, limit=limit)

    def pages(self, path: str, *, pages_max: int = 1000, **query: Any) -> Iterator[dict[str, Any]]:
        """A list piece by piece. Raises Said 410 when the snapshot it is read from has expired on the way."""
        token = ""
        for _ in range(pages_max):
            more = {"continue": token} if token else {}
            page = self.get(path, limit=PAGE, **query, **more)
            yield page
            token = text(page, "metadata", "continue")
            if not token:
                return

    def list(self, path: str, *, pages_max: int = 1000, **query: Any) -> list[Object]:
        """A whole list; one that expires on the way is begun again once, in one piece."""
        try:
            pages = list(self.pages(path, pages_max=pages_max, **query))
        except Said as error:
            if error.code != 410:
                raise
            pages = [self.get(path, **query)]
        return [item for page in pages for item in items(page, "items")]

    def watch(self, path: str, version: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Changes since `version` until the server ends the answer, one a line; about one second."""
        follow = {
            "watch": "true",
            "resourceVersion": version,
            "timeoutSeconds": 1,
            "allowWatchBookmarks": "true",
        }
        for line in self._call("GET", path, {**query, **follow}).body.splitlines():
            if line.strip():
                yield _object(line)

    # --- one call ------------------------------------------------------------------------------------------

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Object | None = None,
        kind: str = JSON,
        limit: int = 0,
    ) -> Answer:
        client = self._connected()
        headers = {"Accept": "application/json, */*"} | ({"Content-Type": kind} if body is not None else {})
        pairs = [(name, value) for name, value in query.items() if value not in (None, "")]
        with self._configured():
            asked = client.param_serialize(
                method,
                path,
                query_params=pairs,
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = client.call_api(
                *asked, _request_timeout=(self.options.timeout_s, self.options.timeout_s)
            )
            found = answer.response
            try:
                data = found.read(limit) if limit else found.read()
                cut = bool(limit) and len(data) == limit and bool(found.read(1))
            finally:
                found.close() if limit else found.release_conn()
        if not 200 <= answer.status < 300:
            raise self._error(answer.status, data[:BODY_MAX], answer.headers)
        return Answer(data, answer.headers.get("Date", ""), cut)

    def _error(self, status: int, data: bytes, headers: Mapping[str, str]) -> Exception:
        try:
            told = json.loads(data)
        except (ValueError, RecursionError):
            told = {}
        said = (text(told, "message") or data.decode(errors="replace").strip() or f"HTTP {status}")[
            :MESSAGE_MAX
        ]
        if status == 401:
            self._client = None  # a rotated token or certificate is read anew at the next call
            mend = "log in again, or mend the kubeconfig"
            return Refused(f"{self.name} does not accept the credentials ({said}); {mend}")
        if status == 429 or status >= 500:
            wait = headers.get("Retry-After", "")
            return Unreachable(
                f"{self.name}: {said}", retry_after_s=float(wait) if wait.isdecimal() else None
            )
        return Said(status, text(told, "reason"), said)

    # --- the client ----------------------------------------------------------------------------------------

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> Any:
        client, config = _package("kubernetes.client"), _package("kubernetes.config")
        with self._configured():
            made = client.Configuration(proxy="", no_proxy="")
            if self._inside():
                config.load_incluster_config(client_configuration=made)
            else:
                config.load_kube_config(
                    self._kubeconfig(),
                    self.options.context or None,
                    client_configuration=made,
                    persist_config=False,
                )
        if self.options.proxy:
            made.proxy = self.options.proxy
        made.retries = False
        return client.ApiClient(made)

    def _inside(self) -> bool:
        """Whether the pod's own account is used."""
        if self.options.in_cluster is not None:
            return self.options.in_cluster
        chosen = self.options.kubeconfig or self.options.context
        return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and not chosen

    def _kubeconfig(self) -> str:
        return os.path.expanduser(
            self.options.kubeconfig or os.environ.get("KUBECONFIG", "") or "~/.kube/config"
        )

    @contextlib.contextmanager
    def _configured(self) -> Iterator[None]:
        """What the client and the network raise, as "could not ask" or as a refusal with a way out."""
        try:
            yield
        except ClusterError:
            raise
        except Exception as error:
            kind = type(error).__name__
            if kind == "ConfigException":
                raise Refused(
                    f"{self.name} is not set up: {error}; check `kubeconfig` and `context`"
                ) from None
            raise Unreachable(f"{self.name} gave no answer: {kind}: {_short(error)}") from None


def _package(name: str) -> Any:
    """A part of the official client, which has no types worth the name. Raises Refused when it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise Refused(MISSING) from None


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise Unclear(f"the API server's answer is no JSON: {data[:80]!r}") from None
    if not isinstance(found, dict):
        raise Unclear(f"the API server's answer is no object: {data[:80]!r}")
    return found


def _short(error: Exception) -> str:
    return str(error).replace("\n", " ")[:200]


def _cause(said: Said) -> str:
    """The code of a refusal, where its words tell."""
    if said.code == 403 and "quota" in said.message:
        return "scheduling.quota"
    if said.code == 422 and ".image" in said.message:
        return "image.not_found"
    return ""
