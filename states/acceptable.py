"""What of a request is filled in by standing orders, and what of one must be refused before anything is stored.

Never: fill in what a request states itself; repeat a credential.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from states import goals
from states.credentials import find_credentials, is_secret
from states.orders import Standing
from states.spec import Request, Spec

ODD = re.compile("[\x00\ud800-\udfff]")
ARGUMENTS = ("command", "smoke", "extra_args")
"""Fields that are words of a command line, where a flag stands before its value."""


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


def unacceptable(request: Request, is_known: Callable[[str], bool] = lambda text: False) -> str:
    """Why a request is taken in no form, "" if it may be: it carries a credential (B4), or a text that no program can
    be given. Names places, never a value."""
    odd = [
        place
        for place in type(request).model_fields
        if any(ODD.search(text) for text in _texts(getattr(request, place)))
    ]
    if odd:
        return (
            f"the request has a NUL byte or half a character (a lone surrogate) in: {', '.join(odd)}. No program can "
            "be given that. Nothing was stored or submitted; take it out."
        )
    carrying = credentials_in(request, is_known)
    if not carrying:
        return ""
    return (
        f"the request carries what looks like a credential in: {', '.join(carrying)}. Nothing was stored or "
        "submitted. Take it out; a job reads its credentials from a file below the workspace or from the cluster's "
        "own secrets."
    )


def credentials_in(request: Request, is_known: Callable[[str], bool] = lambda text: False) -> list[str]:
    """The places of a request that carry a credential (B4), by name and never by value.

    By what looks like one, in any field: a flag and its value in two words too. is_known: whether a text holds a
    value that is known to be secret; not asked of the group, which is told apart by its settings (B3).
    """
    fields = {place: tuple(_texts(getattr(request, place))) for place in type(request).model_fields}
    fields["env"] = tuple(request.env)  # the values are judged together with their names
    carrying = [
        place
        for place, parts in fields.items()
        if find_credentials("\n".join(parts))
        or (place in ARGUMENTS and find_credentials(" ".join(parts)))
        or (place != "group" and any(map(is_known, (*parts, "\n".join(parts)))))
    ]
    return carrying + [
        f"env {name}"
        for name, value in request.env.items()
        if is_secret(name, value) or find_credentials(value) or is_known(value)
    ]


def _texts(value: object) -> Iterator[str]:
    """Every text in a field, its names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        yield from _texts(dict(value))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _texts(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from _texts(inner)


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
