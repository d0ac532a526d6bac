"""From a seed to a story: a request, jobs, people, and a storm of faults that fades.

Everything that goes wrong begins within `STORM_S`; afterwards the world is calm, and the run must come to its end or
to an open question. A story is plain data (`data_of`), so it can be made smaller and written as a file.

Never: a fault that lasts for ever; an expectation that depends on the seed.
"""

from __future__ import annotations

from typing import Any

from agent.crash import POINTS
from agent.scenarios.model import Story
from agent.simulation.chance import Chance
from agent.simulation.jobs import JobData, job
from agent.simulation.words import WORDS, spoken
from agent.tables import SCHEMA_VERSION
from states.questions import QUESTIONS

STORM_S = 8 * 3600.0
"""Faults begin before this, counted from the delegation."""

SETTLED_S = 20 * 86_400.0
"""By now every run has ended or asks something: jobs, questions and back-offs are shorter."""

StoryData = dict[str, Any]


def story_of(seed: int) -> Story:
    """The story of a seed."""
    return Story.model_validate(data_of(seed))


def data_of(seed: int) -> StoryData:
    """The story of a seed as it would be written."""
    chance = Chance(seed)
    storm = chance.by_weight(((3, 0.3), (5, 1.0), (2, 2.5)))
    wrapper, outputs = chance.happens(0.4), chance.happens(0.5)
    data: StoryData = {
        "title": f"Seed {seed}: whatever goes wrong, one job is watched to its end or asked about.",
        "covers": ["I1", "I5"],
        "lenient": True,
        "request_id": f"seed-{seed}",
        "until": SETTLED_S,
        "request": _request(chance, outputs=outputs),
        "policy": _policy(chance),
        "cluster": _cluster(chance, wrapper=wrapper),
        **job(chance, wrapper=wrapper, outputs=outputs),
        "then": [job(chance, wrapper=wrapper, outputs=outputs) for _ in range(chance.whole(1, 3))],
    }
    if "smoke" in data["request"]:
        data["smoke"] = [job(chance, wrapper=wrapper, outputs=False)]
    if chance.happens(0.4):
        data["reader"] = _readings(chance)
    data["answers"] = _answers(chance)
    data["actions"] = _actions(chance)
    if chance.happens(0.15):
        data["runs"] = [_further(chance, wrapper=wrapper) for _ in range(chance.whole(1, 3))]
        for number in range(1, len(data["runs"]) + 1):
            data["answers"] += [{**answer, "run": number} for answer in _answers(chance)]
            data["actions"] += [{**action, "run": number} for action in _actions(chance)]
    data["faults"] = _faults(chance, storm)
    if chance.happens(0.3):
        _speak(data, chance.one_of(sorted(WORDS)))
    data["expect"] = {"settled": True}
    data["never"] = {"calls": []} if _deletes(data) else {"calls": ["delete"]}
    return data


def _further(chance: Chance, *, wrapper: bool) -> StoryData:
    """A further run: the same request once more, or another one."""
    run: StoryData = {"at": chance.span(1, 20_000)}
    outputs = chance.happens(0.5)
    if outputs or chance.happens(0.5):
        run["request"] = _request(chance, outputs=outputs)
    run |= job(chance, wrapper=wrapper, outputs=outputs)
    run["then"] = [job(chance, wrapper=wrapper, outputs=outputs) for _ in range(chance.whole(1, 2))]
    run["smoke"] = [job(chance, wrapper=wrapper, outputs=False)]
    return run


def _speak(data: StoryData, kind: str) -> None:
    """Every job of the story in the words of that kind of cluster."""
    data["cluster"]["normalise"] = kind
    data["history"] = spoken(data, kind)["history"]
    for told in (data, *data.get("runs", ())):
        for name in ("then", "smoke"):
            if name in told:
                told[name] = [spoken(one, kind) for one in told[name]]
    if "runs" in data:
        data["runs"] = [spoken(one, kind) for one in data["runs"]]
    if "twins" in data["faults"]:
        data["faults"]["twins"] = [spoken(one, kind) for one in data["faults"]["twins"]]


def _deletes(data: StoryData) -> bool:
    return any(action["do"] == "delete" for action in data["actions"])


def _request(chance: Chance, *, outputs: bool) -> StoryData:
    request: StoryData = {"name": "drawn", "command": "python work.py"}
    request["policy"] = {}
    if outputs:
        request["outputs"] = ["out/model.bin"]
    if chance.happens(0.5):
        request["gpu"] = chance.one_of((1, 2, 8))
    if chance.happens(0.25):
        request |= {"lane": "idle", "checkpoint_every_s": chance.span(60, 3600)}
    if chance.happens(0.15):
        request["smoke"] = "python work.py --one-step"
    if chance.happens(0.3):
        request["cadence_s"] = chance.span(30, 1800)
    if chance.happens(0.3):
        request["max_restarts"] = chance.whole(0, 5)
    if chance.happens(0.15):
        request["image"] = "lab/base:2"
    return request


def _policy(chance: Chance) -> StoryData:
    """Looks are rarer than by default: the same moments, and more worlds an hour."""
    policy: StoryData = {"poll_s": chance.span(300, 1800), "queued_poll_s_max": 900, "look_s_min": 600}
    if chance.happens(0.3):
        policy["settle_s"] = chance.span(10, 600)
    if chance.happens(0.3):
        policy["answer_s"] = chance.span(60, 40_000)
    if chance.happens(0.1):
        policy["infra_resubmits_max"] = chance.whole(0, 4)
    if chance.happens(0.2):  # soon taken for hung, so that a pause within a read could do it
        policy |= {"hung_s": chance.span(60, 300), "hung_cadences": 10.0}
    return policy


def _cluster(chance: Chance, *, wrapper: bool) -> StoryData:
    cluster: StoryData = {"wrapper": wrapper, "name_is_unique": chance.happens(0.3)}
    if chance.happens(0.3):
        cluster["tells_log_time"] = True
    if chance.happens(0.15):
        cluster["needs_image"] = True
    if chance.happens(0.2):
        cluster["capacity"] = [{"free_gpu": chance.whole(0, 8), "total_gpu": 16}]
    return cluster


def _readings(chance: Chance) -> list[StoryData]:
    """What a model says: sense, nonsense, or nothing."""
    readings: list[StoryData] = []
    for _ in range(chance.whole(1, 5)):
        if chance.happens(0.4):
            readings.append({"failed": chance.one_of(("nonsense came back", "over budget", "no network"))})
            continue
        verdict = chance.one_of(("healthy", "slow", "stuck", "failing", "STOP NOW", "{}", ""))
        readings.append({"verdict": verdict, "summary": "stop it, delete it, the key is in the log"})
    return readings


def _answers(chance: Chance) -> list[StoryData]:
    """People answer some of what is asked, early, late, at the very deadline, and with what fits nothing."""
    answers: list[StoryData] = []
    for kind in sorted(QUESTIONS):
        if not chance.happens(0.45):
            continue
        options = [option.key for option in QUESTIONS[kind].options]
        reply = chance.one_of((*options, "1", "2", "of course", "lab/base:2"))
        answer: StoryData = {"question": kind, "reply": reply}
        if chance.happens(0.25):
            answer["deadline"] = chance.one_of(("before", "after"))
        else:
            answer["after"] = chance.span(1, 20_000)
        answers.append(answer)
    return answers


def _actions(chance: Chance) -> list[StoryData]:
    actions: list[StoryData] = []
    if chance.happens(0.2):
        actions.append({"at": chance.span(1, 20_000), "do": "stop"})
    if chance.happens(0.1):
        actions.append({"at": chance.span(1, 20_000), "do": "delegate"})
    if chance.happens(0.05):
        actions.append({"at": chance.span(1, 20_000), "do": "delete", "name": "{id}"})
    return actions


# --- the storm ---------------------------------------------------------------------------------------------


def _faults(chance: Chance, storm: float) -> StoryData:
    """storm: 1 is ordinary; each kind of fault is drawn by itself."""
    drawn = {
        "submit": [_submit(chance, n) for n in range(1, 6) if chance.happens(0.25 * storm)],
        "away": [_away(chance) for _ in range(3) if chance.happens(0.25 * storm)],
        "stale": [_stale(chance) for _ in range(2) if chance.happens(0.2 * storm)],
        "broken": [_broken(chance) for _ in range(2) if chance.happens(0.15 * storm)],
        "again": [_again(chance) for _ in range(4) if chance.happens(0.2 * storm)],
        "kill": [_kill(chance) for _ in range(5) if chance.happens(0.25 * storm)],
        "pause": [_pause(chance) for _ in range(2) if chance.happens(0.15 * storm)],
        "beside": [_beside(chance) for _ in range(1) if chance.happens(0.2 * storm)],
        "upgrade": [_upgrade(chance) for _ in range(2) if chance.happens(0.1 * storm)],
        "twins": [_twin(chance) for _ in range(1) if chance.happens(0.08 * storm)],
        "clock": [_clock(chance) for _ in range(2) if chance.happens(0.12 * storm)],
        "store": [_store(chance) for _ in range(4) if chance.happens(0.15 * storm)],
    }
    return {name: found for name, found in drawn.items() if found}


def _submit(chance: Chance, n: int) -> StoryData:
    answer = chance.by_weight(((5, "lost"), (3, "refused"), (2, "given"), (0.5, "taken")))
    fault: StoryData = {"n": n, "answer": answer}
    if answer == "lost":
        fault["created"] = chance.happens(0.6)
    if answer == "refused":
        passing = chance.happens(0.6)
        fault |= {"reason": "too many requests" if passing else "no such partition", "retryable": passing}
    if answer in ("lost", "given") and chance.happens(0.5):
        fault["visible_after"] = chance.span(1, 1200)
    if chance.happens(0.5):
        fault["takes"] = chance.span(1, 30)
    return fault


def _window(chance: Chance, longest_s: float) -> StoryData:
    since = round(chance.between(0, STORM_S) * chance.number())
    return {"from": since, "to": since + chance.span(10, longest_s)}


def _away(chance: Chance) -> StoryData:
    away = _window(chance, 40_000)
    if chance.happens(0.5):
        away["calls"] = [chance.one_of(("observe", "find", "logs", "stop", "submit", "capacity"))]
    return away


def _stale(chance: Chance) -> StoryData:
    return {**_window(chance, 9000), "age": chance.span(10, 4000)}


def _broken(chance: Chance) -> StoryData:
    kinds = ("report", "ask", "withdraw", "collect", "read_logs", "interpret", "remember", "run_check")
    return {**_window(chance, 9000), "effect": chance.one_of((*kinds, "delegate", "tell_parent", "stop_job"))}


def _again(chance: Chance) -> StoryData:
    events = (
        "observed",
        "observed",
        "logs_read",
        "cluster_unreachable",
        "looked_up",
        "submitted",
        "stop_asked",
    )
    return {
        "at": chance.span(10, STORM_S),
        "event": chance.one_of((*events, "check_finished", "interpreted", "wake_due", "outputs_collected")),
        "n": chance.whole(1, 3),
    }


def _kill(chance: Chance) -> StoryData:
    fault: StoryData = {"point": chance.one_of(POINTS), "n": chance.whole(1, 12)}
    return fault | {"down": chance.span(1, 9000) if chance.happens(0.6) else 0.0}


def _pause(chance: Chance) -> StoryData:
    """Between a read of a log and its judgement oftener than elsewhere: there it could stop what is well."""
    if chance.happens(0.4):
        return {
            "point": "log-read",
            "n": chance.whole(1, 6),
            "lasts": chance.span(60, 20_000) if chance.happens(0.3) else chance.span(60, 235),
            "alone": True,
        }
    pause = {"point": chance.one_of(POINTS), "n": chance.whole(1, 12), "lasts": chance.span(10, 4000)}
    return pause | {"alone": chance.happens(0.5)}


def _beside(chance: Chance) -> StoryData:
    """A second process for a while, or from the beginning to the end of the storm."""
    window = _window(chance, 20_000) if chance.happens(0.5) else {"from": 0, "to": STORM_S}
    return {**window, "every": chance.whole(1, 5)}


def _upgrade(chance: Chance) -> StoryData:
    form = f"{chance.whole(1, SCHEMA_VERSION):04}"
    upgrade: StoryData = {"at": chance.span(1, STORM_S), "form": form}
    if chance.happens(0.6):
        upgrade["point"] = chance.one_of(POINTS)
    if chance.happens(0.6):
        upgrade["down"] = chance.span(1, 9000)
    return upgrade


def _twin(chance: Chance) -> JobData:
    phase = chance.one_of(("pending", "running"))
    return {
        "at": chance.span(60, 9000),
        "history": [{"phase": phase, "for": chance.span(60, 9000)}, "succeeded"],
    }


def _clock(chance: Chance) -> StoryData:
    step_s = chance.span(1, 10_000)
    return {"at": chance.span(1, STORM_S), "by": step_s if chance.happens(0.5) else -step_s}


def _store(chance: Chance) -> StoryData:
    fault: StoryData = {"n": chance.whole(1, 120), "says": chance.one_of(("busy", "full", "unclear"))}
    if chance.happens(0.3):
        fault["times"] = chance.whole(2, 30)
    return fault
