"""An error of the API server, with the body that the real one gives.

Never: a status without a body.
"""

from __future__ import annotations

from tests.clusters.kubernetes.store import Object


class Failure(Exception):
    """An error status with the body that a real API server gives."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
        self.body = body | ({"reason": reason} if reason else {}) | {"details": details or {}, "code": code}
