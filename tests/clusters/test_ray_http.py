"""What a bad answer of Ray's dashboard means. A server on this machine gives the answers that a real one cannot be
brought to give; what a real one does give is in test_ray.py and test_ray_head.py."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from agent.clusters import ray_delete
from agent.clusters.base import Ref, Refused, Submission, Unclear, Unreachable
from agent.clusters.ray import RayCluster
from agent.clusters.ray_http import last_line
from states.observation import Phase
from states.spec import Spec

SENT = Submission(name="j", fingerprint="12345678", owner="me", spec=Spec(command=("true",)))
WRAPPED = "RuntimeError: Request failed with status code {}: Traceback\nValueError: {}\n.\n"
MINE = {"submission_id": "j", "status": "RUNNING", "metadata": {"watchkeeper_fingerprint": "12345678",
        "watchkeeper_owner": "me"}}  # fmt: skip


class Server(HTTPServer):
    """answers: `GET /path` -> (status, text), or None to hang up. calls, heads: what it got, in order."""

    answers: dict[str, tuple[int, str] | None]
    calls: list[str]
    heads: list[dict[str, str]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        self.server.heads.append({name.lower(): value for name, value in self.headers.items()})
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.calls.append(f"{self.command} {self.path.partition('?')[0]}")
        found = self.server.answers.get(self.server.calls[-1], (404, "404: Not Found"))
        if found is None:
            self.connection.close()
            return
        data = found[1].encode("utf-8", "surrogateescape")
        self.send_response(found[0])
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the names that http.server calls

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    server.answers, server.calls, server.heads = {}, [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cluster(server: Server) -> RayCluster:
    return RayCluster("ray", {"address": f"http://127.0.0.1:{server.server_port}/behind/", "timeout_s": 5})


def given(server: Server, **answers: tuple[int, str] | None) -> None:
    """`given(server, POST_jobs=(200, ""))`; below the address's own path."""
    for call, answer in answers.items():
        method, _, what = call.partition("_")
        path = {"jobs": "/behind/api/jobs/", "job": "/behind/api/jobs/j", "nodes": "/behind/api/v0/nodes"}[
            what
        ]
        server.answers[f"{method} {path}"] = answer


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((400, "Traceback\nTypeError: metadata values must be strings"), Refused, "must be strings"),
        ((500, WRAPPED.format(400, "a bad selector")), Refused, "a bad selector"),
        ((500, WRAPPED.format(500, "no such folder")), Unclear, "no such folder"),
        ((500, "No available agent to submit job, please try again later."), Unreachable, "try again"),
        ((503, "upstream"), Unreachable, "upstream"),
        ((404, "404: Not Found"), Refused, "address"),
        ((401, ""), Refused, "let us in"),
        ((302, ""), Unclear, "may exist"),
        (None, Unclear, "may have been done"),
    ],
)
def test_a_submit_is_refused_only_by_who_understood_it(
    server: Server, cluster: RayCluster, answer: tuple[int, str] | None, error: type[Exception], words: str
) -> None:
    given(server, POST_jobs=answer)
    with pytest.raises(error, match=words):
        cluster.submit(SENT)


def test_a_taken_id_is_ours_or_not(server: Server, cluster: RayCluster) -> None:
    taken = (500, WRAPPED.format(400, "Job with submission_id j already exists. Please use a different one."))
    given(server, POST_jobs=taken, GET_job=(200, json.dumps(MINE)))
    assert cluster.submit(SENT).cluster_job_id == "j"
    given(server, GET_job=(200, json.dumps({**MINE, "metadata": None})))
    with pytest.raises(Refused, match="another job"):
        cluster.submit(SENT)


@pytest.mark.parametrize(
    "look",
    [
        lambda cluster: cluster.observe([Ref("j")]),
        lambda cluster: cluster.list(),
        lambda cluster: cluster.find("j"),
        lambda cluster: cluster.logs(Ref("j")),
        lambda cluster: cluster.stop(Ref("j")),
    ],
)
@pytest.mark.parametrize("answer", [(500, "Traceback\nTimeoutError"), (502, ""), (429, "slow down"), None])
def test_a_look_that_fails_says_nothing_of_any_job(
    server: Server, cluster: RayCluster, look: Callable[[RayCluster], Any], answer: tuple[int, str] | None
) -> None:
    given(server, GET_jobs=answer, GET_job=answer)
    with pytest.raises(Unreachable):
        look(cluster)


def test_a_record_that_comes_back_each_time_is_not_called_deleted(
    server: Server, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pause in ("SETTLE_S", "LOOK_AGAIN_S"):
        monkeypatch.setattr(ray_delete, pause, 0.0)
    given(server, GET_job=(200, json.dumps({**MINE, "status": "STOPPED"})), DELETE_job=(200, "{}"))
    with pytest.raises(Refused, match="anew") as told:
        cluster.delete(Ref("j"))
    assert told.value.retryable
    assert server.calls.count("DELETE /behind/api/jobs/j") == ray_delete.ROUNDS_MAX


def test_an_end_of_long_ago_is_removed_at_once(server: Server, cluster: RayCluster) -> None:
    over = {**MINE, "status": "FAILED", "driver_exit_code": 3, "end_time": 1_700_000_000_000}
    given(server, GET_job=(200, json.dumps(over)), DELETE_job=(200, "{}"))
    cluster.delete(Ref("j"))
    assert server.calls == ["GET /behind/api/jobs/j", "DELETE /behind/api/jobs/j"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("RuntimeError: Attempted to delete job 'j', but it is in a non-terminal state RUNNING.", Refused),
        ("TimeoutError", Unreachable),
    ],
)
def test_a_delete_that_fails_is_told(
    server: Server, cluster: RayCluster, words: str, error: type[Exception]
) -> None:
    over = {**MINE, "status": "STOPPED", "end_time": 1_700_000_000_000}
    given(server, GET_job=(200, json.dumps(over)), DELETE_job=(500, f"Traceback\n{words}\n"))
    with pytest.raises(error):
        cluster.delete(Ref("j"))


def test_only_what_tells_neither_a_submit_nor_a_code_is_left_over() -> None:
    left = {"submission_id": "j", "status": "FAILED", "start_time": None, "driver_exit_code": None}
    assert ray_delete.is_left_over(left)
    for real in ({"start_time": 1_700_000_000_000}, {"driver_exit_code": 0}, {"status": "STOPPED"}):
        assert not ray_delete.is_left_over({**left, **real})


def test_something_else_at_the_address_is_not_a_ray_without_jobs(server: Server, cluster: RayCluster) -> None:
    with pytest.raises(Unreachable, match="not Ray's"):
        cluster.find("j")
    given(server, GET_jobs=(200, "<html>welcome</html>"))
    with pytest.raises(Unclear):
        cluster.observe([Ref("j")])
    given(server, GET_jobs=(200, '{"jobs": []}'))
    with pytest.raises(Unclear, match="address"):
        cluster.observe([Ref("j")])


def test_nodes_that_are_not_told_keep_no_job_from_being_seen(server: Server, cluster: RayCluster) -> None:
    given(
        server,
        GET_jobs=(200, json.dumps([MINE, {"type": "DRIVER", "submission_id": None}])),
        GET_nodes=(500, "x"),
    )
    seen = cluster.observe([Ref("j"), Ref("k")])
    assert [seen[name].phase for name in ("j", "k")] == [Phase.running, Phase.gone]


def test_a_token_is_sent_and_never_shown(server: Server) -> None:
    address = f"http://127.0.0.1:{server.server_port}"
    options = {"address": address, "token": "RAY_AUTH_TOKEN", "headers": {"X-Tenant": "lab"}}
    server.answers["GET /api/jobs/"] = (403, "wrong token")
    cluster = RayCluster("ray", {**options, "secrets": {"RAY_AUTH_TOKEN": "hush-hush"}.get})
    with pytest.raises(Refused, match="wk key set RAY_AUTH_TOKEN") as told:
        cluster.list()
    assert told.value.cause == "auth.denied"
    assert "hush" not in str(told.value)
    (head,) = server.heads
    assert (head["authorization"], head["x-tenant"]) == ("Bearer hush-hush", "lab")
    assert cluster.capabilities.needs_credentials == ("RAY_AUTH_TOKEN",)
    with pytest.raises(Refused, match="not set"):
        RayCluster("ray", options).list()
    assert len(server.heads) == 1


def test_the_doctor_tells_another_service_from_ray(server: Server, cluster: RayCluster) -> None:
    server.answers["GET /behind/api/version"] = (200, '{"name": "something"}')
    (row,) = cluster.doctor()
    assert (row.level, row.said) == ("wrong", "what answers there is not Ray's dashboard")
    server.answers["GET /behind/api/version"] = (200, '{"ray_version": "1.13.0"}')
    rows = {row.name: row.level for row in cluster.doctor()}
    assert (rows["dashboard"], rows["jobs"]) == ("warn", "wrong")


def test_the_last_line_is_the_one_that_tells() -> None:
    assert last_line(WRAPPED.format(400, "why not")) == "ValueError: why not"
    assert last_line("\n\n") == "(nothing)"
    assert len(last_line("x" * 5000)) == 300
