"""Exceptions that no signature knows by its words: the layer by class, path and frames."""

from __future__ import annotations

import pytest

from states.logs.exceptions import classify


@pytest.mark.parametrize(
    ("name", "message", "frames", "cause"),
    [
        ("FileNotFoundError", "[Errno 2] No such file or directory: '/c/part.jsonl'", (), "data.missing"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'conf/a.yaml'", (), "config.missing"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: '/o/checkpoint-9/x'", (), "model.load"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'go.sh'", (), "command.not_found"),
        (
            "FileNotFoundError",
            "[Errno 2]: 'ffmpeg'",
            ("subprocess.py in _execute_child",),
            "command.not_found",
        ),
        ("FileNotFoundError", "[Errno 2]: '/x/w'", ("torch/serialization.py in load",), "model.load"),
        ("OSError", "[Errno 28] No space left on device", (), "storage.full"),
        ("OSError", "[Errno 122] Disk quota exceeded", (), "storage.full"),
        ("OSError", "[Errno 5] Input/output error: 'a'", (), "storage.io"),
        ("OSError", "[Errno 116] Stale file handle", (), "mount.stale"),
        ("OSError", "[Errno 30] Read-only file system", (), "mount.permission"),
        ("OSError", "[Errno 12] Cannot allocate memory", (), "memory.host"),
        ("JSONDecodeError", "Extra data: line 1", ("datasets/json.py in rows",), "data.corrupt"),
        ("JSONDecodeError", "Extra data: line 1", ("deepspeed/runtime/config.py in load",), "code.exception"),
        ("JSONDecodeError", "Expecting value", ("requests/models.py in json",), "network.timeout"),
        ("TimeoutError", "late", ("torch/distributed/store.py in get",), "comm.timeout"),
        ("TimeoutError", "late", ("httpx/_client.py in send",), "network.timeout"),
        ("TimeoutError", "late", (), "code.exception"),
        ("EOFError", "Ran out of input", ("torch/serialization.py in load",), "model.load"),
        ("EOFError", "", ("/w/a.py in ask",), "code.exception"),
        ("UnicodeDecodeError", "'utf-8'", (), "data.corrupt"),
        ("KeyboardInterrupt", "", (), "process.killed"),
        ("ModuleNotFoundError", "No module named 'x'", (), "env.missing_module"),
        ("DemoError", "odd", (), "code.exception"),
    ],
)
def test_the_layer_of_an_exception(name: str, message: str, frames: tuple[str, ...], cause: str) -> None:
    assert classify(name, message, frames).cause == cause


def test_a_missing_absolute_path_may_be_a_missing_mount() -> None:
    assert "mount.missing" in classify("FileNotFoundError", "[Errno 2]: '/c/part.jsonl'").also
    assert "mount.missing" not in classify("FileNotFoundError", "[Errno 2]: 'part.jsonl'").also
