"""Job manifests: what becomes a field, what is laid over the Job, and that the result is the manifest's own Job."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.clusters.base import Ref, Refused, Submission
from agent.clusters.kubernetes_manifest import job
from agent.clusters.kubernetes_options import Options
from agent.native import Converted, convert
from agent.native.kubernetes_pod import quantity
from agent.yamlfile import UserFileError
from states.observation import Phase, Waiting
from states.spec import Request, draft
from tests.clusters.kubernetes.bench import KubernetesBench

MANIFEST = """\
# a training run
apiVersion: batch/v1
kind: Job
metadata:
  name: ner.train
  namespace: team
  labels: {team: nlp}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 4
  activeDeadlineSeconds: 7200
  ttlSecondsAfterFinished: 60
  template:
    metadata:
      annotations: {note: "yes"}
    spec:
      restartPolicy: OnFailure
      nodeSelector: {zone: b}
      tolerations: [{key: gpu, operator: Exists}]
      containers:
        - name: trainer
          image: registry.example/nlp/train:3
          imagePullPolicy: Always
          workingDir: /data/run
          command: [bash, -c]
          args: ["python train.py --epochs 3"]
          env:
            - {name: SEED, value: "7"}
            - name: API_KEY
              valueFrom: {secretKeyRef: {name: keys, key: api}}
          resources:
            requests: {cpu: 500m, memory: 64Gi, nvidia.com/gpu: "2"}
            limits: {cpu: 500m, memory: 96Gi, nvidia.com/gpu: "2", rdma/hca: 1}
          volumeMounts:
            - {name: data, mountPath: /data, subPath: kim}
            - {name: sets, mountPath: /sets, readOnly: true}
            - {name: shm, mountPath: /dev/shm}
      volumes:
        - {name: data, persistentVolumeClaim: {claimName: team-data}}
        - {name: sets, nfs: {server: files.example, path: /sets}}
        - {name: shm, emptyDir: {medium: Memory}}
"""
STORAGE = {"/data": "claim:team-data"}


def made(text: str = MANIFEST) -> Converted:
    return convert(text, path="job.yaml")


def with_container(**changes: Any) -> Converted:
    """A small manifest whose container has these fields."""
    container = {"name": "c", "image": "r/x:1", "command": ["true"], "workingDir": "/data", **changes}
    return made(manifest({"containers": [container]}))


def manifest(pod: dict[str, Any], **spec: Any) -> str:
    job_spec = {"template": {"spec": pod}, **spec}
    return yaml.safe_dump(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": job_spec}
    )


def submission_of(found: Converted, **changes: Any) -> Submission:
    spec = draft(Request.model_validate(found.request | changes), workspace="/data")
    return Submission(name="a-1-a1-00000000", fingerprint="00000000", owner="kim", spec=spec)


def rendered(found: Converted, storage: Mapping[str, str] = STORAGE) -> dict[str, Any]:
    """The Job that the cluster makes of it. storage: of the cluster's settings."""
    return job(submission_of(found), Options(storage=dict(storage)))


def mounted(built: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Path -> the volume that the work sees there, without its name."""
    volumes = {volume["name"]: volume for volume in built["spec"]["template"]["spec"]["volumes"]}
    return {
        mount["mountPath"]: {kind: told for kind, told in volumes[mount["name"]].items() if kind != "name"}
        for mount in work_of(built)["volumeMounts"]
    }


def work_of(built: dict[str, Any]) -> dict[str, Any]:
    (container, *_) = built["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def test_what_has_a_field_becomes_it() -> None:
    request = made().request
    assert {name: request[name] for name in request if name != "extra_args"} == {
        "name": "ner-train",
        "replicas": 2,
        "max_restarts": 4,
        "time_limit_s": 7200,
        "command": ["bash", "-c", "python train.py --epochs 3"],
        "image": "registry.example/nlp/train:3",
        "workspace": "/data/run",
        "env": {"SEED": "7"},
        "gpu": 2,
        "cpu": 0.5,
        "memory_mib": 65536,
        "mounts": ["claim:team-data/kim:/data", "nfs:files.example:/sets:/sets:ro"],
    }


def test_the_rest_is_laid_over_the_job_that_is_made() -> None:
    built = rendered(made())
    pod, work = built["spec"]["template"]["spec"], work_of(built)
    assert built["metadata"]["labels"]["team"] == "nlp"
    assert built["spec"]["template"]["metadata"]["annotations"] == {"note": "yes"}
    assert (pod["nodeSelector"], pod["restartPolicy"]) == ({"zone": "b"}, "Never")
    assert (work["name"], work["imagePullPolicy"], len(pod["containers"])) == ("main", "Always", 1)
    assert {"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}} in work["env"]
    assert work["resources"] == {
        "requests": {"cpu": "500m", "memory": "64Gi", "nvidia.com/gpu": "2"},
        "limits": {"cpu": "500m", "memory": "96Gi", "nvidia.com/gpu": "2", "rdma/hca": "1"},
    }


@pytest.mark.parametrize(
    "what",
    [
        "namespace team",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "restartPolicy OnFailure",
        "/dev/shm",
        "activeDeadlineSeconds became",
    ],
)
def test_what_is_watchkeepers_own_is_noted(what: str) -> None:
    assert [note for note in made().notes if note.startswith(what)]


def test_the_pods_own_deadline_comes_before_the_jobs() -> None:
    pod = {"activeDeadlineSeconds": 60, "containers": [{"image": "x", "command": ["x"]}]}
    found = made(manifest(pod, activeDeadlineSeconds=900))
    assert found.request["time_limit_s"] == 60
    assert any("of the Job is left out" in note for note in found.notes)


def test_a_limit_that_differs_goes_when_a_flag_gives_the_figure() -> None:
    (word,) = made().backing["memory_mib"]
    assert "96Gi" in word
    assert word in made().passed_through


@pytest.mark.parametrize(
    ("resources", "figures"),
    [
        ({}, {"cpu": 0, "memory_mib": 0}),
        ({"requests": {"cpu": "2", "memory": "1Gi"}}, {"cpu": 2, "memory_mib": 1024}),
        ({"limits": {"memory": "1e9"}}, {"cpu": 0, "memory_mib": 954}),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}, {"cpu": 2, "memory_mib": 0}),
    ],
)
def test_no_figure_and_no_limit_is_made_up(resources: dict[str, Any], figures: dict[str, Any]) -> None:
    found = with_container(resources=resources)
    assert {field: found.request[field] for field in figures} == figures
    built = work_of(rendered(found))["resources"]
    assert built["limits"].keys() == (resources.get("limits") or {}).keys()
    assert built["requests"].keys() == {kind for each in resources.values() for kind in each}


def test_arguments_without_a_command_go_to_the_images_own() -> None:
    found = with_container(command=None, args=["--epochs", "3"])
    work = work_of(rendered(found))
    assert (work["command"], work["args"]) == ([], ["--epochs", "3"])
    assert found.request["command"] == ["--epochs", "3"]


def test_what_kubernetes_replaces_is_still_replaced() -> None:
    found = with_container(command=["run", "$(POD)"], env=[{"name": "URL", "value": "http://$(POD):80"}])
    work = work_of(rendered(found))
    assert work["command"] == ["run", "$(POD)"]
    assert {"name": "URL", "value": "http://$(POD):80"} in work["env"]
    assert "env" not in found.request


def test_a_shells_own_variables_arrive_as_they_are() -> None:
    assert (
        work_of(rendered(with_container(command=["bash", "-c", "echo $HOME"])))["command"][2] == "echo $$HOME"
    )


def test_without_a_folder_it_starts_where_the_image_says() -> None:
    assert work_of(rendered(with_container(workingDir=None)))["workingDir"] == ""


def with_volumes(*kinds: dict[str, Any], init: tuple[int, ...] = (), **container: Any) -> Converted:
    """The work sees the n-th volume at `/v<n>`; those of `init` are seen by an init container too."""
    mounts = [{"name": f"v{place}", "mountPath": f"/v{place}"} for place in range(len(kinds))]
    pod: dict[str, Any] = {
        "containers": [{"image": "r/x:1", "command": ["x"], "volumeMounts": mounts, **container}],
        "volumes": [{"name": f"v{place}", **kind} for place, kind in enumerate(kinds)],
    }
    if init:
        pod["initContainers"] = [{"name": "i", "image": "r/i:1", "volumeMounts": [mounts[n] for n in init]}]
    return made(manifest(pod))


HOST = {"hostPath": {"path": "/d"}}
CONF = {"configMap": {"name": "conf"}}
CLAIM = {"persistentVolumeClaim": {"claimName": "big"}}


def test_other_kinds_of_volumes_are_mounted_beside_ours() -> None:
    found = with_volumes(HOST, CONF, workingDir="/data/run")
    assert found.request["mounts"] == ["host:/d:/v0"]
    assert "mounted as the manifest says, beside `mounts`: v1" in found.notes
    assert mounted(rendered(found)) == {
        "/v0": HOST,
        "/data": {"persistentVolumeClaim": {"claimName": "team-data"}},
        "/v1": CONF,
    }


def test_what_an_init_container_sees_too_stays_one_volume() -> None:
    built = rendered(with_volumes(CLAIM, HOST, init=(0,)), storage={})
    assert mounted(built) == {"/v0": CLAIM, "/v1": HOST}
    volumes = built["spec"]["template"]["spec"]["volumes"]
    assert [volume["name"] for volume in volumes if "persistentVolumeClaim" in volume] == ["v0"]


@pytest.mark.parametrize(
    ("kind", "mount"),
    [
        ({"hostPath": {"path": "/d", "type": "DirectoryOrCreate"}}, {}),
        ({"persistentVolumeClaim": {"claimName": "big", "readOnly": True}}, {}),
        (HOST, {"subPathExpr": "$(POD)"}),
        (HOST, {"mountPropagation": "HostToContainer"}),
        (HOST, {"mountPath": "/a:b"}),
    ],
)
def test_what_mounts_could_not_say_in_full_is_laid_over(kind: dict[str, Any], mount: dict[str, Any]) -> None:
    entry = {"name": "v0", "mountPath": "/v0", **mount}
    found = with_volumes(kind, volumeMounts=[entry])
    assert "mounts" not in found.request
    built = rendered(found, storage={})
    assert work_of(built)["volumeMounts"] == [entry]
    assert mounted(built) == {entry["mountPath"]: kind}


def test_a_workspace_in_a_volume_that_is_laid_over_needs_no_setting() -> None:
    assert mounted(rendered(with_volumes(CLAIM, CONF, init=(0,), workingDir="/v0/run"))) == {
        "/v0": CLAIM,
        "/v1": CONF,
    }
    with pytest.raises(Refused, match="/other"):
        rendered(with_volumes(CLAIM, workingDir="/other"))


def test_a_manifest_without_any_folder_runs_as_it_is() -> None:
    built = rendered(made(manifest({"containers": [{"image": "x", "command": ["x"]}]})), storage={})
    assert "volumes" not in built["spec"]["template"]["spec"]
    assert work_of(built)["workingDir"] == ""


def test_helpers_stay_beside_the_work() -> None:
    helper = {"name": "proxy", "image": "r/p:1"}
    work = {"name": "c", "image": "r/x:1", "command": ["true"]}
    found = made(
        manifest({"containers": [work, helper], "initContainers": [{"name": "i", "image": "r/i:1"}]})
    )
    pod = rendered(found)["spec"]["template"]["spec"]
    assert [one["name"] for one in pod["containers"]] == ["main", "proxy"]
    assert pod["initContainers"] == [{"name": "i", "image": "r/i:1"}]


def test_a_queue_of_kueue_is_kept_with_its_suspension() -> None:
    text = MANIFEST.replace("{team: nlp}", "{kueue.x-k8s.io/queue-name: q}").replace(
        "spec:\n", "spec:\n  suspend: true\n", 1
    )
    assert rendered(made(text))["spec"]["suspend"] is True
    assert any(
        note.startswith("suspend")
        for note in made(manifest({"containers": [{"image": "x", "command": ["x"]}]}, suspend=True)).notes
    )


def test_fewer_pods_at_a_time_than_are_to_complete() -> None:
    found = made(manifest({"containers": [{"image": "x", "command": ["x"]}]}, completions=4, parallelism=2))
    assert found.request["replicas"] == 4
    assert json.loads(found.passed_through[0]) == {"spec": {"parallelism": 2}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", r"no Job \(it holds Pod p\)"),
        (f"{MANIFEST}---\n{MANIFEST}", "2 Jobs"),
        ("apiVersion: mpi.example/v1\nkind: Job\n", "another kind of thing"),
        (manifest({"containers": []}), "no container"),
        (manifest({"containers": [{"image": "r/x:1"}]}), "no command"),
        (
            "apiVersion: v1\nkind: ConfigMap\n---\napiVersion: batch/v1\nkind: Job\nspec: {a: 1, a: 2}\n",
            ":6: 'a'",
        ),
    ],
)
def test_what_is_no_single_job_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserFileError, match=said):
        made(text)


def test_objects_beside_the_job_are_noted_and_not_made() -> None:
    found = made(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: conf}}\n---\n{MANIFEST}")
    assert found.notes[0].startswith("ConfigMap conf: not made")


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("500m", 0.5),
        ("16", 16.0),
        (2, 2.0),
        ("1Ki", 1024.0),
        ("2G", 2e9),
        ("1e3", 1e3),
        ("", None),
        ("4K", None),
    ],
)
def test_quantities(given: object, value: float | None) -> None:
    assert quantity(given) == value


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[KubernetesBench]:
    made = KubernetesBench(tmp_path)
    yield made
    made.close()


def test_an_api_server_takes_it(bench: KubernetesBench) -> None:
    """Checked there against the OpenAPI document, where it is at hand."""
    client = bench.client(storage={})
    sent = client.submit(submission_of(made()))
    assert sent.cluster_job_id == "lab/a-1-a1-00000000"
    ref = Ref("a-1-a1-00000000", sent.cluster_job_id)
    assert client.observe([ref])[ref.name].phase == Phase.pending


def test_a_secret_stays_a_reference_until_it_is_in_the_container(
    bench: KubernetesBench, eventually: Callable[..., Any]
) -> None:
    api_key = {"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}}
    container = {"image": "here/any:1", "command": ["sh", "-c", "echo got ${#API_KEY}"], "env": [api_key]}
    small = {"requests": {"cpu": "100m", "memory": "10Mi"}}
    found = made(manifest({"containers": [{**container, "resources": small}]}))
    client = bench.client(storage={})
    ref = Ref("a-1-a1-00000000", client.submit(submission_of(found)).cluster_job_id)
    waits = eventually(lambda: seen if (seen := client.observe([ref])[ref.name]).held else None)
    assert (waits.phase, waits.waiting) == (Phase.starting, Waiting.held)
    assert 'secret "keys" not found' in waits.reason

    value = base64.b64encode(b"abcdefgh").decode()
    bench.emulator.store.create("secrets", {"metadata": {"name": "keys"}, "data": {"api": value}}, "lab")
    eventually(lambda: client.observe([ref])[ref.name].phase == Phase.succeeded)
    assert client.logs(ref).text == "got 8\n"
    assert not [call for call in bench.emulator.calls if "secrets" in call.path]
