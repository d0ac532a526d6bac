"""Keys: typed or piped in, never an argument, never shown, in one file of their owner's (B1, B4, B6)."""

from __future__ import annotations

from tests.cli.program import Wk

NAME = "ANTHROPIC_API_KEY"
SECRET = "a-quite-ordinary-looking-value-4711"


def test_a_key_is_set_by_pipe_listed_by_name_and_forgotten(wk: Wk) -> None:
    stored = wk("key", "set", NAME, stdin=SECRET + "\n")
    assert stored.code == 0, stored.err
    listed, examined = wk("key", "list"), wk("doctor")
    row = next(line for line in listed.out.splitlines() if line.startswith(NAME))
    assert row.split()[1] == "file"
    said = "".join(ran.out + ran.err for ran in (stored, listed, examined))
    assert SECRET not in said
    holding = [path for path in wk.home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert [path.name for path in holding] == ["keys.json"]
    assert holding[0].stat().st_mode & 0o077 == 0

    carried = wk("run", "--json", "--", f"echo the key is {SECRET}; exit 3")
    assert carried.code == 5  # a request that carries a stored key is refused, whatever its shape
    (wk.workspace / "printed.txt").write_text(f"the key is {SECRET}\n", encoding="utf-8")
    shown = wk("run", "--json", "--", "cat printed.txt; exit 3")
    assert shown.code == 3
    assert SECRET not in carried.out + carried.err
    assert SECRET not in shown.out + shown.err

    assert wk("key", "forget", NAME, "--json").data == {"name": NAME, "forgotten": True}
    assert wk("library", "forget", "4711").code == 6


def test_a_key_as_an_argument_is_refused_and_not_repeated(wk: Wk) -> None:
    ran = wk("key", "set", NAME, SECRET)
    assert ran.code == 5
    assert SECRET not in ran.out + ran.err
    assert f"wk key set {NAME}" in ran.err
    assert wk("key", "set", NAME, stdin="\n").code == 5
