"""Signed requests as Standard Webhooks has them: HMAC-SHA256 over id, time and body, within a window of time.

Headers `webhook-id`, `webhook-timestamp` (Unix seconds), `webhook-signature` (`v1,<Base64>`, several apart by
spaces); the secret is `whsec_<Base64>`, or any text as it is. Source: the Standard Webhooks specification 1.0.

Never: a comparison that tells by its time how much was right.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

WINDOW_S = 300
"""How far the time of a request may lie from ours; what is older may be a repeat by somebody who listened."""
PREFIX = "whsec_"


class Forged(Exception):
    """The signature does not hold; the message says what is wrong with it, and nothing of the secret."""


def headers(secret: str, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The three headers of a signed request."""
    stamp = str(int(at.timestamp()))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{_signature(secret, message_id, stamp, body)}",
    }


def verified(secret: str, given: Mapping[str, str], body: bytes, now: datetime) -> str:
    """The id of a request whose signature holds. given: headers by lower-case name. Raises Forged."""
    lacking = [
        name for name in ("webhook-id", "webhook-timestamp", "webhook-signature") if not given.get(name)
    ]
    if lacking:
        raise Forged(f"the header {lacking[0]} is missing")
    message_id, stamp = given["webhook-id"], given["webhook-timestamp"]
    if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
        raise Forged("webhook-timestamp is not a number of seconds")
    if abs(now.timestamp() - int(stamp)) > WINDOW_S:
        raise Forged(f"webhook-timestamp is more than {WINDOW_S} s from the time here; send it anew")
    wanted = _signature(secret, message_id, stamp, body).encode()
    offered = [part.removeprefix("v1,").encode() for part in given["webhook-signature"].split()[:8]]
    if not any(hmac.compare_digest(wanted, one) for one in offered):
        raise Forged("the signature does not fit")
    return message_id


def _signature(secret: str, message_id: str, stamp: str, body: bytes) -> str:
    signed = b".".join((message_id.encode(), stamp.encode(), body))
    return base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode()


def _key(secret: str) -> bytes:
    if secret.startswith(PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            pass
    return secret.encode()
