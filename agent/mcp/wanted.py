"""The arguments of a submit and of a delegation, under the wire's names, and the request they make.

The wire says taskType and chargedGroup, as the tool that chat agents know does; here they are lane and group.

Never: fill in what was not given (RULES C5, C10); keep an argument that no field stands for.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BeforeValidator, ValidationError, WithJsonSchema

from states.spec import Request

FIELD_OF = {"task_type": "lane", "charged_group": "group"}


def _words(value: object) -> object:
    """One string of flags is split as a shell would; their text is passed through verbatim."""
    return shlex.split(value) if isinstance(value, str) else value


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


Command = Annotated[str | list[str], WithJsonSchema({"type": "string"})]
Words = Annotated[list[str], BeforeValidator(_words)]
Paths = Annotated[list[str], BeforeValidator(_several)]
Gpus = Annotated[int | Literal["auto"], WithJsonSchema({"type": "integer"})]


class Wanted(TypedDict, total=False):
    """What a job can be asked for with. All may be left out but the command."""

    command: Command
    name: str
    image: str
    gpu: Gpus
    cpu: float
    memory_mib: int
    replicas: int
    task_type: Literal["normal", "idle"]
    charged_group: str
    namespace: str
    mounts: Paths
    priority: int
    extra_args: Words
    env: dict[str, str]
    workspace: str
    cluster: str


def request_of(wanted: Mapping[str, Any], **more: Any) -> Request:
    """The request of these arguments. more: further fields of a request, by their own names.

    Raises ToolError with everything that is wrong, and for a namespace without its group (B3).
    """
    given = {
        FIELD_OF.get(name, name): value for name, value in {**wanted, **more}.items() if value is not None
    }
    namespace = given.pop("namespace", "")
    if namespace:
        if not given.get("group"):
            raise ToolError("namespace goes with its chargedGroup; leave both out to use the default pair")
        given["group"] = f"{namespace}:{given['group'].rpartition(':')[2]}"
    try:
        return Request.model_validate(given)
    except ValidationError as error:
        raise ToolError(faults_of(error)) from None


def faults_of(error: ValidationError) -> str:
    """`gpu: Input should be ...; ...`, without the values."""
    told = [f"{'.'.join(map(str, one['loc'])) or 'request'}: {one['msg']}" for one in error.errors()]
    return "; ".join(dict.fromkeys(told))
