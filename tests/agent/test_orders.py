"""Standing orders as files: both layers, every fault with its line, no credential, and where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.app import build
from agent.orders import load_orders, read_orders, site_file
from agent.yamlfile import UserFileError

WHOLE = """\
language: zh
questions:
  looks-off: {default: stop, answer_s: 7200}
  capacity: {answer_s: 600}
budgets: {restarts: 1, gpu_hours: 64, model_usd: 0.02}
stop_when:
  - {metric: loss, plateau_steps: 5000, min_delta: 0.01}
quiet_hours: {from: 22:00, to: 07:30, zone: Asia/Shanghai}
work:
  - {purpose: tuning, lane: idle, image: "lab/tune:4"}
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A home and a site, both without orders."""
    for folder in ("home/config", "site/watchkeeper"):
        (tmp_path / folder).mkdir(parents=True)
    return {"WATCHKEEPER_HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "site")}


def write(env: dict[str, str], *, person: str = "", site: str = "") -> None:
    if person:
        Path(env["WATCHKEEPER_HOME"], "config", "orders.yaml").write_text(person, encoding="utf-8")
    if site:
        Path(env["XDG_CONFIG_DIRS"], "watchkeeper", "orders.yaml").write_text(site, encoding="utf-8")


def test_no_file_is_no_order(env: dict[str, str]) -> None:
    loaded = load_orders(env)
    assert loaded.sources == {}
    assert loaded.standing.language is None


def test_everything_that_may_stand_in_a_file_is_read(env: dict[str, str]) -> None:
    write(env, person=WHOLE)
    standing, sources = load_orders(env)
    assert standing.language == "zh"
    assert standing.deadline_s("looks-off") == (7200, "your standing order")
    assert standing.restarts() == (1, "your standing order")
    assert standing.model_usd() == 0.02
    assert standing.quiet_hours is not None
    assert (standing.quiet_hours.begin, standing.quiet_hours.end) == ("22:00", "07:30")
    preferred = standing.preferred("image", "Tuning")
    assert preferred is not None
    assert preferred.value == "lab/tune:4"
    assert [c.in_words() for c, _ in standing.stop_when(gpu=8)] == [
        "loss no better by more than 0.01 in 5000 steps",
        "64 GPU-hours used",
    ]
    assert sources["questions.looks-off.answer_s"][1].endswith("home/config/orders.yaml:3")


def test_the_persons_file_goes_before_the_sites(env: dict[str, str]) -> None:
    write(env, person="budgets: {restarts: 5}\n", site="budgets: {restarts: 0, gpu_hours: 9}\nlanguage: zh\n")
    standing, sources = load_orders(env)
    assert standing.restarts() == (5, "your standing order")
    assert standing.language == "zh"
    assert [whose for _, whose in standing.stop_when(gpu=1)] == ["your site's standing order"]
    assert sources["budgets.restarts"][1].endswith("home/config/orders.yaml:1")


def test_the_first_site_that_has_a_file_counts_and_one_of_its_own_reads_none(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders[1:]:
        (folder / "watchkeeper").mkdir(parents=True)
        (folder / "watchkeeper" / "orders.yaml").write_text("language: en\n", encoding="utf-8")
    named = ":".join(map(str, folders))
    assert site_file({"XDG_CONFIG_DIRS": named}) == folders[1] / "watchkeeper" / "orders.yaml"
    assert site_file({"WATCHKEEPER_HOME": str(tmp_path)}) is None
    assert site_file({"XDG_CONFIG_DIRS": "relative"}) is None


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("language: en\nquestions:\n  capcity: {answer_s: 5}\n", 3, "did you mean 'capacity'?"),
        ("language: en\nbudget: {restarts: 1}\n", 2, "unknown field 'budget'; did you mean 'budgets'?"),
        ("budgets:\n  restarts: many\n", 2, "whole number"),
        ("questions:\n  unsettled:\n    default: again\n", 3, "no order can know"),
        (
            "stop_when:\n  - {wall_s: 5}\n  - {metric: acc, plateau_steps: 5}\n",
            3,
            "which way is a gain of 'acc'",
        ),
        ("quiet_hours:\n  from: 22:00\n  to: 07:00\n  zone: Nowhere/Land\n", 4, "there is no time zone"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserFileError) as caught:
        read_orders(file)
    (fault,) = caught.value.faults
    assert fault.startswith(f"{file}:{line}: ")
    assert said in fault


def test_a_credential_is_refused_with_its_line_and_not_repeated(tmp_path: Path) -> None:
    """B4: in an image, a proxy, or under a name that tells."""
    secret = "pa55-" + "word-of-kim"
    file = tmp_path / "orders.yaml"
    proxy = f"questions:\n  network:\n    default: proxy\n    value: http://kim:{secret}@proxy.example:3128\n"
    file.write_text(proxy, encoding="utf-8")
    with pytest.raises(UserFileError) as caught:
        read_orders(file)
    assert f"{file}:4: " in str(caught.value)
    assert secret not in str(caught.value)


def test_what_only_a_site_may_not_say_is_refused_in_its_place(env: dict[str, str]) -> None:
    write(env, site="questions:\n  looks-off: {default: stop}\n")
    with pytest.raises(UserFileError, match=r"orders.yaml:2: 'stop' is the person's own to order"):
        load_orders(env)


def test_what_the_model_may_cost_is_as_ordered(env: dict[str, str]) -> None:
    """The order goes before the settings, which hold where it says nothing."""
    write(env, person="budgets: {model_usd: 0.01}\n")
    settings = build(env).model_settings
    assert (settings.job_budget_usd, settings.day_budget_usd) == (0.01, 2.0)


def test_the_program_speaks_as_ordered(env: dict[str, str]) -> None:
    write(env, person="language: zh\n")
    assert build(env).service.language == "zh"
