"""How large a download is, asked of its server before it begins (RULES D1, E11).

One HEAD request with a short time-out; a server that does not answer or does not say leaves the size unknown. That
it answers here says nothing about the job's network (C7).

Never: follow an answer into anything but http(s); use this machine's own proxy settings; raise.
"""

from __future__ import annotations

TIMEOUT_S = 5.0


def size_of(url: str, proxy: str = "") -> int | None:
    """Bytes that a GET would give; None where that is not known. proxy: the recorded one, "" for none."""
    import httpx2

    try:
        with httpx2.Client(
            proxy=proxy or None, timeout=TIMEOUT_S, follow_redirects=True, trust_env=False
        ) as client:
            answer = client.head(url, headers={"Accept-Encoding": "identity"})
            length = answer.headers.get("Content-Length", "")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return None
    return int(length) if answer.is_success and length.isdigit() else None
