"""Blank variables and placeholders."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("NAME=$1\nOUT=models/$NAME\nrm -rf $OUT\npython -u t.py", 3),
        ('rm -rf "$OUTDIR/runs"\npython -u t.py', 1),
        ('export HF_TOKEN="hf_..."\npython -u t.py', 1),
        ("python -u t.py --key YOUR_KEY", 1),
        ('HEAD=""\nray job submit --address=$HEAD:80 -- python -u t.py', 1),
        ("OUTPUT=/ws/o\npython -u t.py --out $OUTPT", 2),
        ("python -u t.py --out $OUT\nOUT=/ws/o", 1),
    ],
)
def test_a_blank_that_harms(text: str, line: int) -> None:
    assert of("blank_variable", text) == {f"warn {line}"}


@pytest.mark.parametrize(
    "text",
    [
        'set -u\nrm -rf "$OUT/runs"\npython -u t.py',
        'rm -rf "${OUT:?}/runs"\npython -u t.py',
        '[ -z "$1" ] && exit 1\nOUT=runs/$1\nrm -rf $OUT\npython -u t.py',
        "OUT=/ws/o\nrm -rf $OUT/old\npython -u t.py",
        "T=$(mktemp -d)\nrm -rf $T/x\npython -u t.py",
        'python -u t.py "$@"',
        "python -u t.py --n $SLURM_ARRAY_TASK_ID --out $SCRATCH/o",
        'EXTRA_ARGS=""\npython -u t.py $EXTRA_ARGS',
        "while read -r f; do python -u t.py $f; done < list",
        "for ((i=0; i<3; i++)); do python -u t.py $i; done",
    ],
)
def test_what_is_given_or_guarded(text: str) -> None:
    assert of("blank_variable", text) == NOTHING


def test_what_the_caller_gives_is_a_note() -> None:
    assert of("blank_variable", "python -u t.py --lr $LEARNING") == {"note 1"}
    assert of("blank_variable", "N=$(expr 2 \\* $SLURM_GPUS_PER_NODE)\npython -u t.py $N") == {"note 1"}
