"""`wk read`: the object it prints, on logs written for the test."""

from __future__ import annotations

import io
import json
import re
import sys
import textwrap
from pathlib import Path

import pytest

from agent.readfile import ReadError, earlier, events_from, read, read_many
from states.logs.signatures import load

KEYS = {
    *(
        "verdict",
        "settled",
        "cause",
        "also",
        "owner",
        "retryable",
        "evidence",
        "progress",
        "summary",
        "advice",
    ),
    *("because", "model"),
}
PROGRESS_KEYS = {"step", "total", "unit", "eta_s", "log_eta_s", "loss", "rate_per_s", "cadence_s", "counters"}


def steps(upto: int) -> str:
    return "".join(
        f"2031-04-05 06:{at // 60:02d}:{at % 60:02d} step {at}/1000 loss {3 - at / 1000:.3f}\n"
        for at in range(0, upto, 5)
    )


CRASH = 'Traceback (most recent call last):\n  File "train.py", line 3, in run\nKeyError: "depth"\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "out.log"


def test_the_object_has_the_keys_of_the_contract_and_is_json(log: Path) -> None:
    log.write_text(steps(400))
    told = read(log)
    assert set(told) == KEYS
    progress = told["progress"]
    assert isinstance(progress, dict)
    assert set(progress) == PROGRESS_KEYS
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["verdict"] == "progressing"
    assert (progress["step"], progress["total"], progress["loss"]) == (395, 1000, 2.605)
    assert progress["rate_per_s"] == pytest.approx(1.0)
    assert progress["cadence_s"] == pytest.approx(5.0)
    assert progress["counters"] == [{"name": "step", "value": 395, "total": 1000}]
    assert told["model"] is None


def test_a_loss_that_is_no_number_is_text(log: Path) -> None:
    log.write_text("".join(f"step {at} loss nan\n" for at in range(30)))
    told = read(log)
    assert isinstance(told["progress"], dict)
    assert told["progress"]["loss"] == "nan"
    assert (told["verdict"], told["cause"]) == ("failing", "numerics.nan")


def test_a_crash_is_failed_with_its_line(log: Path) -> None:
    log.write_text(steps(100) + CRASH)
    told = read(log)
    assert (told["verdict"], told["cause"]) == ("failed", "code.exception")
    assert {"line": 23, "text": 'KeyError: "depth"'} in told["evidence"]  # type: ignore[operator]
    assert read(log, phase="running")["verdict"] == "failing"


def test_what_the_scheduler_says_counts(log: Path) -> None:
    log.write_text(steps(100))
    assert read(log, phase="pending")["verdict"] == "starting"
    assert read(log, exit_code=0)["verdict"] == "succeeded"
    assert read(log, phase="failed", events=("OOMKilled",))["cause"] == "memory.host"
    assert read(log, silence_s=7200.0)["verdict"] == "hung"


def test_a_watch_takes_the_last_lines_only(log: Path) -> None:
    log.write_text(CRASH + steps(400))
    assert read(log, lines_max=10)["cause"] == "none"


def test_the_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(steps(50).encode())))
    assert read("-")["verdict"] == "progressing"


def test_an_earlier_reading_tells_where_the_counters_stood(log: Path) -> None:
    log.write_text(steps(200))
    before = read(log)
    track = earlier(before)
    assert track.highest == {"step": 195.0}
    assert track.main is not None
    assert track.main.value == 195
    log.write_text(steps(400))
    assert read(log, previous=before)["verdict"] == "progressing"


@pytest.mark.parametrize(
    "odd", [{"progress": 3}, {"progress": {"counters": [{"name": "x"}]}}, {"colour": "red"}]
)
def test_an_earlier_reading_that_is_none_is_refused(odd: dict[str, object]) -> None:
    with pytest.raises(ReadError, match="earlier reading"):
        earlier(odd)


def test_many_files_give_a_list_and_a_missing_one_does_not_end_it(log: Path) -> None:
    log.write_text(steps(50))
    told = read_many([log, log.with_name("absent.log")])
    assert [one["file"] for one in told] == [str(log), str(log.with_name("absent.log"))]
    assert told[0]["verdict"] == "progressing"
    assert "cannot read" in str(told[1]["error"])


def test_nothing_is_printed_that_was_not_redacted(log: Path) -> None:
    log.write_text(CRASH.replace("depth", "s3cr3t-value"))
    told = json.dumps(read(log, redact=lambda text: text.replace("s3cr3t-value", "[redacted]")))
    assert "s3cr3t" not in told
    assert "[redacted]" in told


def test_the_entry_of_the_guide_is_good_and_is_used(log: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "reading.md").read_text("utf-8")
    block = re.search(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert block is not None
    entry = textwrap.dedent(block[1])
    log.write_text(steps(50) + "AcmeStore: shard 7 is torn (crc 0x2e)\n")
    told = read(log, signatures=load([("own.toml", entry)]))
    assert (told["verdict"], told["cause"], told["owner"]) == ("failed", "data.corrupt", "data")
    assert told["evidence"] == [{"line": 11, "text": "AcmeStore: shard 7 is torn (crc 0x2e)"}]
    assert read(log)["cause"] == "none"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Pulled image\n\nOOMKilled\n", ("Pulled image", "OOMKilled")),
        ('["a", "b"]', ("a", "b")),
        ('[{"reason": "BackOff", "message": "restarting", "count": 3}]', ("BackOff: restarting",)),
        ("[12:30] node went away", ("[12:30] node went away",)),
    ],
)
def test_events_come_as_lines_or_as_json(text: str, found: tuple[str, ...]) -> None:
    assert events_from(text) == found
