"""The HTTP API against the product itself: who may do what, route by route, and what each answers.

A real server, a desk whose clock jumps; nothing of ours is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent.clock import SystemClock
from agent.people import Role
from agent.web.app import create_app
from states.observation import Capacity
from tests.agent.fakes import ENDLESS, GOOD, Desk
from tests.web.bench import asks, people_of
from tests.web.conftest import Open

READ, ANSWER, OPERATE = Role.read, Role.answer, Role.operate

ROLES: dict[tuple[str, str], Role | None] = {
    ("GET", "/login"): None,
    ("POST", "/login"): None,
    ("POST", "/logout"): None,
    ("POST", "/language"): None,
    ("GET", "/healthz"): None,
    ("GET", "/favicon.ico"): None,
    ("GET", "/"): READ,
    ("GET", "/part/board"): READ,
    ("GET", "/inbox"): READ,
    ("GET", "/part/inbox"): READ,
    ("GET", "/runs/{run}"): READ,
    ("GET", "/part/runs/{run}/now"): READ,
    ("GET", "/part/runs/{run}/told"): READ,
    ("GET", "/part/runs/{run}/asked"): READ,
    ("GET", "/part/runs/{run}/log"): READ,
    ("GET", "/capacity"): READ,
    ("GET", "/part/capacity/{cluster}"): READ,
    ("GET", "/library"): READ,
    ("GET", "/api"): READ,
    ("GET", "/live/all"): READ,
    ("GET", "/live/runs/{run}"): READ,
    ("GET", "/live/log/{run}"): READ,
    ("POST", "/questions/{run}/{number}"): ANSWER,
    ("POST", "/runs/{run}/stop"): OPERATE,
    ("POST", "/runs/{run}/delete"): OPERATE,
    ("GET", "/delegate"): OPERATE,
    ("POST", "/delegate"): OPERATE,
    ("GET", "/api/v1/openapi.json"): READ,
    ("GET", "/api/v1/runs"): READ,
    ("POST", "/api/v1/runs"): OPERATE,
    ("POST", "/api/v1/lint"): READ,
    ("POST", "/api/v1/watch"): OPERATE,
    ("GET", "/api/v1/runs/{run}"): READ,
    ("GET", "/api/v1/runs/{run}/why"): READ,
    ("GET", "/api/v1/runs/{run}/reports"): READ,
    ("GET", "/api/v1/runs/{run}/wait"): READ,
    ("POST", "/api/v1/runs/{run}/stop"): OPERATE,
    ("POST", "/api/v1/runs/{run}/delete"): OPERATE,
    ("GET", "/api/v1/questions"): READ,
    ("POST", "/api/v1/questions/{run}/{number}"): ANSWER,
    ("GET", "/api/v1/capacity"): READ,
    ("GET", "/api/v1/jobs"): READ,
    ("GET", "/api/v1/jobs/{job}"): READ,
    ("GET", "/api/v1/runs/{job}/logs"): READ,
    ("GET", "/api/v1/jobs/{job}/logs"): READ,
    ("GET", "/api/v1/runs/{job}/events"): READ,
    ("GET", "/api/v1/jobs/{job}/events"): READ,
    ("GET", "/api/v1/library"): READ,
}
"""Every route, and the least role that it takes; None: anybody."""


# --- who may do what -----------------------------------------------------------------------------------------


def test_every_route_is_in_the_matrix(desk: Callable[..., Desk], tmp_path: Path) -> None:
    people, _ = people_of(tmp_path)
    app = create_app(desk().service, people, workspace=tmp_path)
    found: set[tuple[str, str]] = set()

    def walk(routes: Any, prefix: str) -> None:
        for route in routes:
            inner = getattr(route, "routes", None) or getattr(
                getattr(route, "original_router", None), "routes", None
            )
            if inner and not getattr(route, "methods", None):
                walk(inner, prefix)
            elif getattr(route, "methods", None):
                found.update((method, route.path) for method in route.methods if method != "HEAD")

    walk(app.routes, "")
    assert found == set(ROLES)


@pytest.mark.parametrize(("method", "path"), [key for key, role in ROLES.items() if role is not None])
def test_a_route_takes_its_role_and_no_less(
    desk: Callable[..., Desk], tmp_path: Path, method: str, path: str
) -> None:
    from starlette.testclient import TestClient

    people, tokens = people_of(tmp_path)
    app = create_app(desk().service, people, workspace=tmp_path)
    app.state.here.leaving.set()  # streams end at once
    wanted = ROLES[method, path]
    url = path.format(run="nobody-1", number=1, job="nobody-1", cluster="lab")
    with TestClient(app, follow_redirects=False, raise_server_exceptions=False) as client:
        nobody = client.request(method, url)
        assert nobody.status_code in ((401,) if "/api/v1" in path else (303,)), nobody.text
        if nobody.status_code == 303:
            assert nobody.headers["location"] == "/login"
        for role in Role:
            seen = client.request(method, url, headers={"Authorization": f"Bearer {tokens[role]}"})
            assert (seen.status_code == 403) is not role.covers(wanted), (role, seen.status_code, seen.text)
            assert seen.status_code not in (401, 500)


# --- runs ----------------------------------------------------------------------------------------------------


def test_delegate_is_idempotent_by_its_key_and_read_back(opened: Callable[..., Open]) -> None:
    at = opened()
    body = {"command": "python train.py", "name": "digits", "outputs": ["out/best.pt"]}
    first = at.ask("POST", "/runs", json=body, headers={"Idempotency-Key": "night-1"})
    again = at.ask("POST", "/runs", json=body, headers={"Idempotency-Key": "night-1"})
    assert (first.status_code, again.status_code) == (201, 200)
    run = first.json()["run"]["id"]
    assert again.json() == {"run": again.json()["run"], "new": False}
    assert again.json()["run"]["id"] == run
    assert [row["id"] for row in at.ask("GET", "/runs").json()] == [run]
    at.desk.run()
    ended = at.ask("GET", f"/runs/{run}").json()
    assert (ended["state"], ended["owner"]) == ("succeeded", "kim")
    why = at.ask("GET", f"/runs/{run}/why").json()
    assert why[0]["event"] == "delegated"
    assert "olga" in why[0]["said"]
    assert all(row["rule"] for row in why if row["outcome"] == "moved")
    assert at.ask("GET", f"/runs/{run}/reports").json()[-1]["stage"] == "wrap-up"
    assert "step 300/500" in at.ask("GET", f"/runs/{run}/logs", params={"lines": 1}).json()["text"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"command": "x", "gpus": 1}, 422, "gpus"),
        ({}, 422, "command"),
        ({"command": "x", "cluster": "moon"}, 409, "configured: lab"),
        ({"command": "x", "policy": {"poll_s": -1}}, 409, "poll_s"),
        ({"command": "export HF_TOKEN=" + "hf_" + "Ab3d" * 9}, 409, "credential"),
    ],
)
def test_a_request_that_cannot_be_is_refused_with_its_reason(
    opened: Callable[..., Open], body: dict[str, Any], status: int, words: str
) -> None:
    at = opened()
    said = at.ask("POST", "/runs", json=body)
    assert said.status_code == status
    assert words in said.json()["error"]["message"]
    assert "Ab3dAb3d" not in said.text
    assert at.ask("GET", "/runs").json() == []


def test_the_lint_speaks_before_anything_is_stored(opened: Callable[..., Open]) -> None:
    at = opened()
    said = at.ask(
        "POST", "/lint", role="read", json={"command": "pip install torch && python -m trainer"}
    ).json()
    assert ("package_install", "refuse") in [(each["kind"], each["level"]) for each in said["findings"]]
    assert at.ask("GET", "/runs").json() == []


def test_stop_and_delete_go_through_the_machine(opened: Callable[..., Open]) -> None:
    at = opened(ENDLESS)
    run = at.desk.delegate()
    at.desk.run_to(run, "running")
    assert at.ask("POST", f"/runs/{run}/delete", json={"name": run}).status_code == 409
    stopped = at.ask("POST", f"/runs/{run}/stop", json={"reason": "enough"})
    assert stopped.json()["state"] == "stopping"
    at.desk.run_to(run, "stopped")
    wrong = at.ask("POST", f"/runs/{run}/delete", json={"name": "digits"})
    assert wrong.status_code == 409
    assert at.desk.cluster.count("delete") == 0
    assert at.ask("POST", f"/runs/{run}/delete", json={"name": run}).status_code == 200
    at.desk.settle()
    assert at.desk.cluster.count("delete") == 1


def test_a_job_that_is_there_is_watched(opened: Callable[..., Open]) -> None:
    at = opened()
    at.desk.cluster.add("theirs", GOOD)
    taken = at.ask("POST", "/watch", json={"job": "theirs"})
    assert taken.status_code == 201
    assert taken.json()["run"]["request"]["existing"]["name"] == "theirs"
    assert at.ask("POST", "/watch", json={"job": "nothing"}).status_code == 404


# --- questions -----------------------------------------------------------------------------------------------


def test_a_question_is_answered_once_whoever_asks_again(opened: Callable[..., Open]) -> None:
    at = opened(checks={"image": asks})
    run = at.desk.delegate()
    at.desk.run_to(run, "blocked")
    (question,) = at.ask("GET", "/questions", role="read").json()
    assert question["run"] == run
    assert question["default"] == "dont-submit"
    assert {option["key"] for option in question["options"]} == {"image", "again", "dont-submit"}
    path = f"/questions/{question['id']}"
    unfit = at.ask("POST", path, role="answer", json={"reply": "image"})
    assert unfit.status_code == 409
    secret = at.ask("POST", path, role="answer", json={"reply": "image=" + "hf_" + "Ab3d" * 9})
    assert secret.status_code == 409
    assert "Ab3d" not in secret.text
    reply = {"json": {"reply": "image=team/base:3"}, "role": "answer", "headers": {"Idempotency-Key": "k1"}}
    first, again = at.ask("POST", path, **reply), at.ask("POST", path, **reply)
    assert (first.json()["duplicate"], again.json()["duplicate"]) == (False, True)
    late = at.ask("POST", path, json={"reply": "dont-submit"})
    assert late.status_code == 409
    assert "answered" in late.json()["error"]["message"]
    assert at.desk.job(run).spec.image == "team/base:3"
    assert at.desk.job(run).questions[0].by == "ann"


def test_of_many_at_once_one_answer_holds(opened: Callable[..., Open]) -> None:
    at = opened(checks={"image": asks})
    run = at.desk.delegate()
    at.desk.run_to(run, "blocked")
    with ThreadPoolExecutor(8) as pool:
        replies = [f"image=team/base:{n}" for n in range(8)]
        codes = list(
            pool.map(
                lambda said: at.ask("POST", f"/questions/{run}/1", json={"reply": said}).status_code, replies
            )
        )
    assert sorted(codes) == [200] + [409] * 7
    assert at.desk.job(run).spec.image == replies[codes.index(200)].removeprefix("image=")


# --- waiting -------------------------------------------------------------------------------------------------


def test_wait_has_a_cursor_and_ends_with_what_was_waited_for(opened: Callable[..., Open]) -> None:
    at = opened(checks={"image": asks})
    at.desk.use_clock(SystemClock())
    run = at.desk.delegate()
    begun = at.ask("GET", f"/runs/{run}/wait", params={"timeout_s": 0}).json()
    assert [row["kind"] for row in begun["rows"]] == ["delegated"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(
            at.ask,
            "GET",
            f"/runs/{run}/wait",
            params={"after": begun["seq"], "until": "question", "timeout_s": 30},
        )
        at.desk.settle()
        waited = waiting.result().json()
    assert waited["reached"]
    assert [q["number"] for q in waited["job"]["open_questions"]] == [1]
    assert waited["rows"][0]["seq"] == begun["seq"] + 1
    none = at.ask("GET", f"/runs/{run}/wait", params={"after": waited["seq"], "timeout_s": 0.1}).json()
    assert (none["reached"], none["rows"], none["seq"]) == (False, [], waited["seq"])
    assert at.ask("GET", f"/runs/{run}/wait", params={"until": "never"}).status_code == 422


def test_many_who_wait_keep_nobody_from_an_answer(opened: Callable[..., Open]) -> None:
    at = opened(ENDLESS)
    at.desk.use_clock(SystemClock())
    run = at.desk.delegate()
    path = f"/runs/{run}/wait"
    params = {"after": 10_000, "timeout_s": 3}
    with ThreadPoolExecutor(60) as pool:
        waits = [pool.submit(at.ask, "GET", path, params=params) for _ in range(60)]
        assert at.ask("GET", "/runs").status_code == 200
        assert not any(wait.done() for wait in waits), "it was answered while all the others waited"
        assert {wait.result().json()["reached"] for wait in waits} == {False}


# --- clusters ------------------------------------------------------------------------------------------------


def test_capacity_jobs_and_events_come_from_the_cluster(opened: Callable[..., Open]) -> None:
    at = opened(ENDLESS)
    run = at.desk.delegate()
    at.desk.run_to(run, "running")
    free = at.ask("GET", "/capacity", role="read").json()
    assert free.keys() >= {"cluster", *Capacity.model_fields}
    (line,) = at.ask("GET", "/jobs").json()
    assert at.ask("GET", f"/jobs/{line['cluster_job_id']}").json()["phase"] == "running"
    assert at.ask("GET", f"/runs/{run}/events").status_code == 200
    assert at.ask("GET", "/jobs/nobody").status_code == 404
    assert at.ask("GET", "/capacity", params={"cluster": "moon"}).status_code == 409
    assert at.ask("GET", "/library").json() == []


def test_what_looks_like_a_credential_leaves_in_no_answer(opened: Callable[..., Open]) -> None:
    from agent.redaction import Redactor

    leaky = ENDLESS._replace(log=((1.0, "step 1/9 loss 1 key=swordfish-7788"),))
    at = opened(leaky, redact=Redactor({"LAB_KEY": "swordfish-7788"}).text)
    run = at.desk.delegate()
    at.desk.run_to(run, "running")
    at.desk.clock.step(5)
    seen = at.ask("GET", f"/runs/{run}/logs").json()["text"]
    assert "step 1/9" in seen
    assert "swordfish" not in seen


def test_the_api_describes_itself(opened: Callable[..., Open]) -> None:
    told = opened().ask("GET", "/openapi.json", role="read").json()
    paths = {(method.upper(), path) for path, methods in told["paths"].items() for method in methods}
    assert paths == {key for key in ROLES if key[1].startswith("/api/v1/") and "openapi" not in key[1]}
    assert all(
        each["summary"] and each["description"] for way in told["paths"].values() for each in way.values()
    )
