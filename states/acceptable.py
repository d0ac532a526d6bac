"""What of a request is filled in by standing orders, and what of one must be refused before anything is stored.

Never: fill in what a request states itself; repeat a credential.
"""

from __future__ import annotations

from typing import Any

from states import goals
from states.credentials import find_credentials, is_secret
from states.orders import Standing
from states.spec import Request, Spec


def filled_in(request: Request, standing: Standing) -> tuple[Request, tuple[str, ...]]:
    """The request with what it leaves out and a standing order prefers, and a sentence about each such value.

    Lane and image by the kind of work, restarts by the budget; a job that is only watched is left as it is (A10).
    """
    if request.existing is not None:
        return request, ()
    changes: dict[str, Any] = {}
    words: list[str] = []
    for field in ("image", "lane"):
        found = standing.preferred(field, request.purpose)
        if found is not None and getattr(request, field) is None:
            changes[field] = found.value
            words.append(f"{field} {found.value}, by {found.by_order}")
    restarts = standing.restarts()
    if restarts is not None and "max_restarts" not in request.model_fields_set:
        changes["max_restarts"] = restarts[0]
        words.append(f"at most {restarts[0]} restarts, by {restarts[1]}")
    return request.model_copy(update=changes), tuple(words)


def credentials_in(request: Request) -> list[str]:
    """The places of a request that carry what looks like a credential (B4), by name and never by value."""
    texts = {
        "command": request.command,
        "smoke": request.smoke,
        "extra_args": request.extra_args,
        "mounts": request.mounts,
        "proxy": (request.proxy or "",),
        "image": (request.image or "",),
        "purpose": (request.purpose,),
        "outputs": request.outputs,
        "assets": tuple(text for asset in request.assets for text in (asset.url, asset.mount, asset.path)),
        "stop_when": tuple(text for c in request.stop_when for text in (c.line, c.file, c.metric) if text),
    }
    carrying = [place for place, parts in texts.items() if find_credentials("\n".join(parts))]
    return carrying + [
        f"env {name}"
        for name, value in request.env.items()
        if is_secret(name, value) or find_credentials(value)
    ]


def out_of_reach(request: Request, spec: Spec) -> list[str]:
    """Goals that could never be met where they are looked for (E8, C11); each a sentence that says what to do."""
    return list(
        goals.faults(
            request.stop_when,
            request.outputs,
            gpu=spec.gpu,
            workspace=spec.workspace,
            mounts=spec.mounts,
        )
    )
