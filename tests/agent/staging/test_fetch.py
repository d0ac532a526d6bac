"""The program that fetches what is missing, run as a job runs it: a process of its own against a real server."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from agent.staging import fetch
from agent.staging.sizes import size_of
from states.digest import digest
from states.reading import Track

BODY = bytes(range(256)) * 4096
"""1 MiB."""


class Files(BaseHTTPRequestHandler):
    """One file with ranges. cut: the next answer ends after so many bytes; tag: its version; said: requests."""

    cut: ClassVar[int] = 0
    tag: ClassVar[str] = '"one"'
    status: ClassVar[int] = 0
    said: ClassVar[list[str]] = []

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        cls = type(self)
        wanted = self.headers.get("Range", "")
        cls.said.append(f"{self.command} {wanted}".strip())
        if cls.status:
            self.send_error(cls.status)
            return
        begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if wanted and self.headers.get("If-Range") != cls.tag:
            begin = 0
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(BODY) - begin))
        self.send_header("ETag", cls.tag)
        self.end_headers()
        if body:
            end, cls.cut = begin + cls.cut if cls.cut else len(BODY), 0
            self.wfile.write(BODY[begin:end])
            if end < len(BODY):
                self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    Files.cut, Files.tag, Files.status, Files.said = 0, '"one"', 0, []
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_address[1]}/w.bin"
    serving.shutdown()
    serving.server_close()


def fetched(workspace: Path, url: str, *, sha256: str = "", to: str = "w/w.bin") -> tuple[int, str]:
    """Exit code and output of one run of the program, from the workspace."""
    folder = workspace / ".watchkeeper" / "stage" / "x-1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fetch.py").write_text(Path(fetch.__file__).read_text("utf-8"), "utf-8")
    wanted = {"files": [{"url": url, "to": to, "sha256": sha256}], "repositories": []}
    (folder / "plan.json").write_text(json.dumps(wanted), "utf-8")
    ran = subprocess.run(
        [sys.executable, "-I", str(folder / "fetch.py"), str(folder / "plan.json")],
        cwd=workspace,
        env={"WATCHKEEPER_FETCH_PAUSE_S": "0"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_a_file_is_fetched_told_and_nothing_else_is_left(server: str, tmp_path: Path) -> None:
    """F7."""
    code, said = fetched(tmp_path, server, sha256=hashlib.sha256(BODY).hexdigest())
    assert code == 0, said
    assert (tmp_path / "w/w.bin").read_bytes() == BODY
    assert "w/w.bin: 1.0/1.0 MiB (100%)" in said
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["w.bin"]


def test_a_connection_that_breaks_is_resumed_where_it_broke(server: str, tmp_path: Path) -> None:
    Files.cut = 300_000
    code, said = fetched(tmp_path, server)
    assert code == 0, said
    assert (tmp_path / "w/w.bin").read_bytes() == BODY
    assert Files.said == ["GET", "GET bytes=300000-"]


def test_a_later_run_goes_on_from_the_part(server: str, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/w.bin.part").write_bytes(BODY[:1000])
    (tmp_path / "w/w.bin.part.tag").write_text('"one"')
    assert fetched(tmp_path, server)[0] == 0
    assert Files.said == ["GET bytes=1000-"]
    assert (tmp_path / "w/w.bin").read_bytes() == BODY


def test_a_part_of_another_version_is_not_continued(server: str, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/w.bin.part").write_bytes(b"old" * 100)
    (tmp_path / "w/w.bin.part.tag").write_text('"none"')
    assert fetched(tmp_path, server)[0] == 0
    assert (tmp_path / "w/w.bin").read_bytes() == BODY


def test_what_is_there_is_left_alone(server: str, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/w.bin").write_text("mine")
    assert fetched(tmp_path, server)[0] == 0
    assert (tmp_path / "w/w.bin").read_text() == "mine"
    assert Files.said == []


def test_what_is_not_what_was_asked_for_gets_no_name(server: str, tmp_path: Path) -> None:
    code, said = fetched(tmp_path, server, sha256="0" * 64)
    assert code == 1
    assert "not what was asked for" in said
    assert not (tmp_path / "w/w.bin").exists()
    assert not (tmp_path / "w/w.bin.part").exists()


@pytest.mark.parametrize(("status", "requests", "cause"), [(503, 5, "network.timeout"), (404, 1, "")])
def test_a_refusal_is_tried_again_only_where_it_may_pass(
    server: str, tmp_path: Path, status: int, requests: int, cause: str
) -> None:
    Files.status = status
    code, said = fetched(tmp_path, server)
    assert code == 1
    assert len(Files.said) == requests
    assert str(status) in said.splitlines()[-1]
    read = digest(said, before=Track(), exit_code=1).diagnosis.cause
    assert read == cause if cause else not read.startswith("network.")


def test_nobody_at_the_address_is_read_as_the_networks_fault(server: str, tmp_path: Path) -> None:
    """C7: so that the question is about the network."""
    dead = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    port = dead.server_address[1]
    dead.server_close()
    code, said = fetched(tmp_path, f"http://127.0.0.1:{port}/w.bin")
    assert code == 1
    assert digest(said, before=Track(), exit_code=1).diagnosis.cause.startswith("network.")


def test_what_was_fetched_in_part_is_named_when_it_fails(server: str, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/w.bin.part").write_bytes(BODY[:1000])
    Files.status = 404
    assert "left for a later try: w/w.bin.part (1000 bytes)" in fetched(tmp_path, server)[1]


def test_a_repository_needs_the_hubs_own_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(RuntimeError, match="no huggingface_hub"):
        fetch.fetch_repository("org/name", "models", "", str(tmp_path))


def test_a_size_is_known_before_the_download(server: str) -> None:
    assert size_of(server) == len(BODY)
    assert Files.said == ["HEAD"]
    Files.status = 404
    assert size_of(server) is None
    assert size_of("http://127.0.0.1:1/w.bin") is None
