"""Gives a tool its signature on the wire: camelCase names, and the fields of its keyword mapping one by one.

Never: change what a tool does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, get_args, get_type_hints

Tool = Callable[..., Any]


def camel(name: str) -> str:
    """`tail_lines` -> `tailLines`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def on_the_wire(tool: Tool, resolved: Mapping[str, Any] | None = None) -> Tool:
    """The tool under the wire's names. resolved: {parameter: annotation} of what is not an argument but found first.

    `**wanted: Unpack[Mapping]` becomes one argument a field; a field that was not given is not passed on.
    """
    own = inspect.signature(tool, eval_str=True)
    annotations = {
        p.name: p.annotation for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD
    }
    defaults = {p.name: p.default for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD}
    fields: dict[str, Any] = {}
    for parameter in own.parameters.values():
        if parameter.kind is Parameter.VAR_KEYWORD:
            fields = get_type_hints(get_args(parameter.annotation)[0], include_extras=True)
    annotations |= {name: kind | None for name, kind in fields.items()} | dict(resolved or {})
    defaults |= dict.fromkeys(fields)
    names = {camel(name): name for name in annotations}

    def passed_on(given: dict[str, Any]) -> dict[str, Any]:
        mine = {names[name]: value for name, value in given.items()}
        return {name: value for name, value in mine.items() if name not in fields or value is not None}

    async def awaited(**given: Any) -> Any:
        return await tool(**passed_on(given))

    def called(**given: Any) -> Any:
        return tool(**passed_on(given))

    call: Tool = awaited if inspect.iscoroutinefunction(tool) else called
    functools.update_wrapper(
        call, tool, assigned=("__name__", "__qualname__", "__doc__", "__module__"), updated=()
    )
    del call.__wrapped__  # type: ignore[attr-defined]  # its signature is this one
    call.__annotations__ = {camel(name): kind for name, kind in annotations.items()}
    call.__annotations__["return"] = own.return_annotation
    call.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[
            Parameter(
                camel(name),
                Parameter.KEYWORD_ONLY,
                annotation=kind,
                default=defaults.get(name, Parameter.empty),
            )
            for name, kind in annotations.items()
        ]
    )
    return call
