"""What is sent to `rjob`: argument lists that no word of a request can break, and keys that never stand in them."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agent.clusters import wrapper
from agent.clusters.base import ClusterError, Ref, Refused, Submission
from agent.clusters.brainpp import BrainppCluster
from agent.clusters.brainpp_argv import KEYS, Site, command, mounts, submit_argv
from agent.clusters.brainpp_options import Options
from agent.clusters.brainpp_submit import script_path
from agent.secrets import SecretsError
from states.credentials import Pair
from states.spec import Spec
from tests.clusters.brainpp_bench import ACCESS_KEY, SECRET_KEY, BrainppBench
from tests.clusters.contract import HOSTILE, ends, submission

STORAGE = {
    "/ws": "gpfs://fs1/me",
    "/ws/deep": "gpfs://fs2/deep",
    "/shared": "gpfs://fs1/shared/",
    "/home": "",
}
SITE = Site(STORAGE)
PAIR = Pair("lab-a", "team_gpu")
HOSTILE_TEXT = some.text(min_size=1, max_size=30) | some.sampled_from(
    [
        HOSTILE,
        "--namespace=evil",
        "--",
        "---",
        "-e",
        "$(touch x)",
        "a\nb",
        "'; rm -rf x; '",
        "--image=evil",
        "\x1b[31m",
    ]
)


def sent(**changes: Any) -> Submission:
    fields = {"command": ("true",), "image": "registry.example/a:1", "workspace": "/ws/run", **changes}
    return Submission(name="demo-a0-12345678", fingerprint="12345678", owner="someone", spec=Spec(**fields))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BrainppBench]:
    bench = BrainppBench(tmp_path)
    yield bench
    bench.close()


# --- no word changes another -------------------------------------------------------------------------------


@given(
    some.lists(HOSTILE_TEXT, min_size=1, max_size=5),
    some.dictionaries(HOSTILE_TEXT | some.just("WORDS"), HOSTILE_TEXT, max_size=4),
    some.lists(HOSTILE_TEXT, max_size=3),
    HOSTILE_TEXT,
    some.lists(HOSTILE_TEXT, max_size=2),
)
def test_hostile_words_stay_where_they_are_or_are_refused(
    words: list[str], env: dict[str, str], paths: list[str], image: str, nodes: list[str]
) -> None:
    submitted = sent(command=words, env=env, mounts=paths, image=image, exclude_nodes=nodes)
    try:
        argv = submit_argv(submitted, PAIR, SITE, script="/ws/run/w.sh")
    except Refused:
        return
    ends_at = argv.index("--")
    flags, run = argv[1:ends_at], argv[ends_at + 1 :]
    assert run[-len(words) :] == words
    assert run[:3] == command(submitted, "/ws/run/w.sh")[:3]  # the shell's own text is fixed
    values = iter(flags)
    names = []
    for word in values:
        names.append(word.partition("=")[0])
        if word == "-e":
            assert "=" in next(values)
    assert names.count("--namespace") == names.count("--metadata-name") == names.count("--image") == 1
    assert flags[:4] == [
        "--name=demo-a0-12345678", "--metadata-name=demo-a0-12345678",
        "--namespace=lab-a", "--charged-group=team_gpu",
    ]  # fmt: skip
    assert f"--image={image}" in flags
    assert sum(name == "--mount" for name in names) <= len(paths) + 1


@pytest.mark.parametrize(
    "name", ["", "-demo", "--help", "Demo", "de mo", "demo\n", "d" * 41, "demo;ls", "../x", "demo/a"]
)
def test_a_name_that_could_be_misread_is_refused(name: str) -> None:
    with pytest.raises(Refused):
        submit_argv(sent().model_copy(update={"name": name}), PAIR, SITE)


@pytest.mark.parametrize("name", [*KEYS, "A=B", "", "A B", "1A", "A\n"])
def test_a_variable_that_must_not_be_is_refused(name: str) -> None:
    with pytest.raises(Refused):
        submit_argv(sent(env={name: "x"}), PAIR, SITE)


def test_what_is_missing_is_refused() -> None:
    for changes in (
        {"image": ""},
        {"command": ()},
        {"workspace": ""},
        {"workspace": "run"},
        {"command": ("a\0",)},
    ):
        with pytest.raises(Refused):
            submit_argv(sent(**changes), PAIR, SITE)


# --- mounts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "made"),
    [
        ("/shared/data", "gpfs://fs1/shared/data:/shared/data"),
        ("/shared", "gpfs://fs1/shared:/shared"),
        ("/shared/a:/data", "gpfs://fs1/shared/a:/data"),
        ("/ws/deep/x", "gpfs://fs2/deep/x:/ws/deep/x"),
        ("gpfs://fs9/x/y:/data", "gpfs://fs9/x/y:/data"),
        ("/ws", "gpfs://fs1/me:/ws"),
        ("/home/me", None),
    ],
)
def test_a_mount_is_given_as_a_path_and_mapped(given_: str, made: str | None) -> None:
    found = mounts(Spec(workspace="/ws/run", mounts=(given_,)), STORAGE)
    assert found == list(dict.fromkeys(["gpfs://fs1/me:/ws", *filter(None, [made])]))


@pytest.mark.parametrize(
    "given_",
    ["data", "/elsewhere", "/sharedness", "/shared/../etc", "/shared/a:b", "/shared/a:/b:/c", "gpfs://x",
     "gpfs://a b:/c", "/home/me:/elsewhere", ":/a"],
)  # fmt: skip
def test_a_mount_that_cannot_be_is_refused_with_what_to_do(given_: str) -> None:
    with pytest.raises(Refused) as told:
        mounts(Spec(workspace="/ws/run", mounts=(given_,)), STORAGE)
    assert told.value.cause == "mount.missing"


def test_the_workspace_is_always_mounted_or_the_submit_is_refused() -> None:
    assert mounts(Spec(workspace="/home/me/run"), STORAGE) == []
    with pytest.raises(Refused, match="storage:"):
        mounts(Spec(workspace="/nowhere"), STORAGE)
    other = Spec(workspace="/ws/run", environment="/shared/envs/a")
    assert mounts(other, STORAGE) == ["gpfs://fs1/me:/ws", "gpfs://fs1/shared/:/shared"]


# --- inside the job ----------------------------------------------------------------------------------------


def test_a_replica_goes_to_the_workspace_with_its_environment_first(tmp_path: Path) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    tool = tmp_path / "env" / "bin" / "tool"
    tool.write_text('#!/bin/sh\nprintf "%s %s in %s" "$VIRTUAL_ENV" "$1" "$(pwd)"\n')
    tool.chmod(0o755)
    spec = {"workspace": str(tmp_path), "environment": str(tmp_path / "env"), "command": ("tool", HOSTILE)}
    done = subprocess.run(command(sent(**spec), ""), capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/env {HOSTILE} in {tmp_path}"


def test_several_replicas_have_folders_of_their_own_even_without_a_rank(tmp_path: Path) -> None:
    script = str(wrapper.stage(tmp_path))
    run = command(sent(workspace=str(tmp_path), replicas=3), script)
    for env in ({"NODE_RANK": "0"}, {"NODE_RANK": "1"}, {}):
        subprocess.run(run, env={"PATH": "/usr/bin:/bin", "DISTRIBUTED_JOB": "true", **env}, check=True)
    folder = wrapper.run_dir(tmp_path, "demo-a0-12345678")
    assert wrapper.record(folder) is not None
    assert len([rank for rank in folder.glob("rank-*") if wrapper.record(rank)]) == 2


def test_the_wrapper_is_where_it_is_staged(tmp_path: Path) -> None:
    assert script_path(str(tmp_path)) == str(wrapper.stage(tmp_path))


def test_a_job_that_may_come_back_replaces_its_record() -> None:
    for changes, flag in (
        ({}, ""),
        ({"lane": "idle"}, "-r"),
        ({"extra_args": ("--auto-restart=true",)}, "-r"),
    ):
        assert command(sent(**changes), "/ws/run/w.sh")[7] == flag
    assert "--restart-policy=never" in submit_argv(sent(), PAIR, SITE)
    kept = submit_argv(sent(extra_args=("--restart-policy=onfailure",)), PAIR, SITE)
    assert "--restart-policy=never" not in kept


# --- keys --------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[..., Any]] = {
    "submit": lambda cluster, ref, made: cluster.submit(made),
    "find": lambda cluster, ref, made: cluster.find(ref.name),
    "observe": lambda cluster, ref, made: cluster.observe([ref]),
    "list": lambda cluster, ref, made: cluster.list(),
    "logs": lambda cluster, ref, made: cluster.logs(ref),
    "events": lambda cluster, ref, made: cluster.events(ref),
    "stop": lambda cluster, ref, made: cluster.stop(ref),
    "delete": lambda cluster, ref, made: cluster.delete(ref),
    "capacity": lambda cluster, ref, made: cluster.capacity(),
    "predict": lambda cluster, ref, made: cluster.predict(made),
}


@pytest.mark.parametrize("missing", [{KEYS[0]: None}, {KEYS[1]: ""}, {KEYS[0]: " ", KEYS[1]: "\n"}])
def test_without_both_keys_nothing_is_started_so_nobody_elses_are_used(
    bench: BrainppBench, missing: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "the-agents-own-environment")
    bench.secrets.update(missing)
    made = submission(bench.spec(*ends(0)))
    for call in CALLS.values():
        with pytest.raises(Refused, match="wk key set"):
            call(bench.client(), Ref(made.name, f"lab-a/{made.name}"), made)
    assert "was not asked" in bench.client().render(made)
    assert bench.said() == []
    unwired = {name: value for name, value in bench.options.items() if name != "secrets"}
    with pytest.raises(Refused):
        BrainppCluster("brainpp", unwired).capacity()


def test_keys_that_cannot_be_read_refuse_and_are_told_by_doctor(bench: BrainppBench) -> None:
    def broken(name: str) -> str:
        raise SecretsError("the file can be read by others: run `chmod 600 keys.json`")

    cluster = bench.client(secrets=broken)
    with pytest.raises(Refused, match="chmod"):
        cluster.submit(submission(bench.spec(*ends(0))))
    assert [row.name for row in cluster.doctor() if "chmod" in row.said] == ["keys"]
    assert bench.said() == []


def test_a_folder_of_notes_that_cannot_be_written_refuses(bench: BrainppBench) -> None:
    (bench.folder / "file").touch()
    with pytest.raises(Refused, match="written down"):
        bench.client(root=str(bench.folder / "file")).submit(submission(bench.spec(*ends(0))))
    assert bench.said() == []


def test_every_call_is_made_as_the_person_and_no_key_shows(
    bench: BrainppBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("https_proxy", "http://proxy.example:1")
    monkeypatch.setenv("SOME_TOKEN", "hush-hush-value")
    cluster = bench.client()
    made = submission(bench.spec(*ends(0)))
    ref = Ref(made.name, f"lab-a/{made.name}")
    shown = [repr(cluster), cluster.render(made), repr(vars(cluster))]
    for call in CALLS.values():
        try:
            shown.append(repr(call(cluster, ref, made)))
        except ClusterError as error:
            shown.append(str(error))
    said = bench.said()
    assert {call["identity"] for call in said} == {f"key:{ACCESS_KEY}"}
    assert {name for call in said for name in call["variables"]}.isdisjoint({"https_proxy", "SOME_TOKEN"})
    assert all("KUBEBRAIN_NAMESPACE" in call["variables"] for call in said)
    rjob = [call["argv"] for call in said if call["tool"] == "rjob"]
    assert all("--namespace=lab-a" in argv for argv in rjob)
    everything = "\n".join([repr([call["argv"] for call in said]), *shown, caplog.text, repr(bench.jobs())])
    assert SECRET_KEY not in everything
    assert ACCESS_KEY not in everything.replace(f"'creator': 'key:{ACCESS_KEY}'", "")


def test_a_tool_that_prints_the_keys_gives_none_away(bench: BrainppBench) -> None:
    gossip = bench.folder / "gossip"
    gossip.write_text(
        '#!/bin/sh\necho "bad secret: $BRAINPP_SECRET_ACCESS_KEY $BRAINPP_ACCESS_KEY_ID" >&2; exit 1\n'
    )
    gossip.chmod(0o755)
    cluster = bench.client(rjob=str(gossip), brainctl=str(gossip))
    made = submission(bench.spec(*ends(0)))
    for name, call in CALLS.items():
        with pytest.raises(ClusterError) as told:
            call(cluster, Ref(made.name, f"lab-a/{made.name}"), made)
        assert SECRET_KEY not in str(told.value), name
        assert ACCESS_KEY not in str(told.value), name
    rows = cluster.doctor()
    assert SECRET_KEY not in repr(rows)


def test_a_request_that_holds_a_key_is_refused(bench: BrainppBench) -> None:
    for changes in ({"env": {"X": SECRET_KEY}}, {"extra_args": (f"--comment={SECRET_KEY}",)}):
        with pytest.raises(Refused, match="key") as told:
            bench.client().submit(submission(bench.spec(*ends(0), **changes)))
        assert SECRET_KEY not in str(told.value)
    assert bench.said() == []


@pytest.mark.parametrize("name", [*KEYS, "https_proxy", "ALL_PROXY"])
def test_settings_that_would_bring_keys_or_proxies_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Options(variables={name: "x"})


def test_the_driver_is_light_to_import() -> None:
    heavy = "import sys, agent.clusters.brainpp; print([m for m in ('sqlalchemy', 'anthropic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
