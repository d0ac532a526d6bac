"""What is laid over a Job beside what is ours, and what takes its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.clusters.base import Refused
from agent.clusters.kubernetes_options import Options
from agent.clusters.kubernetes_overlay import overlaid, paths_laid_over, starts_elsewhere
from tests.clusters.kubernetes.made import OPTIONS, container_of, made, pod_of

pytest.importorskip("kubernetes", reason="the extra `kubernetes` is not installed")

CONF = {"name": "conf", "configMap": {"name": "conf"}}


def over(**pod: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": pod}}}


def laid_over(*fragments: dict[str, Any], options: Options = OPTIONS, **changes: Any) -> dict[str, Any]:
    return made(options, extra_args=tuple(map(json.dumps, fragments)), **changes)


def test_a_mount_stands_beside_ours_and_at_the_same_path_takes_its_place() -> None:
    main = {"name": "main", "volumeMounts": [{"name": "conf", "mountPath": "/conf"}]}
    beside = laid_over(over(containers=[main], volumes=[CONF]))
    assert {mount["mountPath"] for mount in container_of(beside)["volumeMounts"]} == {"/ws", "/conf"}
    main = {"name": "main", "volumeMounts": [{"name": "conf", "mountPath": "/ws/"}]}
    instead = laid_over(over(containers=[main], volumes=[CONF]))
    assert container_of(instead)["volumeMounts"] == [{"name": "conf", "mountPath": "/ws/"}]


def test_memory_of_theirs_is_not_mounted_twice() -> None:
    small = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}
    main = {"name": "main", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}
    pod = pod_of(laid_over(over(containers=[main], volumes=[small]), gpu=1))
    assert [volume["name"] for volume in pod["volumes"]] == ["watchkeeper-0", "shm"]


@pytest.mark.parametrize(
    ("key", "ours", "theirs"),
    [
        ("env", {"name": "A", "value": "1"}, {"name": "A", "valueFrom": {"secretKeyRef": {"name": "k", "key": "a"}}}),
        ("volumes", {"name": "v", "emptyDir": {}}, CONF | {"name": "v"}),
        ("volumeMounts", {"mountPath": "/a", "name": "v", "subPath": "s"}, {"mountPath": "/a/", "name": "w"}),
    ],
)  # fmt: skip
def test_a_value_of_the_same_name_is_taken_whole(key: str, ours: Any, theirs: Any) -> None:
    assert overlaid({key: [ours]}, {key: [theirs]}) == {key: [theirs]}


def test_containers_of_the_same_name_are_merged_and_others_added() -> None:
    under = {"initContainers": [{"name": "i", "image": "a", "args": ["x"]}]}
    laid = overlaid(under, {"initContainers": [{"name": "i", "image": "b"}, {"name": "j"}]})
    assert laid == {"initContainers": [{"name": "i", "image": "b", "args": ["x"]}, {"name": "j"}]}
    assert under == {"initContainers": [{"name": "i", "image": "a", "args": ["x"]}]}


def test_what_has_no_name_is_not_dropped() -> None:
    """The API server is to refuse it, and does."""
    assert overlaid({"env": []}, {"env": [{"value": "1"}]}) == {"env": [{"value": "1"}]}


def test_the_settings_and_a_request_are_both_laid_over() -> None:
    settings = {"containers": [{"name": "main", "volumeMounts": [{"name": "conf", "mountPath": "/conf"}]}],
                "volumes": [CONF]}  # fmt: skip
    options = OPTIONS.model_copy(update={"pod": settings})
    names = {volume["name"] for volume in pod_of(laid_over(options=options))["volumes"]}
    assert names == {"watchkeeper-0", "conf"}
    assert paths_laid_over(settings, []) == {"/conf"}


def test_a_folder_to_start_in_makes_the_workspace_optional() -> None:
    own = over(containers=[{"name": "main", "workingDir": ""}])
    assert starts_elsewhere({}, [own])
    assert not starts_elsewhere({}, [over(containers=[{"name": "proxy", "workingDir": ""}])])
    assert "volumes" not in pod_of(laid_over(own, options=Options()))
    with pytest.raises(Refused, match="/ws/run"):
        laid_over(options=Options())
