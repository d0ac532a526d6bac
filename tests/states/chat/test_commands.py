"""Where a command begins and ends in a message."""

from __future__ import annotations

import pytest

from states.chat.commands import find


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("run bash a.sh on 8 gpus", "bash a.sh"),
        ("run bash a.sh, then watch it", "bash a.sh"),
        ("run bash a.sh; also mount /mnt/x", "bash a.sh"),
        ("run bash a.sh; bash b.sh", "bash a.sh; bash b.sh"),
        ("跑 python t.py --lr 1e-4 用 8 卡", "python t.py --lr 1e-4"),
        ("run python t.py --mode with --out on 2 gpus", "python t.py --mode with --out on"),
        ("run python t.py 4卡", "python t.py"),
        ("run python -c 'print(1, 2)' please", "python -c 'print(1, 2)'"),
        ("run CUDA_VISIBLE_DEVICES=0 python t.py", "CUDA_VISIBLE_DEVICES=0 python t.py"),
        ("run conda run -n env python t.py", "conda run -n env python t.py"),
        ("wk run --gpu 1 -- ./go --with on", "./go --with on"),
        ("run `make all && ./go`", "make all && ./go"),
        ("run `./anything at all`", "./anything at all"),
        ("```\npython a.py \\\n  --x 1\n```", "python a.py \\\n  --x 1"),
        ("train.py", "train.py"),
    ],
)
def test_a_command_is_found_whole(text: str, command: str) -> None:
    (found,) = find(text)
    assert found.command == command
    assert command in text[found.start : found.end]


@pytest.mark.parametrize(
    "text", ["status of gpt-3", "the log says `RuntimeError`", "time is short", "stop it", "make it stop"]
)
def test_a_sentence_has_no_command(text: str) -> None:
    assert find(text) == ()
