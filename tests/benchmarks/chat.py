"""How well chat messages are understood: labelled phrases in the worlds they are said in.

    python -m tests.benchmarks.chat ../shared/corpus [--misses]

Intent right: the label's or one it accepts. Ask-back right: the same. A wrong act is a stop, delete, answer, run or
submit that would be carried out although the label asks for none, asks back first, or guards against it.

Never: show the reading a label; need the corpus (without it this says so and ends well).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from states.chat import Context, Understood, context_of, understand
from tests.benchmarks.measuring import Figure, per_second
from tests.states.chat.phrases import WORLDS
from tests.states.chat.phrases import Phrase as OwnPhrase
from tests.states.chat.phrases import phrases as own_phrases

RUN_STATE = re.compile(r"\b(?:running|queued|failed|succeeded|not submitted)\b")
GUARDED = {"no_stop": "stop", "no_delete": "delete", "no_answer": "answer", "no_submit": "run"}


class Phrase(NamedTuple):
    """One line of the set."""

    id: str
    context: str
    message: str
    intent: str
    slots: dict[str, Any]
    ask_back: bool
    guard: frozenset[str]
    accept: frozenset[str]


def figures() -> Iterator[Figure]:
    """Messages of the tests read in a second, the English and the Chinese ones."""
    for name in ("english.txt", "chinese.txt"):
        lines = own_phrases(name)[:100]

        def read_all(lines: Sequence[OwnPhrase] = lines) -> None:
            for line in lines:
                understand(line.message, WORLDS[line.world])

        yield Figure(f"chat: messages read ({name})", len(lines) * per_second(read_all), "1/s of CPU")


def main() -> int:
    """Prints everything; 0 also where the corpus is absent."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--misses", action="store_true")
    given = parser.parse_args()
    if not (given.corpus / "phrases.tsv").is_file():
        print(f"no phrases.tsv in {given.corpus}: nothing is measured")
        return 0
    worlds = contexts(given.corpus / "contexts.yaml")
    lines = phrases(given.corpus / "phrases.tsv")
    began = time.perf_counter()
    readings = [(phrase, understand(phrase.message, worlds[phrase.context])) for phrase in lines]
    each_ms = 1000 * (time.perf_counter() - began) / max(len(lines), 1)
    intents = [p for p, u in readings if u.intent == p.intent or u.intent in p.accept]
    asked = [p for p, u in readings if u.ask_back == p.ask_back]
    wrong = [p for p, u in readings if is_wrong_act(p, u)]
    for what, right in (("intent", intents), ("ask-back", asked)):
        print(f"{what:9s} {len(right):3d} of {len(lines):3d}  {100 * len(right) / len(lines):5.1f} %")
    print(f"wrong acts {len(wrong)}; {each_ms:.1f} ms a message")
    if given.misses:
        for phrase, said in readings:
            mark = "".join(c if phrase not in ok else "-" for c, ok in (("I", intents), ("A", asked)))
            mark += "W" if phrase in wrong else "-"
            slots = "" if said.slots == phrase.slots else f"   {said.slots} for {phrase.slots}"
            if mark != "---" or slots:
                print(f"{mark} {phrase.id} {phrase.context:8s} {phrase.message!r}: {said.intent} ask={said.ask_back}"
                      f" (label {phrase.intent} ask={phrase.ask_back}){slots}")  # fmt: skip
    return 0


def phrases(path: Path) -> list[Phrase]:
    """The labelled messages; `\\n` and `\\\\` are escapes of the table."""
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    found = []
    for row in rows:
        cells = row.split("\t")
        line = dict(zip(header.split("\t"), cells + [""] * 10, strict=False))
        found.append(
            Phrase(
                line["id"],
                line["context"],
                re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], line["message"]),
                line["intent"],
                json.loads(line["slots"] or "{}"),
                line["ask_back"] == "yes",
                frozenset(line["guard"].split(",")) - {""},
                frozenset(line["accept"].split(",")) - {""},
            )
        )
    return found


def contexts(path: Path) -> Mapping[str, Context]:
    """The worlds, made from their descriptions: `NAME running`, `Q-n open on NAME ... [1] an option (default)`."""
    texts = yaml.safe_load(path.read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = {}
    for name, text in texts.items():
        like = re.match(r"(?:Q-\d+ )?as (?:in )?(\w+)", text)
        known = found.get(like[1], {}) if like else {}
        jobs = {job["name"]: job["state"] for job in known.get("jobs", ())} | states(text)
        on_it = next(iter(jobs), "")
        asked = [
            question(*m.groups(), on_it) for m in re.finditer(r"(Q-\d+) open on (\S+)(.*?)(?=; Q-|$)", text)
        ]
        found[name] = {
            "jobs": [{"name": job, "state": state} for job, state in jobs.items()],
            "questions": [*known.get("questions", ()), *asked],
        }
    return {name: context_of(world) for name, world in found.items()}


def states(text: str) -> dict[str, str]:
    """{run: state}: a state holds for the names that stand before it."""
    found: dict[str, str] = {}
    waiting: list[str] = []
    for word in re.finditer(
        rf"(?P<job>\b[a-z]+(?:-[a-z]+)*-(?:\d+|coco|hub|run)\b)|{RUN_STATE.pattern}", text
    ):
        if word["job"]:
            waiting.append(word["job"])
        else:
            found |= dict.fromkeys(waiting, word[0].replace(" ", "_"))
            waiting = []
    return found | {job: "blocked" for job in waiting if job not in found}


def question(number: str, job: str, words: str, on_it: str) -> dict[str, Any]:
    """A question as the issue gives it."""
    options = re.findall(r"\[\d\] ([^\[]+)", words)
    return {
        "id": number,
        "job": on_it if job.startswith("it") else job.rstrip(":;"),
        "options": [re.sub(r"\((?:default|free text)\)", "", option).strip(" ;") for option in options],
        "default": next((n for n, option in enumerate(options, 1) if "(default)" in option), 0),
        "free_text": "free text" in words,
    }


def is_wrong_act(phrase: Phrase, said: Understood) -> bool:
    """An act that would be carried out and was not asked for."""
    if not said.is_act:
        return False
    parts = {"run" if part == "submit_only" else part for part in said.intent.split("+")}
    allowed = {
        "run" if p == "submit_only" else p for i in (phrase.intent, *phrase.accept) for p in i.split("+")
    }
    guarded = {GUARDED[guard] for guard in phrase.guard if guard in GUARDED}
    return bool(parts & guarded) or bool(parts - allowed - {"watch"}) or phrase.ask_back


if __name__ == "__main__":
    sys.exit(main())
