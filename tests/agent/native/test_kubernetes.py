"""Job manifests: what becomes a field, what is laid over the Job, and that the result is the manifest's own Job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.clusters.base import Ref, Submission
from agent.clusters.kubernetes_manifest import job
from agent.clusters.kubernetes_options import Options
from agent.native import Converted, convert
from agent.native.kubernetes_pod import quantity
from agent.yamlfile import UserFileError
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


def rendered(found: Converted) -> dict[str, Any]:
    """The Job that the cluster makes of it."""
    spec = draft(Request.model_validate(found.request), workspace="/data")
    submission = Submission(name="a-1-a1-00000000", fingerprint="00000000", owner="kim", spec=spec)
    return job(submission, Options(storage={"/data": "claim:team-data"}))


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
    assert work["resources"]["requests"] == {
        "cpu": "500m", "memory": "64Gi", "nvidia.com/gpu": "2", "rdma/hca": "1",
    }  # fmt: skip
    assert work["resources"]["limits"]["memory"] == "96Gi"


@pytest.mark.parametrize(
    "what",
    ["namespace team", "backoffLimit", "ttlSecondsAfterFinished", "restartPolicy OnFailure", "/dev/shm"],
)
def test_what_is_watchkeepers_own_is_noted(what: str) -> None:
    assert [note for note in made().notes if note.startswith(what)]


def test_a_limit_that_differs_goes_when_a_flag_gives_the_figure() -> None:
    (word,) = made().backing["memory_mib"]
    assert "96Gi" in word
    assert word in made().passed_through


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


def test_other_kinds_of_volumes_are_mounted_as_the_manifest_says() -> None:
    mounts = [{"name": "d", "mountPath": "/data"}, {"name": "c", "mountPath": "/conf"}]
    volumes = [{"name": "d", "hostPath": {"path": "/d"}}, {"name": "c", "configMap": {"name": "conf"}}]
    container = {"name": "c", "image": "r/x:1", "command": ["true"], "volumeMounts": mounts}
    found = made(manifest({"containers": [container], "volumes": volumes}))
    built = rendered(found)
    assert "mounts" not in found.request
    named = {volume["name"] for volume in built["spec"]["template"]["spec"]["volumes"]}
    assert {mount["name"] for mount in work_of(built)["volumeMounts"]} <= named
    assert {"d", "c"} <= named


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
    ("text", "value"), [("500m", 0.5), ("16", 16.0), ("1Ki", 1024.0), ("2G", 2e9), ("", None), ("many", None)]
)
def test_quantities(text: str, value: float | None) -> None:
    assert quantity(text) == value


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[KubernetesBench]:
    made = KubernetesBench(tmp_path)
    yield made
    made.close()


def test_an_api_server_takes_it(bench: KubernetesBench) -> None:
    """Checked there against the OpenAPI document."""
    text = MANIFEST.replace("64Gi", "100Mi").replace("96Gi", "200Mi")
    text = text.replace("secretKeyRef: {name: keys, key: api}", "fieldRef: {fieldPath: metadata.name}")
    request = Request.model_validate(made(text).request | {"replicas": 1})
    spec = draft(request, workspace="/data")
    submission = Submission(name="a-1-a1-00000000", fingerprint="00000000", owner="kim", spec=spec)
    client = bench.client()
    sent = client.submit(submission)
    assert sent.cluster_job_id == "lab/a-1-a1-00000000"
    assert client.observe([Ref(submission.name, sent.cluster_job_id)])[submission.name].phase != "gone"
