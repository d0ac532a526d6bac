"""How well a model reads, on labelled logs: accuracy, cost, and where it and the rules disagree.

    python -m agent.evaluate CASES [--limit N] [--budget USD] [--open] [--record DIR | --replay DIR] [--json]

CASES holds `<id>/log.txt` and `<id>/case.yaml` (verdict, cause, also; a `truth:` mapping may hold them). The key and
the settings are those of every day; without a key only `--replay` works. Nothing of a label reaches the model.

Never: spend more than the budget given; touch a job, the database or the cache of readings.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from agent.app import build
from agent.clock import SystemClock
from agent.pieces import pieces
from agent.reader import API_KEY, Facts, ModelReader, Notebook, Reading, Void
from agent.reader.budget import Limits
from agent.reader.messages import MessagesApi
from agent.reader.read import Caller
from agent.reader.recorded import Recorded, Recording
from agent.redaction import Redactor
from agent.secrets import SecretsError
from agent.settings import ModelSettings
from agent.yamlfile import UserFileError
from states.policy import Policy
from states.reading import Line, Scene, Track
from states.verdict import Looked, look

BUDGET_USD = 1.0


class Case(NamedTuple):
    """One labelled log. verdict, cause: "" where the label does not say. also: other causes one can defend."""

    name: str
    log: Path
    verdict: str
    cause: str
    also: tuple[str, ...]
    silence_s: float | None


class Result(NamedTuple):
    """One case read by the rules and by the model. settled: the rules judge it (neither unsettled nor ambiguous)."""

    case: Case
    rules_verdict: str
    rules_cause: str
    settled: bool
    outcome: Reading | Void

    @property
    def disagrees(self) -> bool:
        """The model and the rules say different things of a case that both judged."""
        read = self.outcome
        if isinstance(read, Void) or not self.settled:
            return False
        return (read.verdict, read.cause) != (self.rules_verdict, self.rules_cause)


class NoCases(ValueError):
    """The folder holds no cases, or one that cannot be read; the message says which and what it needs."""


def load_cases(folder: Path) -> list[Case]:
    """The cases of a folder, by name. Raises NoCases."""
    files = sorted(folder.glob("*/case.yaml"))
    if not files:
        raise NoCases(f"{folder} holds no cases; a case is a folder with log.txt and case.yaml")
    return [_case(file) for file in files]


def evaluate(cases: Sequence[Case], reader: ModelReader, *, open_only: bool = False) -> list[Result]:
    """Reads each case by the rules and then by the model. open_only: only what the rules leave open."""
    results = []
    for case in cases:
        seen, found = _by_rules(case)
        settled = seen.verdict.settled and seen.verdict.name != "ambiguous"
        if open_only and settled:
            continue
        facts = Facts(silence_s=case.silence_s, situation=seen.verdict.summary)
        outcome = reader.read(found, facts)
        verdict = seen.verdict
        results.append(Result(case, verdict.name, verdict.diagnosis.cause, settled, outcome))
    return results


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """The figures: hits and asked per question, cost, tokens, voids by kind, disagreements with the rules."""
    read = [(one, one.outcome) for one in results if isinstance(one.outcome, Reading)]
    voids = Counter(one.outcome.kind for one in results if isinstance(one.outcome, Void))
    costs = [one.outcome.cost_usd for one in results]
    return {
        "cases": len(results),
        "read": len(read),
        "void": dict(sorted(voids.items())),
        "model": {
            "verdict": _rate([(case.verdict, model.verdict == case.verdict) for (case, *_), model in read]),
            "cause": _rate([(case.cause, model.cause == case.cause) for (case, *_), model in read]),
            "cause_with_also": _rate(
                [(case.cause, model.cause in (case.cause, *case.also)) for (case, *_), model in read]
            ),
        },
        "rules": {
            "verdict": _rate([(one.case.verdict, one.rules_verdict == one.case.verdict) for one in results]),
            "cause": _rate([(one.case.cause, one.rules_cause == one.case.cause) for one in results]),
        },
        "tokens": sum(one.outcome.tokens for one in results),
        "cost_usd": round(sum(cost or 0.0 for cost in costs), 6),
        "cost_known": None not in costs,
        "disagreements": [_disagreement(one) for one in results if one.disagrees],
    }


def main(arguments: Sequence[str] | None = None, env: Mapping[str, str] | None = None) -> int:
    """The command. 0; 2 when there is nothing to run with (no cases, no key), with what to do next."""
    given = _parser().parse_args(arguments)
    try:
        app = build(env)
        cases = load_cases(given.cases)[: given.limit]
        caller = _caller(given, app.settings.model, app.secrets.get(API_KEY))
    except (NoCases, UserFileError, SecretsError) as error:
        print(error, file=sys.stderr)
        return 2
    limits = Limits(given.budget, given.budget, len(cases), len(cases))
    reader = ModelReader(caller, Notebook(), app.clock, limits=limits, redact=app.redactor.text)
    try:
        results = evaluate(cases, reader, open_only=given.open)
    finally:
        reader.close()
    figures = summary(results)
    print(json.dumps(figures, indent=1, ensure_ascii=False) if given.json else _table(figures))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m agent.evaluate", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("cases", type=Path, help="folder of <id>/log.txt and <id>/case.yaml")
    parser.add_argument("--limit", type=int, default=None, help="read the first so many cases only")
    parser.add_argument("--budget", type=float, default=BUDGET_USD, help="US dollars to spend at most")
    parser.add_argument("--open", action="store_true", help="only cases that the rules leave open")
    parser.add_argument("--record", type=Path, default=None, help="keep the replies in this folder")
    parser.add_argument(
        "--replay", type=Path, default=None, help="take the replies from this folder; no key needed"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser


def _caller(given: argparse.Namespace, settings: ModelSettings, key: str | None) -> Caller:
    if given.replay is not None:
        return Recorded(given.replay)
    if not key:
        raise NoCases(
            f"there is no key: run `wk key set {API_KEY}`, or replay recorded replies with --replay DIR"
        )
    caller = MessagesApi(settings, key, SystemClock())
    return Recording(caller, given.record) if given.record is not None else caller


def _case(file: Path) -> Case:
    """A label in either of its two forms. Raises NoCases for one that is no mapping."""
    label = yaml.safe_load(file.read_text(encoding="utf-8"))
    if not isinstance(label, dict):
        raise NoCases(f"{file} holds no mapping; it needs `verdict:` and `cause:`")
    told = {**label, **(label.get("truth") or {})}
    silence = told.get("silence_s_at_observation")
    return Case(
        name=file.parent.name,
        log=file.with_name("log.txt"),
        verdict=told.get("verdict") or "",
        cause=told.get("cause") or "",
        also=tuple(told.get("also") or ()),
        silence_s=float(silence) if silence is not None else None,
    )


def _by_rules(case: Case) -> tuple[Looked, list[Line]]:
    """What the rules say of a case, as `wk read` asks them, and its lines."""
    with case.log.open("rb") as file:
        kept = pieces(iter(lambda: file.read(1 << 20), b""), redact=Redactor(()).text)
    scene = Scene(phase="unknown", silence_s=case.silence_s)
    seen = look(
        kept.lines, scene, Policy(), before=Track(), fingerprint=kept.fingerprint, bytes_read=kept.bytes_read
    )
    return seen, kept.lines


def _rate(hits: Sequence[tuple[str, bool]]) -> dict[str, int]:
    """Hits among the cases whose label says anything."""
    told = [hit for label, hit in hits if label]
    return {"hits": sum(told), "of": len(told)}


def _disagreement(one: Result) -> dict[str, str]:
    assert isinstance(one.outcome, Reading)
    return {
        "case": one.case.name,
        "label": f"{one.case.verdict} {one.case.cause}".strip(),
        "rules": f"{one.rules_verdict} {one.rules_cause}",
        "model": f"{one.outcome.verdict} {one.outcome.cause}",
    }


def _table(figures: Mapping[str, Any]) -> str:
    rows = [f"{figures['cases']} cases, {figures['read']} read by the model"]
    rows += [f"  void: {kind:12s} {count}" for kind, count in figures["void"].items()]
    for who in ("model", "rules"):
        for question, rate in figures[who].items():
            percent = f"{100 * rate['hits'] / rate['of']:5.1f} %" if rate["of"] else "    -"
            rows.append(f"  {who:6s} {question:16s} {rate['hits']:4d} of {rate['of']:4d}  {percent}")
    known = (
        ""
        if figures["cost_known"]
        else " and what has no known price (an unlisted model, a call that broke off)"
    )
    rows.append(f"  {figures['tokens']} tokens, ${figures['cost_usd']:.4f}{known}")
    for one in figures["disagreements"]:
        rows.append(f"  {one['case']}: label {one['label']}; rules {one['rules']}; model {one['model']}")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
