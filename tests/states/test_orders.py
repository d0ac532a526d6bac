"""Standing orders: they make a default safer or quicker, name themselves, and allow nothing that the rules forbid."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from states import reports
from states.acceptable import filled_in
from states.actions.asking import with_deadline
from states.job import Job, State
from states.orders import Layer, Orders, Standing, faults
from states.questions import QUESTIONS, Act, Question
from states.spec import Request
from tests.states import builders as b

YOURS, SITES = "your standing order", "your site's standing order"


def standing(person: dict[str, Any] | None = None, site: dict[str, Any] | None = None) -> Standing:
    return Standing(person=Orders.model_validate(person or {}), site=Orders.model_validate(site or {}))


def wrong(orders: dict[str, Any], layer: Layer = "person") -> list[str]:
    return [
        f"{'.'.join(map(str, place))}: {said}" for place, said in faults(Orders.model_validate(orders), layer)
    ]


# --- what an order may not say -----------------------------------------------------------------------------


def test_no_order_of_anybody_reaches_a_resend_a_false_mend_or_a_stop_without_leave() -> None:
    """Every option of every question: what is left is safe, or the person's own explicit word (I1, A7, A10, D4)."""
    allowed: dict[Layer, set[tuple[str, str]]] = {"person": set(), "site": set()}
    for layer, found in allowed.items():
        for kind, template in QUESTIONS.items():
            for option in template.options:
                order = {"default": option.key, **({"value": "4"} if option.value else {})}
                if not wrong({"questions": {kind: order}}, layer):
                    found.add((kind, option.key))
    acts = {(kind, key, QUESTIONS[kind].default == key) for kind, key in allowed["site"]}
    for kind, key, is_default in acts:
        act = next(o.act for o in QUESTIONS[kind].options if o.key == key)
        assert is_default or act in (Act.give_up, Act.keep, Act.build), (kind, key)
    for kind, key in allowed["person"]:
        act = next(o.act for o in QUESTIONS[kind].options if o.key == key)
        assert act not in (Act.resend, Act.recheck), (kind, key)
    assert ("looks-off", "stop") in allowed["person"] - allowed["site"]
    assert ("capacity", "reduce") in allowed["person"] - allowed["site"]
    assert ("clear-case", "stop") not in allowed["person"]
    assert ("smoke-failed", "as-is") not in allowed["person"]
    assert ("unsettled", "again") not in allowed["person"]
    assert allowed["site"] < allowed["person"]
    assert all((kind, template.default) in allowed["site"] for kind, template in QUESTIONS.items())


@pytest.mark.parametrize(
    ("orders", "said"),
    [
        (
            {"questions": {"looks-off": {"default": "halt"}}},
            "'halt' is no option of 'looks-off'; known here: keep, stop",
        ),
        ({"questions": {"looks-off": {"default": "kep"}}}, "did you mean 'keep'?"),
        ({"questions": {"image": {"default": "image"}}}, "needs a value: add `value: <image>`"),
        ({"questions": {"light": {"default": "as-is", "value": "x"}}}, "takes no value"),
        ({"questions": {"light": {"value": "x"}}}, "a value belongs to a `default`"),
        ({"questions": {"capacity": {"default": "reduce", "value": "few"}}}, "needs a whole number of GPUs"),
        ({"questions": {"capacity": {}}, "capacity": {"wait_s": 5}}, "keep one of the two"),
    ],
)
def test_an_order_that_could_not_be_carried_out_is_told(orders: dict[str, Any], said: str) -> None:
    assert [line for line in wrong(orders) if said in line], wrong(orders)


@pytest.mark.parametrize(
    "orders",
    [
        {"capacity": {"wait_s": 60, "reduce_to": 2}},
        {"stop_when": [{"metric": "loss", "above": 9}]},
        {"work": [{"purpose": "tuning", "lane": "idle"}]},
    ],
)
def test_a_site_neither_shrinks_nor_judges_nor_risks_a_persons_run(orders: dict[str, Any]) -> None:
    assert wrong(orders) == []
    assert len(wrong(orders, "site")) == 1
    assert (
        wrong({"stop_when": [{"wall_s": 9}], "budgets": {"gpu_hours": 4}, "capacity": {"wait_s": 9}}, "site")
        == []
    )


@pytest.mark.parametrize(
    ("orders", "said"),
    [
        ({"questions": {"capcity": {}}}, "did you mean 'capacity'?"),
        ({"questions": {"light": {"answer_s": 0}}}, "greater than 0"),
        ({"budgets": {"restarts": -1}}, "greater than or equal to 0"),
        ({"quiet_hours": {"from": "24:00", "to": "08:00"}}, "must be a time of day"),
        ({"work": [{"purpose": "x"}]}, "give `lane` or `image`"),
        ({"delete": True}, "Extra inputs"),
    ],
)
def test_a_malformed_order_is_refused(orders: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=r".+") as caught:
        Orders.model_validate(orders)
    assert said in str(caught.value)


# --- what is followed, and whose it was --------------------------------------------------------------------


def test_the_persons_order_goes_before_the_sites_field_by_field() -> None:
    orders = standing(
        {"questions": {"light": {"answer_s": 9}}}, {"questions": {"light": {"default": "dont-submit"}}}
    )
    assert orders.deadline_s("light") == (9, YOURS)
    choice, whose = orders.default_of("light", gpu=0, may_stop=True) or (None, "")
    assert choice is not None
    assert (choice.option.key, whose) == ("dont-submit", SITES)
    assert orders.deadline_s("image") is None


def test_a_run_that_a_request_describes_is_filled_in_where_it_is_silent() -> None:
    orders = standing(
        {
            "work": [{"purpose": "Tuning", "image": "lab/t:2"}, {"purpose": "*", "lane": "idle"}],
            "budgets": {"restarts": 1},
        },
        {"work": [{"purpose": "tuning", "image": "lab/site:1", "lane": "normal"}]},
    )
    request, words = filled_in(Request(command=("x",), purpose="tuning"), orders)
    assert (request.image, request.lane, request.max_restarts) == ("lab/t:2", "normal", 1)
    assert words == (
        f"image lab/t:2, by {YOURS}",
        f"lane normal, by {SITES}",
        f"at most 1 restarts, by {YOURS}",
    )
    stated = Request(command=("x",), purpose="tuning", image="own:1", lane="idle", max_restarts=3)
    assert filled_in(stated, orders) == (stated, ())


def blocked(kind: str, orders: Standing, **changes: Any) -> Job:
    """A preflight that asks this, under these orders."""
    job = b.new_job(orders=orders, **changes)
    return b.led(job, b.delegated("capacity"), b.check_is("capacity", "ask", kind))


REDUCE = standing({"capacity": {"wait_s": 1200, "reduce_to": 2}})


def test_capacity_is_waited_for_and_then_reduced_as_ordered_and_every_place_says_so() -> None:
    job = blocked("capacity", REDUCE, request={"gpu": 8})
    (question,) = job.open_questions
    assert (question.answer_by - question.asked_at).total_seconds() == 1200
    assert (question.default.key, question.preset_value) == ("reduce", "2")
    assert f"(default, by {YOURS})" in reports.asked(job, [question])
    step = b.take(job, b.deadline_passed()(job, b.after(9)))
    assert step.job.spec.gpu == 2
    assert step.said.endswith(f"default reduce, by {YOURS}")
    told = [effect.text for effect in step.effects if effect.kind == "report"]
    assert f"reduce to this many GPUs per replica: 2, by {YOURS}" in told[0]
    assert step.job.state is State.preflight


def test_an_order_only_ever_reduces_so_that_it_cannot_go_round() -> None:
    """It was reduced and still does not fit: asked again, and the built-in default queues it."""
    job = blocked("capacity", REDUCE, request={"gpu": 2})
    assert job.open_questions[0].default.key == "wait"


def looking_off(job: Job) -> Job:
    """A process of it ended long ago and it still runs: asked about."""
    off = b.led(job, b.log(b.trouble("code.exception", fatal=True), lines=2000), start_s=900)
    assert [question.kind for question in off.open_questions] == ["looks-off"]
    return off


def test_an_order_to_stop_is_the_persons_explicit_word_and_is_named_as_the_reason() -> None:
    orders = standing({"questions": {"looks-off": {"default": "stop", "answer_s": 60}}})
    job = looking_off(b.in_running(orders=orders))
    step = b.take(job, b.deadline_passed()(job, b.after(999)))
    assert step.job.state is State.stopping
    assert step.job.stop is not None
    assert (step.job.stop.by, step.job.stop.rule) == (YOURS, "G2")


def test_a_watched_job_is_not_stopped_by_an_order_nor_by_a_built_in_default() -> None:
    """A10: without leave in the request, no deadline stops it; E11's default becomes: keep waiting."""
    orders = standing({"questions": {"looks-off": {"default": "stop"}}})
    job = looking_off(b.taken_over(orders=orders))
    assert job.open_questions[0].default.key == "keep"
    assert orders.default_of("download", gpu=0, may_stop=False) is None


def test_a_child_run_keeps_the_answers_and_not_what_ends_the_run_it_is_for() -> None:
    orders = standing(
        {"questions": {"light": {"answer_s": 9}}, "stop_when": [{"wall_s": 9}], "budgets": {"gpu_hours": 1}}
    )
    child = orders.for_a_child()
    assert child.stop_when(gpu=8) == ()
    assert child.deadline_s("light") == (9, YOURS)


def test_in_chinese_too() -> None:
    job = blocked("capacity", REDUCE, request={"gpu": 8}, language="zh")
    assert "(默认, 按你的长期指示)" in reports.asked(job, job.open_questions)


def test_the_built_in_default_of_a_dragging_download_stops_no_job_that_is_only_watched() -> None:
    """E11 stops the download, A10 does not stop somebody else's job: it is kept, and the question says why."""
    asked = Question(id="x/1", number=1, kind="download", topic="t", asked_at=b.T0, answer_by=b.T0)
    ours, theirs = with_deadline(b.in_running(), asked), with_deadline(b.taken_over(), asked)
    assert (ours.default.key, theirs.default.key) == ("without", "wait")
    assert theirs.preset_by == "it was handed over to be watched"
    assert with_deadline(b.taken_over(may_stop=True), asked).default.key == "without"
