"""Broken line continuations, each at the line to mend."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("python -u t.py \\\n  --a 1\n  --b 2\n", 2),
        ("python -u t.py \\\n  --a 1 \\ \n  --b 2\n", 2),
        ("python -u t.py \\\n  --a 1 \\\n# --c 3 \\\n  --b 2\n", 3),
        ("python -u t.py \\\n  --a 1 \\\n\n  --b 2\n", 2),
        ("python -u t.py --a x\\\n--b 2\n", 1),
        ("python -u t.py \\\n  --a 1 \\\necho done\n", 2),
        ("python -u t.py \\\n  a.b=1\n  a.c=2\n", 2),
        ("python -u \\ \n  t.py\n", 1),
        ("python -u t.py\n  model=x\n", 1),
        ("ray job submit --working-dir . \\\n  --no-wait\n  -- python -u t.py\n", 2),
    ],
)
def test_a_break_is_refused(text: str, line: int) -> None:
    assert of("broken_continuation", text) == {f"refuse {line}"}


@pytest.mark.parametrize(
    "text",
    [
        "srun torchrun \\\n--nnodes 1 \\\n--nproc_per_node 4 \\\n t.py\n",
        "python -u t.py --a x,y\\\n   --b 2\n",
        'srun bash -c "python -u t.py \\\n --a 1"\n',
        "cat > f <<EOF\na \\ \n--b\nEOF\n",
        "# python t.py \\ \n# --b\npython -u t.py\n",
        "A=1 \\\n  B=2 \\\n  python -u t.py\n",
        "python -u t.py && \\\n  echo done\n",
    ],
)
def test_what_goes_on(text: str) -> None:
    assert of("broken_continuation", text) == NOTHING
