"""`wk doctor` about clusters: each looks at itself where it can; every fault has a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.app import App, build, driver
from agent.doctor import Finding, examine
from agent.yamlfile import UserFileError
from tests.clusters.brainpp_bench import BrainppBench
from tests.clusters.kubernetes.bench import KubernetesBench

TINY = """
from typing import NamedTuple
from states.observation import Capabilities, Capacity

class Row(NamedTuple):
    name: str
    level: str
    said: str
    mend: str = ""

class TinyCluster:
    kind = "tiny"
    capabilities = Capabilities()

    def __init__(self, name, options):
        self.name, self.options = name, options

    def doctor(self):
        return [Row("url", "fine", self.options["url"]), Row("token", self.options.get("token", "fine"), "looked at")]

    def capacity(self, group=None):
        return Capacity(free_gpu=3)
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution of somebody else's, as it lies on the path once it is installed."""
    site = tmp_path / "site"
    facts = site / "tiny_cluster-1.0.dist-info"
    facts.mkdir(parents=True)
    (site / "tiny_cluster.py").write_text(TINY, encoding="utf-8")
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tiny-cluster\nVersion: 1.0\n", encoding="utf-8"
    )
    (facts / "entry_points.txt").write_text(
        "[watchkeeper.clusters]\ntiny = tiny_cluster:TinyCluster\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(site)


def app_with(folder: Path, settings: str) -> App:
    (folder / "home" / "config").mkdir(mode=0o700, parents=True)
    (folder / "home" / "config" / "config.yaml").write_text(f"keyring: off\n{settings}", encoding="utf-8")
    return build({"WATCHKEEPER_HOME": str(folder / "home"), "HOME": str(folder)})


def about(app: App, name: str) -> list[Finding]:
    return [finding for finding in examine(app) if finding.name.startswith(f"cluster {name}")]


@pytest.mark.usefixtures("tiny")
class TestAThirdPartysCluster:
    def test_it_is_known_by_its_entry_point(self, tmp_path: Path) -> None:
        assert driver("tiny")("mine", {"url": "u"}).kind == "tiny"
        app = app_with(tmp_path, "clusters: {mine: {kind: tiny, url: 'http://scheduler.example'}}\n")
        assert app.clusters["mine"].kind == "tiny"

    def test_an_unknown_kind_is_told_with_it_among_the_known(self) -> None:
        with pytest.raises(UserFileError, match=r"known: .*tiny"):
            driver("teeny")

    def test_the_doctor_shows_what_it_finds_of_itself(self, tmp_path: Path) -> None:
        app = app_with(tmp_path, "clusters: {mine: {kind: tiny, url: 'http://scheduler.example'}}\n")
        assert about(app, "mine") == [
            Finding("cluster mine: url", "ok", "http://scheduler.example"),
            Finding("cluster mine: token", "ok", "looked at"),
            Finding("cluster mine", "ok", "3 GPUs free"),
        ]

    def test_what_is_wrong_of_the_default_one_fails_and_has_a_way_out(self, tmp_path: Path) -> None:
        app = app_with(tmp_path, "cluster: mine\nclusters: {mine: {kind: tiny, url: u, token: wrong}}\n")
        rows = about(app, "mine (default)")
        assert [row.level for row in rows] == ["ok", "fail"]
        assert rows[1].mend

    def test_of_another_one_it_is_a_warning(self, tmp_path: Path) -> None:
        app = app_with(tmp_path, "clusters: {mine: {kind: tiny, url: u, token: wrong}}\n")
        assert [row.level for row in about(app, "mine")] == ["ok", "warn"]

    def test_options_it_cannot_read_are_told_where_they_stand(self, tmp_path: Path) -> None:
        (row,) = about(app_with(tmp_path, "clusters: {mine: {kind: tiny}}\n"), "mine")
        assert (row.level, row.mend) == ("fail", "Check clusters.mine in config.yaml.")


def test_brainpp_without_keys_and_with_the_wrong_program(tmp_path: Path) -> None:
    """Another public tool is called `rjob` too."""
    bench = BrainppBench(tmp_path)
    other = tmp_path / "other-rjob"
    other.write_text("#!/bin/sh\necho 'usage: rjob [-h] {start,attach} ...'\n", encoding="utf-8")
    other.chmod(0o755)
    settings = f"clusters: {{b: {{kind: brainpp, rjob: {other}, brainctl: {bench.tools['brainctl']}}}}}\n"
    rows = {row.name.removeprefix("cluster b: "): row for row in about(app_with(tmp_path, settings), "b")}
    assert {name for name, row in rows.items() if row.level != "ok"} == {"rjob", "keys", "group", "storage"}
    assert "is another program" in rows["rjob"].said
    assert "wk key set" in rows["keys"].mend
    assert all(row.mend for row in rows.values() if row.level != "ok")


def test_kubernetes_that_does_not_answer_and_one_that_does(tmp_path: Path) -> None:
    bench = KubernetesBench(tmp_path)
    try:
        away = bench.severed().options.kubeconfig
        here = bench.options["kubeconfig"]
        settings = (
            f"clusters:\n  here: {{kind: kubernetes, kubeconfig: {here}, storage: {{/data: 'claim:d'}}}}\n"
        )
        settings += f"  away: {{kind: kubernetes, kubeconfig: {away}, timeout_s: 1}}\n"
        app = app_with(tmp_path, settings)
        assert {row.level for row in about(app, "here")} == {"ok"}
        (row,) = about(app, "away")
        assert (row.level, bool(row.mend)) == ("warn", True)
    finally:
        bench.close()
