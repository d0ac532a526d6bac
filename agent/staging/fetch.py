"""Fetches what a run lacks, as a job of its own: `fetch.py plan.json`, in the target image, from the workspace.

Stands alone: it is put below the workspace and run by whatever Python the image has, where no library can be relied
on; so HTTP is the standard library's here. A file is written to `NAME.part`, resumed by a range that the server
ties to the same version (If-Range), checked (length, sha256) and only then given its name. Models and data sets of
the hub are fetched by the hub's own client, which resumes too. A line tells how far it is every few seconds.

Exit code: 0 when all is there; 1 when something failed, after its tries, with the reason in the last line.

Never: import anything of this project; write outside the folder it is started in; give half a file its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
import urllib.error
import urllib.request
from typing import IO, Any

TRIES = 5
CHUNK_BYTES = 1 << 20
TELL_EVERY_S = 10.0
TIMEOUT_S = 60.0
PAUSE_S = float(os.environ.get("WATCHKEEPER_FETCH_PAUSE_S", "3"))
"""Before the second try; each further one waits twice as long."""

MIB = 1 << 20


class NetworkFailed(Exception):
    """A fetch that kept failing; told without a class name, in the words that readers of logs know."""


def say(text: str) -> None:
    print(text, flush=True)


def part_of(to: str) -> str:
    return f"{to}.part"


def fetch(url: str, to: str, sha256: str) -> None:
    """One file, with its tries. Raises the last error."""
    if os.path.exists(to):
        say(f"{to}: there already")
        return
    os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
    tries = 1
    while True:
        have = size_of(part_of(to))
        failed: Exception
        try:
            receive(url, to)
            break
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in (408, 425, 429):
                raise
            failed = error
        except (OSError, EOFError) as error:
            if getattr(error, "errno", None) == 28:
                raise
            failed = error
        tries = 1 if size_of(part_of(to)) > have else tries + 1
        if tries > TRIES:
            raise NetworkFailed(f"Max retries exceeded with url for {to}: {words_of(failed)}") from None
        say(f"{to}: {words_of(failed)}; retry {tries}/{TRIES}")
        time.sleep(PAUSE_S * 2 ** (tries - 1))
    finish(to, sha256)


def receive(url: str, to: str) -> None:
    """One request: the rest of the file, or all of it where the server has no ranges or another version now."""
    part, mark = part_of(to), part_of(to) + ".tag"
    have, tag = size_of(part), text_of(mark)
    request = urllib.request.Request(url)
    if have and tag:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", tag)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        resumed = answer.status == 206
        have = have if resumed else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        if total is not None and total - have > shutil.disk_usage(os.path.dirname(part) or ".").free:
            raise OSError(28, f"No space left on device: {to} needs {total - have} bytes more")
        if not resumed:
            with open(mark, "w", encoding="utf-8") as file:
                file.write(strong(answer.headers.get("ETag", "")) or answer.headers.get("Last-Modified", ""))
        with open(part, "ab" if resumed else "wb") as file:
            copy(answer, file, to, have, total)
            file.flush()
            os.fsync(file.fileno())
    if total is not None and size_of(part) != total:
        raise EOFError(f"connection broken, IncompleteRead: {size_of(part)} of {total} bytes")


def copy(answer: Any, file: IO[bytes], to: str, have: int, total: int | None) -> None:
    """The body, with a line every few seconds that tells how far it is and how fast."""
    begun = told = time.monotonic()
    got = 0
    if have:
        say(f"{to}: resumed at {have / MIB:.1f} MiB")
    while True:
        chunk = answer.read(CHUNK_BYTES)
        if not chunk:
            break
        file.write(chunk)
        got += len(chunk)
        now = time.monotonic()
        if now - told >= TELL_EVERY_S:
            told = now
            say(progress(to, have + got, total, got / max(now - begun, 0.001)))
    say(progress(to, have + got, total, got / max(time.monotonic() - begun, 0.001)))


def progress(to: str, done: int, total: int | None, per_s: float) -> str:
    """How far it is, as `NAME: done/total MiB (percent), rate`."""
    if total:
        return (
            f"{to}: {done / MIB:.1f}/{total / MIB:.1f} MiB ({100 * done // total}%), {per_s / MIB:.2f} MiB/s"
        )
    return f"{to}: {done / MIB:.1f} MiB, {per_s / MIB:.2f} MiB/s"


def finish(to: str, sha256: str) -> None:
    """Check it and give it its name; a part that is not what was asked for is removed."""
    part = part_of(to)
    if sha256:
        found = hashlib.sha256()
        with open(part, "rb") as file:
            for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
                found.update(chunk)
        if found.hexdigest() != sha256:
            remove(part, part + ".tag")
            raise ValueError(f"{to} is not what was asked for: its sha256 is {found.hexdigest()}")
    os.replace(part, to)
    remove(part + ".tag")
    say(f"{to}: fetched, {os.path.getsize(to)} bytes")


def fetch_repository(repo: str, kind: str, revision: str, cache: str) -> None:
    """A model or data set of the hub into a cache of its layout, by the hub's own client."""
    try:
        from huggingface_hub import snapshot_download  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise RuntimeError(
            f"{repo} cannot be fetched: the Python of this image has no huggingface_hub; name an image or an "
            "environment that has it, or put a copy on a cluster path and name that"
        ) from None
    say(f"{repo}: fetching by huggingface_hub")
    snapshot_download(repo, repo_type=kind.rstrip("s"), revision=revision or None, cache_dir=cache)
    say(f"{repo}: fetched")


def size_of(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def text_of(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def strong(tag: str) -> str:
    """A weak tag does not tell whether the bytes are the same, so it resumes nothing."""
    return "" if tag.startswith("W/") else tag


def remove(*paths: str) -> None:
    for path in paths:
        if os.path.exists(path):
            os.remove(path)


def words_of(error: BaseException) -> str:
    """What went wrong; a time-out is named as such whatever layer it came from."""
    text = str(error)
    return f"Read timed out ({text})" if "timed out" in text else text


def main(plan: str) -> int:
    """Everything in the plan, one after the other; what is there already is left alone."""
    with open(plan, encoding="utf-8") as file:
        wanted = json.load(file)
    try:
        for one in wanted["files"]:
            fetch(one["url"], one["to"], one.get("sha256", ""))
        for one in wanted["repositories"]:
            fetch_repository(one["repo"], one["kind"], one.get("revision", ""), one["cache"])
    except Exception as error:
        for one in wanted["files"]:
            if size_of(part_of(one["to"])):
                say(f"left for a later try: {part_of(one['to'])} ({size_of(part_of(one['to']))} bytes)")
        say(
            f"not fetched: {error}"
            if isinstance(error, NetworkFailed)
            else f"{type(error).__name__}: {error}"
        )
        return 1
    # The list and this program have done their work: nothing of them stays (F7).
    shutil.rmtree(os.path.dirname(os.path.abspath(plan)), ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
