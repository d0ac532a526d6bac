"""What a submission becomes: shapes that the API accepts, words that arrive as they were written, whose job it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent.clusters.base import Refused
from agent.clusters.kubernetes_manifest import ATTEMPT, FINGERPRINT, OWNER, job, label, rendered, service
from agent.clusters.kubernetes_mounts import mounts_of, source_of
from agent.clusters.kubernetes_options import Group, Options
from tests.clusters.kubernetes.kubelet import expanded
from tests.clusters.kubernetes.made import OPTIONS, SPEC, container_of, made, pod_of, sent, values_of
from tests.clusters.kubernetes.schema import LABEL, strict_faults

pytest.importorskip("kubernetes", reason="the extra `kubernetes` is not installed")

# --- the Job -----------------------------------------------------------------------------------------------


def test_the_machine_restarts_and_kubernetes_does_not() -> None:
    manifest = made()
    assert manifest["spec"]["backoffLimit"] == 0
    assert pod_of(manifest)["restartPolicy"] == "Never"
    assert manifest["spec"]["podFailurePolicy"]["rules"][0]["action"] == "FailJob"
    assert manifest["spec"]["ttlSecondsAfterFinished"] >= 3600
    assert "suspend" not in manifest["spec"]
    assert service(sent()) is None


def test_figures_are_requests_and_limits() -> None:
    resources = container_of(made(gpu=2, cpu=1.5, memory_mib=4096))["resources"]
    assert resources["requests"] == {"cpu": "1500m", "memory": "4096Mi", "nvidia.com/gpu": "2"}
    assert resources["limits"] == resources["requests"]
    other = container_of(made(Options(storage=OPTIONS.storage, gpu_resource="amd.com/gpu"), gpu=1))[
        "resources"
    ]
    assert other["limits"]["amd.com/gpu"] == "1"
    assert "nvidia.com/gpu" not in container_of(made())["resources"]["limits"]


def test_a_job_gets_no_token_unless_an_account_is_named() -> None:
    assert pod_of(made())["automountServiceAccountToken"] is False
    named = pod_of(made(Options(storage=OPTIONS.storage, service_account="trainer")))
    assert named["serviceAccountName"] == "trainer"
    assert "automountServiceAccountToken" not in named


def test_the_time_limit_counts_from_the_start_on_a_node() -> None:
    manifest = made(time_limit_s=90.0)
    assert pod_of(manifest)["activeDeadlineSeconds"] == 90
    assert "activeDeadlineSeconds" not in manifest["spec"]


def test_nodes_that_are_left_out_are_each_a_rule_of_its_own() -> None:
    terms = pod_of(made(exclude_nodes=("n1", "n2")))["affinity"]["nodeAffinity"]
    (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [rule["values"] for rule in term["matchFields"]] == [["n1"], ["n2"]]


def test_lanes_and_priorities_are_classes() -> None:
    options = Options(
        storage=OPTIONS.storage,
        priority_class="usual",
        idle_priority_class="spare",
        priority_classes={9: "urgent"},
    )
    assert pod_of(made(options))["priorityClassName"] == "usual"
    assert pod_of(made(options, lane="idle"))["priorityClassName"] == "spare"
    assert pod_of(made(options, priority=9))["priorityClassName"] == "urgent"
    assert "priorityClassName" not in pod_of(made())
    with pytest.raises(Refused, match="idle_priority_class"):
        job(sent(lane="idle"), OPTIONS)


def test_a_queue_makes_a_suspended_job_that_kueue_lets_go() -> None:
    manifest = made(Options(storage=OPTIONS.storage, queue="lab"))
    assert manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "lab"
    assert manifest["spec"]["suspend"] is True


def test_a_group_is_what_the_settings_say_and_another_is_refused_without_a_list() -> None:
    options = Options(
        storage=OPTIONS.storage, queue="lab", groups={"vision": Group(queue="eyes", namespace="v")}
    )
    assert made(options, group="vision")["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "eyes"
    with pytest.raises(Refused) as told:
        job(sent(group="other"), options)
    assert "vision" not in str(told.value)


def test_several_replicas_find_each_other() -> None:
    manifest, headless = made(replicas=3), service(sent(replicas=3))
    assert headless is not None
    assert strict_faults("services", headless) == []
    name = manifest["metadata"]["name"]
    assert (manifest["spec"]["completionMode"], manifest["spec"]["parallelism"]) == ("Indexed", 3)
    assert pod_of(manifest)["subdomain"] == headless["metadata"]["name"] == name
    assert headless["spec"]["clusterIP"] == "None"
    assert headless["spec"]["publishNotReadyAddresses"] is True
    assert values_of(manifest)["MASTER_ADDR"] == f"{name}-0.{name}"
    assert values_of(manifest)["WORLD_SIZE"] == "3"
    ranks = {one["name"] for one in container_of(manifest)["env"] if "valueFrom" in one}
    assert ranks == {"RANK", "NODE_RANK"}
    own = made(replicas=3, env={"RANK": "own", "WORLD_SIZE": "24"})
    assert (values_of(own)["RANK"], values_of(own)["WORLD_SIZE"]) == ("own", "24")


def test_an_environment_is_put_before_the_images_own_path() -> None:
    command = container_of(made(environment="/ws/envs/torch"))["command"]
    assert command[3:] == ["/ws/envs/torch", "python", "train.py"]
    assert "$$0/bin:$$PATH" in command[2]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image": ""}, "image"),
        ({"command": ()}, "command"),
        ({"command": ("a\0b",)}, "NUL"),
        ({"env": {"A B": "x"}}, "variable"),
        ({"workspace": "/elsewhere"}, "storage"),
        ({"mounts": ("/nowhere",)}, "nowhere"),
        ({"mounts": ("data:relative",)}, "absolute"),
        ({"mounts": ("a:/m", "b:/m")}, "/m"),
        ({"extra_args": ("--priority=9",)}, "JSON"),
    ],
)
def test_what_cannot_be_as_asked_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=says):
        job(sent(**changes), OPTIONS)


def test_a_name_that_is_no_name_is_refused() -> None:
    for name in ("Run", "9lives", "a" * 53, "a_b", "a/../b", "a\nb", ""):
        with pytest.raises(Refused):
            job(sent().model_copy(update={"name": name}), OPTIONS)


# --- mounts ------------------------------------------------------------------------------------------------


def test_the_workspace_is_where_the_settings_say() -> None:
    manifest = made()
    assert pod_of(manifest)["volumes"] == [
        {"name": "watchkeeper-0", "persistentVolumeClaim": {"claimName": "workspace"}}
    ]
    assert container_of(manifest)["volumeMounts"] == [
        {"name": "watchkeeper-0", "mountPath": "/ws", "subPath": "team"}
    ]
    assert container_of(manifest)["workingDir"] == "/ws/run"


@pytest.mark.parametrize(
    ("words", "source", "path", "read_only"),
    [
        ("weights:/w", {"persistentVolumeClaim": {"claimName": "weights"}}, "/w", False),
        ("claim:weights:/w:ro", {"persistentVolumeClaim": {"claimName": "weights"}}, "/w", True),
        ("host:/opt/x:/x", {"hostPath": {"path": "/opt/x"}}, "/x", False),
        ("/opt/x:/x", {"hostPath": {"path": "/opt/x"}}, "/x", False),
        ("nfs:files.lab:/a/b:/x", {"nfs": {"server": "files.lab", "path": "/a/b"}}, "/x", False),
        ("/data", {"nfs": {"server": "files.lab", "path": "/export/data"}}, "/data", False),
        ("/data/:ro", {"nfs": {"server": "files.lab", "path": "/export/data"}}, "/data", True),
        ("/data:/elsewhere", {"nfs": {"server": "files.lab", "path": "/export/data"}}, "/elsewhere", False),
    ],
)
def test_how_a_mount_may_be_written(words: str, source: dict[str, Any], path: str, read_only: bool) -> None:
    mount = mounts_of(SPEC.model_copy(update={"mounts": (words,)}), OPTIONS.storage)[0]
    assert (dict(mount.source.volume), mount.path, mount.read_only) == (source, path, read_only)
    made(mounts=(words,))


def test_a_gpu_job_has_room_for_its_loaders() -> None:
    assert {"name": "watchkeeper-memory", "emptyDir": {"medium": "Memory"}} in pod_of(made(gpu=1))["volumes"]
    own = pod_of(made(gpu=1, mounts=("host:/mem:/dev/shm",)))["volumes"]
    assert all(volume["name"] != "watchkeeper-memory" for volume in own)
    assert all(volume["name"] != "watchkeeper-memory" for volume in pod_of(made())["volumes"])


@pytest.mark.parametrize(
    "words", ["", "claim:", "claim:../x", "claim:a/../b", "host:relative", "nfs:/x", "gs://b", "x"]
)
def test_a_source_that_is_none_is_refused(words: str) -> None:
    with pytest.raises(Refused):
        source_of(words)


# --- words arrive as they were written ---------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30) | st.sampled_from(
    [
        "$$",
        "$(MASTER_ADDR)",
        "$$(A)",
        "$(",
        "$",
        "a$b",
        "$(A)$$(B)",
        "\n",
        "${HOME}",
        "`id`",
        "'\"",
        "$$$(RANK)",
    ]
)


@given(
    st.lists(WORDS, min_size=1, max_size=4),
    st.dictionaries(st.from_regex(r"\A[A-Za-z_]\w{0,8}\Z"), WORDS, max_size=4),
)
def test_every_word_and_value_survives_kubernetes(words: list[str], env: dict[str, str]) -> None:
    env = {name: value for name, value in env.items() if name.isascii()}
    manifest = made(command=tuple(words), env=env, replicas=2)
    values = values_of(manifest)
    assert [expanded(word, values) for word in container_of(manifest)["command"]] == words
    assert {name: values[name] for name in env} == env
    assert yaml.safe_load(yaml.safe_dump(manifest)) == manifest
    assert json.loads(json.dumps(manifest)) == manifest


@given(st.text(max_size=80))
def test_any_owner_can_be_a_label_and_another_is_another(owner: str) -> None:
    value = label(owner)
    assert LABEL.fullmatch(value)
    assert len(value) <= 63
    assert label(owner + "x") != value
    assert made_by(owner)["metadata"]["annotations"][OWNER] == owner


def made_by(owner: str) -> dict[str, Any]:
    return job(sent(owner=owner), OPTIONS)


# --- what people lay over it -------------------------------------------------------------------------------


def test_an_extra_argument_is_laid_over_the_job() -> None:
    over = {
        "spec": {
            "template": {
                "spec": {"nodeSelector": {"pool": "a"}, "containers": [{"name": "main", "args": ["x"]}]}
            }
        }
    }
    manifest = made(extra_args=(json.dumps(over),))
    assert pod_of(manifest)["nodeSelector"] == {"pool": "a"}
    assert container_of(manifest)["args"] == ["x"]
    assert container_of(manifest)["image"] == "reg/own:7"


def test_the_settings_lay_over_every_pod() -> None:
    options = Options(storage=OPTIONS.storage, pod={"tolerations": [{"key": "gpu", "operator": "Exists"}]})
    assert pod_of(made(options))["tolerations"] == [{"key": "gpu", "operator": "Exists"}]


@pytest.mark.parametrize(
    "over",
    [
        {"metadata": {"name": "other"}},
        {"metadata": {"namespace": "kube-system"}},
        {"metadata": {"labels": {ATTEMPT: "other"}}},
        {"metadata": {"labels": {FINGERPRINT: "00000000"}}},
        {"metadata": None},
        {"kind": "CronJob"},
        {"spec": {"template": {"metadata": {"labels": {ATTEMPT: "other"}}}}},
        {"spec": []},
    ],
)
def test_an_extra_argument_cannot_make_it_another_job(over: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        job(sent(extra_args=(json.dumps(over),)), OPTIONS)


# --- what is shown -----------------------------------------------------------------------------------------


def test_what_is_shown_is_what_is_sent_but_for_credentials() -> None:
    submission = sent(env={"HF_TOKEN": "hf_" + "a1B2" * 8, "EPOCHS": "3"}, replicas=2)
    manifest, headless = job(submission, OPTIONS), service(submission)
    assert headless is not None
    shown = rendered([headless, manifest], submission.spec)
    assert "a1B2" not in shown
    assert "HF_TOKEN" in shown
    first, second = yaml.safe_load_all(shown)
    assert first == headless
    assert second["spec"]["backoffLimit"] == manifest["spec"]["backoffLimit"]
    values = {one["name"]: one.get("value") for one in container_of(second)["env"]}
    assert values["EPOCHS"] == "3"
