"""Fuzzing of whatever reads what others wrote: `make fuzz`, or `python -m tests.security.fuzz TARGET --seconds 60`.

With atheris (`make fuzz` installs it, where this Python has one) the code that is reached steers it; without, texts
are drawn and mutated from a seed. A target must not raise and must keep its promise; what breaks one is printed as
bytes, for a test of its own.

Never: run in the ordinary tests for longer than a glance.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import FunctionType

from agent.clock import SystemClock
from agent.clusters.brainpp_parse import created
from agent.clusters.brainpp_parse import plain as plain_answer
from agent.clusters.slurm_parse import json_rows
from agent.lint import lint_text, scene
from agent.mcp.fence import fenced
from agent.native import convert
from agent.redaction import Redactor, bare
from agent.simulation.chance import Chance
from agent.yamlfile import UserFileError, read_document
from agent.yamlparse import parse
from states.chat import Context, understand
from states.digest import digest
from states.lint.lint import Source
from states.reading import Track
from states.text import lines, stream
from tests.security.canaries import KNOWN, LEAKY_LOG

OURS = {"agent", "states"}
FOUND = Path(".fuzz")
"""Inputs that reached something new, for the next time; and what broke a target."""

REDACTOR = Redactor(KNOWN)
SEEDS = (
    LEAKY_LOG.encode(), b"a: &a [*a]\n<<: {x: 1}\n", b'{"jobs": [{"job_id": 1}]}', b"#!/bin/sh\n#SBATCH -N 1\nx | y",
    b"step 3/40 loss nan\r\x1b[2K", b"apiVersion: batch/v1\nkind: Job\n", b"how is digits?", b"Traceback\n  File a\n",
)  # fmt: skip


def redact(data: bytes) -> None:
    """Twice is once; no value that was known stays, seen or unseen."""
    text = data.decode("utf-8", "replace")
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once
    shown = bare(once)
    assert not [value for value in KNOWN.values() if value in shown]


def clean(data: bytes) -> None:
    """A log in one piece and in many is the same log."""
    if len(data) < 8_000:
        whole = list(stream([data]))
        assert whole == list(stream([data[:7], data[7:11], data[11:]]))
    assert not [line for line in lines(data.decode("utf-8", "replace")) if "\x1b" in line.text]


def judge(data: bytes) -> None:
    """Any log has a digest."""
    digest(data.decode("utf-8", "replace"), before=Track())


def yaml(data: bytes) -> None:
    """Any file is read or refused in words."""
    text = data.decode("utf-8", "replace")
    parse(text)
    for read in (lambda: read_document(text, what="the request"), lambda: convert(text, path="x", home="/x")):
        with suppress(UserFileError):
            read()


def lint(data: bytes) -> None:
    """Any script is looked through."""
    lint_text(Source("command", data.decode("utf-8", "replace")), scene(), None)


def answers(data: bytes) -> None:
    """Any answer of a scheduler is read, or said to be none."""
    text = data.decode("utf-8", "replace")
    with suppress(ValueError):
        json_rows(text)
    created(plain_answer(text), "demo")


def said(data: bytes) -> None:
    """Any message is understood, or asked back about; a fence is closed once."""
    text = data.decode("utf-8", "replace")
    understand(text[:4_000], Context())
    shown = fenced(text, "log of x")
    assert not shown or shown.count(shown.rpartition("\n")[2]) == 1


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "redact": redact, "clean": clean, "judge": judge, "yaml": yaml, "lint": lint, "answers": answers, "said": said,
}  # fmt: skip


def drawn(chance: Chance) -> bytes:
    """A seed text with pieces of others put in, bytes changed, parts taken out or doubled."""
    data = bytearray(chance.one_of(SEEDS))
    for _ in range(chance.whole(1, 7)):
        at = chance.whole(0, len(data))
        other = chance.one_of(SEEDS)
        start = chance.whole(0, len(other) - 1)
        match chance.whole(0, 3):
            case 0:
                data[at:at] = other[start : start + chance.whole(0, 40)]
            case 1:
                data[at : at + chance.whole(0, 60)] = b""
            case 2:
                data[at:at] = data[at : at + 20] * chance.whole(0, 3)
            case _:
                data[at : at + 1] = bytes([chance.whole(0, 255)])
    return bytes(data)


def fuzz(name: str, seconds: float, seed: int) -> int:
    """Try one target for so long; how many inputs it took. Raises what the target raised."""
    clock, chance, tries = SystemClock(), Chance(seed), 0
    until = clock.now() + timedelta(seconds=seconds)
    while clock.now() < until:
        data = drawn(chance)
        try:
            TARGETS[name](data)
        except Exception:
            print(f"{name} broke at {data!r}", file=sys.stderr)
            raise
        tries += 1
    return tries


def main(words: list[str]) -> None:
    """The command."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("target", nargs="*", choices=[*TARGETS, []], help="all, unless some are named")
    reader.add_argument("--seconds", type=float, default=60.0, help="for each target")
    reader.add_argument("--seed", type=int, default=0)
    given = reader.parse_args(words)
    names = given.target or list(TARGETS)
    try:
        import atheris
    except ImportError:
        for name in names:
            print(f"{name}: {fuzz(name, given.seconds, given.seed)} inputs, none broke it")
        return
    if len(names) > 1:  # it ends its process, so each target gets one of its own
        each = [f"--seconds={given.seconds}", f"--seed={given.seed}"]
        codes = {
            name: subprocess.call([sys.executable, "-m", "tests.security.fuzz", name, *each])
            for name in names
        }
        sys.exit(", ".join(f"{name} broke" for name, code in codes.items() if code) or 0)
    (name,) = names
    corpus = FOUND / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(SEEDS):
        (corpus / f"seed-{number}").write_bytes(data)
    flags = [
        f"-max_total_time={given.seconds:.0f}",
        f"-seed={given.seed + 1}",
        f"-artifact_prefix={FOUND}/{name}-",
    ]
    for one in gc.get_objects():  # ours alone: all that is loaded would take a minute
        if isinstance(one, FunctionType) and str(one.__module__).partition(".")[0] in OURS:
            atheris.instrument_func(one)
    atheris.Setup([sys.argv[0], *flags, str(corpus)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
