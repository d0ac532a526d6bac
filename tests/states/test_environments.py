"""Which environments a job may lean on, and why not the others (C6, D3)."""

from __future__ import annotations

from typing import Any

import pytest

from states.environments import Environment, is_our_own, judge_environment, kept_folders, python_path

WS = "/ws"


def environment(**changes: Any) -> Environment:
    values: dict[str, Any] = {
        "path": "/ws/env",
        "real": "/ws/env",
        "kind": "venv",
        "python": "/usr/bin/python3.11",
        "runs": True,
        "home": "/usr/bin",
        "made_for": "/ws/env",
        "modules": frozenset({"torchish"}),
        "site": True,
    }
    return Environment(**{**values, **changes})


def judged(found: Environment, *, in_image: bool = True, imports: tuple[str, ...] = ()) -> tuple[str, str]:
    said = judge_environment(found, kept=(WS, "/mnt/shared"), in_image=in_image, imports=imports)
    return said.level, said.why


def test_a_whole_one_is_fine() -> None:
    assert judged(environment(), imports=("torchish",)) == (
        "fine",
        "an interpreter is there, with all that the script imports (torchish)",
    )


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (environment(python="", runs=False), "it has no bin/python"),
        (environment(python="/ws/py/bin/python", runs=False, home="/ws/py/bin"), "the Python it was made from"),
        (environment(system=True), "leans on the image's site-packages"),
        (environment(pth=("/usr/lib/python3/dist-packages",)), "a .pth file of it leads into"),
        (environment(real="/opt/conda"), "it is a link to /opt/conda"),
        (environment(links={"lib": "/usr/lib"}), "its lib is a link to /usr/lib"),
        (environment(made_for="/opt/conda"), "it is a copy of /opt/conda"),
        (environment(), "it lacks sparsegrid, which the script imports"),
    ],
)  # fmt: skip
def test_what_a_job_in_an_image_must_not_lean_on(found: Environment, why: str) -> None:
    level, said = judged(found, imports=("sparsegrid",))
    assert level == "refused"
    assert why in said


def test_where_there_is_no_image_a_link_to_a_shared_one_is_no_harm() -> None:
    assert judged(environment(real="/shared/env"), in_image=False)[0] == "fine"
    assert judged(environment(system=True), in_image=False)[0] == "note"


def test_a_link_to_a_mount_is_no_link_into_the_image() -> None:
    assert judged(environment(real="/mnt/shared/env"))[0] == "fine"


def test_an_interpreter_of_the_image_is_not_seen_from_here() -> None:
    """C6: said, and not called broken: the image may well have it."""
    assert judged(environment(runs=False))[0] == "unseen"
    assert judged(environment(runs=False), in_image=False)[0] == "refused"


def test_one_that_was_moved_within_the_workspace_is_no_copy_of_the_images() -> None:
    assert judged(environment(made_for="/ws/old-env"))[0] == "fine"
    assert judged(environment(made_for="/home/kim/env"))[0] == "fine"


def test_no_library_is_missed_where_none_could_be_looked_at() -> None:
    assert judged(environment(site=False, modules=frozenset()), imports=("torchish",))[0] == "fine"


def test_python_path_into_a_systems_packages() -> None:
    assert "dist-packages" in python_path("/ws/src:/usr/lib/python3/dist-packages", (WS,))
    assert python_path("/ws/src:/opt/tools/src:", (WS,)) == ""


def test_our_own_are_those_that_we_built() -> None:
    assert is_our_own(".watchkeeper/environments/a-1", WS)
    assert is_our_own("/ws/.watchkeeper/environments/a-1", WS)
    assert not is_our_own("/ws/.watchkeeper/environments/../../env", WS)
    assert not is_our_own("env", WS)


def test_what_outlives_the_image() -> None:
    assert kept_folders(WS, ("pool://a:/mnt/a", "odd")) == (WS, "/mnt/a")
