"""Checkpoints with and without a bound."""

from __future__ import annotations

import pytest

from tests.states.lint.judged import NOTHING, of, python

LOOP = "import torch\nfor e in range(9):\n    print(e)\n    torch.save(net, {place})\n"


@pytest.mark.parametrize("place", ["f'a_{e}.pt'", "'a_%d.pt' % e", "'a' + str(e)", "os.path.join(d, str(e))"])
def test_a_name_that_changes(place: str) -> None:
    assert python("checkpoint_unbounded", LOOP.format(place=place)) == {"warn 4"}


@pytest.mark.parametrize("place", ["'last.pt'", "f'{d}/last.pt'", "args.out"])
def test_one_file_over_and_over(place: str) -> None:
    assert python("checkpoint_unbounded", LOOP.format(place=place)) == NOTHING


def test_what_is_pruned() -> None:
    code = LOOP.format(place="f'a_{e}.pt'") + "    os.remove(f'a_{e - 3}.pt')\n"
    assert python("checkpoint_unbounded", code) == NOTHING


def test_through_a_function() -> None:
    code = (
        "import torch\ndef keep(net, path):\n    torch.save(net, path)\n"
        "for e in range(9):\n    print(e)\n    keep(net, {})\n"
    )
    assert python("checkpoint_unbounded", code.format("f'a_{e}.pt'")) == {"warn 3"}
    assert python("checkpoint_unbounded", code.format("'a.pt'")) == NOTHING


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("TrainingArguments('o',\n save_steps=10)", {"warn 2"}),
        ("TrainingArguments('o', save_strategy='epoch')", {"warn 1"}),
        ("TrainingArguments('o')", {"warn 1"}),
        ("TrainingArguments('o', save_total_limit=2)", NOTHING),
        ("TrainingArguments('o', save_strategy='no')", NOTHING),
        ("TrainingArguments(**kw)", NOTHING),
        ("ModelCheckpoint(dirpath='o',\n save_top_k=-1)", {"warn 2"}),
        ("ModelCheckpoint(dirpath='o', save_top_k=3)", NOTHING),
        ("ModelCheckpoint(dirpath='o')", NOTHING),
    ],
)
def test_arguments_and_callbacks(call: str, found: set[str]) -> None:
    assert python("checkpoint_unbounded", call + "\n") == found


def test_on_the_command_line() -> None:
    assert of("checkpoint_unbounded", "python -u t.py \\\n --save_steps 500") == {"warn 2"}
    assert of("checkpoint_unbounded", "python -u t.py --save_steps 500 --save_total_limit 2") == NOTHING
    assert of("checkpoint_unbounded", "python -u t.py --save_steps 20_000") == NOTHING
