"""The wire's arguments become a request, and a tool's signature is the wire's."""

from __future__ import annotations

import inspect
from typing import TypedDict, Unpack

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from agent.mcp.signatures import camel, on_the_wire
from agent.mcp.wanted import request_of


def test_the_names_that_chat_agents_know_are_ours() -> None:
    request = request_of(
        {
            "command": "python train.py",
            "task_type": "idle",
            "charged_group": "gpu",
            "namespace": "lab",
            "gpu": 8,
        }
    )
    assert request.command == ("bash", "-c", "python train.py")
    assert (request.lane, request.group, request.gpu) == ("idle", "lab:gpu", 8)


def test_a_pair_that_was_given_whole_stays() -> None:
    wanted = {"command": ["true"], "charged_group": "lab:gpu", "namespace": "lab"}
    assert request_of(wanted).group == "lab:gpu"


def test_further_fields_go_by_their_own_names() -> None:
    request = request_of({"command": "true"}, smoke="python -c 'import torch'", max_restarts=0)
    assert request.smoke[0] == "bash"
    assert request.max_restarts == 0


def test_what_was_left_out_stays_out() -> None:
    request = request_of({"command": "true", "gpu": None, "image": None})
    assert request.model_fields_set == {"command"}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"command": "true", "namespace": "lab"}, "chargedGroup"),
        ({"command": "true", "replicas": 0}, "replicas"),
        ({"gpu": 1}, "command"),
        ({"command": "true", "colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_said_by_its_name(wanted: dict[str, object], said: str) -> None:
    with pytest.raises(ToolError, match=said):
        request_of(wanted)


def test_a_value_that_was_refused_is_not_repeated() -> None:
    with pytest.raises(ToolError) as refused:
        request_of({"command": "true", "gpu": "hunter2hunter2"})
    assert "hunter2" not in str(refused.value)


class Fields(TypedDict, total=False):
    task_type: str
    gpu: int


def test_a_tools_names_are_camel_case_on_the_wire_and_its_own_inside() -> None:
    def tool(run: str, tail_lines: int = 200, **wanted: Unpack[Fields]) -> dict[str, object]:
        """Does it."""
        return {"run": run, "tail_lines": tail_lines, **wanted}

    shown = on_the_wire(tool)
    parameters = inspect.signature(shown).parameters
    assert list(parameters) == ["run", "tailLines", "taskType", "gpu"]
    assert parameters["run"].default is inspect.Parameter.empty
    assert shown(run="a", tailLines=5, taskType="idle", gpu=None) == {
        "run": "a", "tail_lines": 5, "task_type": "idle",
    }  # fmt: skip
    assert (shown.__doc__, shown.__name__) == ("Does it.", "tool")


def test_camel_case() -> None:
    assert [camel(name) for name in ("run", "tail_lines", "memory_mib")] == ["run", "tailLines", "memoryMib"]
