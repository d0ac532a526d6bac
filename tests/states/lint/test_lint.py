"""The door: order, places, credentials, and texts that are meant to hurt."""

from __future__ import annotations

import time

import pytest

from states.lint.lint import SAME_MAX, redacted
from tests.states.lint.judged import findings, of, said

KEY = "0f1e2d3c" * 5


def test_a_credential_is_refused_and_never_shown() -> None:
    text = f"export WANDB_API_KEY={KEY}\npip install x\npython -u t.py --api_key {KEY} --out /tmp/o\n"
    found = findings(text)
    assert {f"{f.level} {f.line}" for f in found if f.kind == "credential"} == {"refuse 1", "refuse 3"}
    assert not [part for f in found for part in (f.text, f.why, f.mend) if KEY in part]
    assert any(f.kind == "output_node_local" and "[redacted:" in f.text for f in found)


def test_redaction_keeps_the_lines() -> None:
    text = "a\n-----BEGIN RSA PRIVATE KEY-----\nx\ny\n-----END RSA PRIVATE KEY-----\nb\n"
    assert redacted(text).split("\n")[5] == "b"


@pytest.mark.parametrize(
    "line", ["export HF_TOKEN=hf_...", "export HF_TOKEN=$TOKEN", "export HF_TOKEN=<token>"]
)
def test_a_placeholder_is_no_credential(line: str) -> None:
    assert of("credential", line) == set()


def test_findings_come_in_order_and_carry_their_line() -> None:
    found = findings("python -u t.py --out /tmp/o\npip install x\n")
    assert [(f.line, f.text) for f in found if f.level != "note"] == [
        (1, "python -u t.py --out /tmp/o"),
        (1, "python -u t.py --out /tmp/o"),
        (2, "pip install x"),
    ]
    assert all(f.mend and f.file == "job.sh" for f in found if f.level != "note")


def test_a_script_with_nothing_to_say() -> None:
    text = (
        "#!/bin/bash -l\n#SBATCH --time=1:00:00\n#SBATCH --gres=gpu:4\nset -euo pipefail\n"
        ': "${ROOT:?set it}"\nexport PYTHONUNBUFFERED=1\ncd "$ROOT"\n'
        'torchrun --standalone --nproc_per_node=4 train.py --output_dir "$ROOT/out"\n'
    )
    assert said(text) == set()


HOSTILE = {
    "quotes": 'echo "' * 20_000,
    "parentheses": "$(" * 50_000,
    "conditions": "if a; then " * 10_000,
    "words": "python a.py " + "a " * 60_000,
    "and": "a && " * 25_000,
    "pipes": "a | " * 30_000,
    "expansions": "${a:-" * 20_000,
    "doubling": "A=xx\n" + "A=$A$A\n" * 40 + "python $A\n",
    "removals": "rm -rf $A/$B\n" * 8_000,
    "shells": "bash -c 'python a.py';" * 5_000,
    "background": "python a.py & " * 9_000,
    "directives": "#SBATCH --x=y\n" * 9_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_bounded(name: str) -> None:
    began = time.process_time()
    found = findings(HOSTILE[name])
    assert time.process_time() - began < 10
    assert len(found) <= 21 * SAME_MAX


@pytest.mark.parametrize("code", ["(" * 5_000, "a = " + "1 + " * 30_000 + "1", "\x00", "def f(:\n"])
def test_python_that_is_none_is_said(code: str) -> None:
    assert findings(code, name="a.py") == []
