"""Kubernetes manifests: what the server rejects, and what the containers run."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of, said

JOB = """apiVersion: batch/v1
kind: Job
metadata:
  name: fit
spec:
  activeDeadlineSeconds: 600
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: fit
          image: reg/a:1
          command: ["python", "-u", "t.py"]
          env:
            - name: N
              value: "4"
          resources:
            requests:
              nvidia.com/gpu: 4
            limits:
              nvidia.com/gpu: 4
              memory: 64Gi
          volumeMounts:
            - name: data
              mountPath: /ws
      volumes:
        - name: data
          emptyDir: {}
"""


def manifest(old: str, new: str) -> str:
    assert old in JOB
    return JOB.replace(old, new)


def block(style: str, *lines: str) -> str:
    """A command whose script is a block of lines."""
    return '["bash", "-c"]\n          args:\n            - ' + "\n              ".join((style, *lines))


def test_a_good_one() -> None:
    assert said(JOB, name="job.yaml", cluster="kubernetes") == NOTHING


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("      restartPolicy: Never\n", "", 2),
        ("Policy: Never", "Policy: Always", 9),
        ('value: "4"', "value: 4", 16),
        ('value: "4"', "value: a['b']: c", 16),
        ("64Gi", "64GB", 22),
        (
            "              nvidia.com/gpu: 4\n            limits",
            "              nvidia.com/gpu: 2\n            limits",
            19,
        ),
        ("name: data\n              mountPath", "name: date\n              mountPath", 24),
        ('["python", "-u", "t.py"]', "python -u t.py", 13),
        ('"-u"', "3", 13),
        ("name: fit\nspec", "name: My_Fit\nspec", 4),
        ("activeDeadlineSeconds: 600", "activeDeadlineSeconds: 600\n  replicas: 2", 7),
        ("image: reg/a:1", "image: reg/a:1\n          image: reg/b:1", 13),
    ],
)
def test_what_the_server_rejects(old: str, new: str, line: int) -> None:
    assert f"refuse {line}" in of("bad_manifest", manifest(old, new), name="job.yaml")


def test_a_template_is_left_alone() -> None:
    text = manifest("name: fit\nspec", 'name: "{{ name }}"\nspec').replace("64Gi", "${MEM}")
    assert of("bad_manifest", text, name="job.yaml") == NOTHING


def test_no_time_limit() -> None:
    text = manifest("  activeDeadlineSeconds: 600\n", "")
    assert said(text, name="job.yaml") == {"note no_time_limit 2"}


def test_the_command_is_followed_to_its_line() -> None:
    script = block("|", "pip install x", "torchrun --nproc_per_node=8 t.py")
    text = manifest('["python", "-u", "t.py"]', script)
    found = said(text, "package_install", "figures_contradict", name="job.yaml")
    assert found == {"refuse package_install 16", "ask figures_contradict 17"}


def test_a_folded_text_keeps_its_lines() -> None:
    script = block(">", "python -u t.py", "--a 1;", "sleep 1d")
    assert of("keepalive", manifest('["python", "-u", "t.py"]', script), name="job.yaml") == {"ask 18"}


def test_a_secret_by_reference_is_right_and_a_value_is_not() -> None:
    token = "hf_" + "aB3" * 8
    assert of(
        "credential",
        manifest('name: N\n              value: "4"', f"name: HF_TOKEN\n              value: {token}"),
        name="job.yaml",
    ) == {"refuse 16"}
    by_reference = "name: HF_TOKEN\n              valueFrom: {secretKeyRef: {name: hf, key: token}}"
    assert (
        of("credential", manifest('name: N\n              value: "4"', by_reference), name="job.yaml")
        == NOTHING
    )


def test_a_broken_line_does_not_hide_the_rest() -> None:
    text = manifest('value: "4"', "value: a['b']: c").replace(
        '"python", "-u", "t.py"', '"sh", "-c", "python -u t.py; date"'
    )
    assert said(text, "bad_manifest", "exit_code_masked", name="job.yaml") == {
        "refuse bad_manifest 16",
        "warn exit_code_masked 13",
    }


def test_a_config_map_is_mounted_and_read() -> None:
    text = JOB.replace("emptyDir: {}", "configMap: {name: c}").replace('"t.py"', '"/ws/run.py"') + (
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  run.py: |\n"
        "    import os\n    os.system('pip install x')\n  a.yaml: |\n    model: org/model-7b\n"
    )
    found = said(text, "package_install", "runtime_download", name="job.yaml")
    assert found == {"refuse package_install 37", "warn runtime_download 39"}
