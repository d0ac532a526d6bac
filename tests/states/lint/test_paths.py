"""Paths that are not there (RULES D1); without a tree only the place can tell."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, findings, of

FILES: dict[str, str | None] = {"job.sh": None, "train.py": "print(1)", "conf/a.yaml": None, "data/": None}


@pytest.mark.parametrize(
    "line",
    [
        "python -u trian.py",
        "bash run.sh",
        "source env.sh",
        "python -u train.py --config conf/b.yaml",
        "python -u train.py > logs/a.log",
        "cd conf && python -u train.py",
    ],
)
def test_missing(line: str) -> None:
    assert of("missing_path", line, files=FILES) == {"ask 1"}


@pytest.mark.parametrize(
    "line",
    [
        "python -u train.py --config conf/a.yaml --data data --output_dir new/o.txt",
        "mkdir -p logs\npython -u train.py > logs/a.log",
        "cat > gen.py <<EOF\nprint(1)\nEOF\npython -u gen.py",
        "git clone https://h.example/a/repo\ncd repo\npython -u main.py",
        'cd "$WHERE"\npython -u main.py',
        "python -u /abs/main.py",
        "python -u -m pkg.main",
    ],
)
def test_there_or_made_or_not_to_be_known(line: str) -> None:
    assert of("missing_path", line, files=FILES) == NOTHING


def test_without_a_tree() -> None:
    assert of("missing_path", "python -u trian.py --config conf/b.yaml") == NOTHING
    assert of("missing_path", "accelerate launch --config_file /{}/a.yaml t.py".format("root")) == {"ask 1"}
    written = "mkdir -p src\ncat > lib/a.py <<EOF\nx = 1\nEOF\npython -u lib/a.py"
    assert of("missing_path", written) == {"ask 2"}


def test_two_on_one_line_are_two() -> None:
    found = findings("python -u a.py --config b.yaml", files=FILES)
    assert [f.why for f in found if f.kind == "missing_path"] == ["a.py is not there", "b.yaml is not there"]
