"""The page of `wk serve` in a real Chromium: delegate, follow, answer, defaults, two people, and how it looks.

The jobs are real processes of the local cluster. The pictures of the docs are taken here (`WATCHKEEPER_PICTURES=1`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.cli.program import Wk
from tests.web.bench import DOCS, PICTURES, Served, need_a_browser
from tests.web.conftest import Reader

TRAINING = """for i in $(seq 1 40); do
  echo "step $i/40 loss 0.$((99 - 2 * i)) acc 0.$((10 + 2 * i))"; sleep 0.2
done
mkdir -p out; echo done > out/best.txt"""
MISSING = "python3 train.py --epochs 3"
"""Asked about before it is submitted: there is no such file."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    need_a_browser()
    made = Served(Wk(tmp_path_factory.mktemp("served") / "wk"))
    yield made
    said = made.close()
    assert "Traceback" not in said
    assert made.page.tokens["operate"] not in said


def picture(tab: Any, name: str) -> None:
    """For the docs."""
    if PICTURES:
        DOCS.mkdir(exist_ok=True)
        size = tab.viewport_size
        end = tab.evaluate("Math.ceil(document.querySelector('main').getBoundingClientRect().bottom)")
        shown = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], end + 8)}
        tab.screenshot(path=DOCS / f"{name}.png", animations="disabled", clip=shown)


def fill_in(tab: Any, url: str, command: str, name: str, more: str = "") -> None:
    tab.goto(f"{url}/delegate")
    tab.get_by_label("Command").fill(command)
    tab.get_by_label("Name", exact=True).fill(name)
    tab.get_by_label("Outputs").fill("out/best.txt" if command == TRAINING else "")
    tab.get_by_label("Other fields").fill(more)
    tab.get_by_role("button", name="Look it over").click()


def delegated(tab: Any, url: str, command: str, name: str, more: str = "") -> str:
    """The id of a run that was delegated on the page."""
    fill_in(tab, url, command, name, more)
    tab.get_by_role("button", name="Delegate it").click()
    tab.wait_for_url("**/runs/*")
    return str(tab.url.rpartition("/")[2])


def newest(served: Served) -> str:
    """The id of the newest run; one is made where there is none."""
    made = {"command": "echo step 1/1", "name": "first"}
    runs = served.page.ask("GET", "/runs").json()
    return str(runs[0]["id"] if runs else served.page.ask("POST", "/runs", json=made).json()["run"]["id"])


def test_the_login_link_lets_in_once_and_leaves_the_address(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab = reader(served.page, "", expects=("401",))
    tab.goto(served.page.url)
    expect(tab).to_have_url(f"{served.page.url}/login")
    tab.get_by_label("Your token").fill("wk_nobody")
    tab.get_by_role("button", name="Log in").click()
    expect(tab.get_by_role("alert")).to_have_text("That token is not known here.")
    tab.goto(served.login)
    expect(tab).to_have_url(f"{served.page.url}/")
    expect(tab.get_by_text("No runs yet.")).to_be_visible()
    assert "#" not in tab.evaluate("location.href")
    (cookie,) = tab.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    tab.get_by_role("button", name="Log out").click()
    tab.goto(f"{served.page.url}/inbox")
    expect(tab).to_have_url(f"{served.page.url}/login")


def test_delegate_and_follow_live_to_the_end(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab, board = reader(served.page), reader(served.page, "read")
    fill_in(tab, served.page.url, TRAINING, "digits")
    expect(tab.get_by_role("heading", name="What was found")).to_be_visible()
    workspace = tab.get_by_label("Workspace", exact=True)
    folder = workspace.input_value()
    workspace.fill("/data/kim/digits")
    picture(tab, "web-delegate")
    workspace.fill(folder)
    tab.get_by_role("button", name="Delegate it").click()
    tab.wait_for_url("**/runs/*")
    run = tab.url.rpartition("/")[2]
    # Neither page is loaded anew from here on.
    row = board.locator(f"#row-{run}")
    expect(row).to_contain_text("/40")
    expect(tab.locator("#now .chip")).to_have_text("running")
    expect(tab.locator("#lines div").nth(12)).to_contain_text("step")
    expect(tab.locator("#now progress")).to_be_visible()
    expect(tab.locator("#states [aria-current=step]")).to_have_attribute("data-state", "running")
    expect(tab.locator("#curves figure").first.locator("polyline")).to_be_visible()
    expect(row.locator("progress")).to_be_visible()
    picture(tab, "web-run")
    expect(tab.locator("#now .chip")).to_have_text("succeeded")
    expect(tab.locator("#lines div").last).to_contain_text("step 40/40")
    expect(tab.locator("#lines div")).to_have_count(40)
    expect(tab.locator("#artifacts")).to_contain_text("out/best.txt")
    expect(tab.locator("#decisions td.rule").filter(has_text="F2").first).to_be_visible()
    expect(tab.locator("#reports article").first).to_contain_text("succeeded")
    expect(tab.locator("#timeline")).to_contain_text("collecting")
    expect(board.locator("#state-succeeded")).to_contain_text(run)
    assert board.locator("#state-running").count() == 0


def test_what_would_be_refused_cannot_be_delegated(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab = reader(served.page, expects=("422",))
    fill_in(tab, served.page.url, "pip install torch && python3 -m trainer", "installs")
    expect(tab.locator("#findings .refuse").first).to_contain_text("package install")
    assert tab.get_by_role("button", name="Delegate it").count() == 0
    fill_in(tab, served.page.url, "echo 1", "worse", more="gpus: 2")
    expect(tab.get_by_role("alert")).to_contain_text("did you mean 'gpu'")
    expect(tab.get_by_label("Command")).to_have_value("echo 1")


def test_a_question_is_answered_by_one_click(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab, inbox = reader(served.page), reader(served.page, "answer")
    inbox.goto(f"{served.page.url}/inbox")
    expect(inbox.get_by_text("No open questions.")).to_be_visible()
    run = delegated(tab, served.page.url, MISSING, "missing")
    card = inbox.locator("article", has_text=run)
    expect(card).to_contain_text("train.py")
    expect(card.locator("time[data-until]")).not_to_be_empty()
    expect(card.get_by_role("button", name="don't submit")).to_contain_text("default")
    picture(inbox, "web-questions")
    card.get_by_role("button", name="submit it as it is").click()
    expect(inbox.get_by_role("status").filter(has_text="Answered")).to_contain_text("submit it as it is")
    expect(card).to_have_count(0)
    expect(tab.locator("#now .chip")).to_have_text("failed")
    expect(tab.locator("#asked article")).to_have_count(0)
    expect(tab.locator("#lines .marked").first).to_contain_text("train.py")
    answered = next(q for q in served.page.ask("GET", f"/runs/{run}/why").json() if q["event"] == "answered")
    assert answered["action"] == "take_answer_and_check"


def test_the_default_is_taken_on_time(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab = reader(served.page)
    run = delegated(tab, served.page.url, MISSING, "silent", more="policy: {answer_s_no_submit: 2}")
    expect(tab.locator("#asked article")).to_contain_text("don't submit")
    expect(tab.locator("#now .chip")).to_have_text("not submitted")
    expect(tab.locator("#asked article")).to_have_count(0)
    rows = served.page.ask("GET", f"/runs/{run}/why").json()
    asked = next(datetime.fromisoformat(row["at"]) for row in rows if row["to"] == "blocked")
    ended = next(datetime.fromisoformat(row["at"]) for row in rows if row["to"] == "not_submitted")
    assert 2 <= (ended - asked).total_seconds() < 10


def test_of_two_who_answer_the_second_is_told_who_was_first(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    first, second = reader(served.page), reader(served.page, "answer", expects=("409",))
    run = delegated(first, served.page.url, MISSING, "two")
    expect(first.locator("#asked article")).to_be_visible()
    second.route("**/live/**", lambda route: route.fulfill(status=204))  # this page is behind
    second.goto(f"{served.page.url}/inbox")
    late = second.locator("article", has_text=run)
    expect(late).to_be_visible()
    first.locator("#asked").get_by_role("button", name="don't submit").click()
    expect(first.locator("#now .chip")).to_have_text("not submitted")
    late.get_by_role("button", name="submit it as it is").click()
    expect(second.locator("#said")).to_contain_text("Not taken")
    expect(second.locator("#said")).to_contain_text("dont-submit")
    expect(second.locator("#said")).to_contain_text("was first")
    run_now = served.page.ask("GET", f"/runs/{run}").json()
    assert run_now["state"] == "not_submitted"


def test_a_stop_asks_first_and_shows_the_end(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab = reader(served.page)
    delegated(tab, served.page.url, "for i in $(seq 1 900); do echo step $i/900; sleep 0.2; done", "long")
    expect(tab.locator("#now .chip")).to_have_text("running")
    assert not tab.get_by_role("button", name="Stop it").is_visible()
    tab.locator("summary", has_text="Stop it").click()
    tab.get_by_label("Why").fill("enough seen")
    tab.get_by_role("button", name="Stop it").click()
    expect(tab.locator("#now .chip")).to_have_text("stopped")
    expect(tab.locator("#told")).to_contain_text("enough seen")


def test_capacity_library_and_the_api_page(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab = reader(served.page, "read")
    tab.get_by_role("link", name="Capacity").click()
    expect(tab.locator("section", has_text="local")).to_contain_text("CPU cores")
    tab.get_by_role("link", name="Library").click()
    expect(tab.get_by_role("heading", name="Library")).to_be_visible()
    tab.get_by_role("link", name="API").click()
    expect(tab.locator(".operation", has_text="/runs/{run}/wait")).to_contain_text("cursor")
    assert tab.get_by_role("link", name="Delegate").count() == 0, "who may read may not delegate"


@pytest.mark.parametrize("path", ["/", "/inbox", "/delegate", "/capacity", "/library", "/api", "run"])
def test_it_fits_a_phone(served: Served, reader: Reader, path: str) -> None:
    tab = reader(served.page, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    if path == "run":
        path = f"/runs/{newest(served)}"
    tab.goto(served.page.url + path)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    if path == "/":
        picture(tab, "web-phone")
    small = tab.evaluate(
        "[...document.querySelectorAll('main button')].filter(b => b.offsetHeight && b.offsetHeight < 36).length"
    )
    assert small == 0


def test_it_is_dark_where_the_system_is(served: Served, reader: Reader) -> None:
    shade = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    light = reader(served.page, color_scheme="light").evaluate(shade)
    dark_tab = reader(served.page, color_scheme="dark")
    dark = dark_tab.evaluate(shade)
    ink = dark_tab.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).map(Number)")
    assert min(light) > 200
    assert max(dark) < 60
    assert min(ink) > 200
    dark_tab.goto(f"{served.page.url}/runs/{newest(served)}")
    if PICTURES:
        dark_tab.locator("#states").screenshot(path=DOCS / "web-states.png")


def test_it_reads_chinese(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab = reader(served.page, locale="zh-CN")
    expect(tab.get_by_role("heading", level=1)).to_have_text("任务")
    assert tab.evaluate("document.documentElement.lang") == "zh"
    tab.get_by_role("link", name="委托任务").click()
    expect(tab.get_by_label("命令")).to_be_visible()
    tab.get_by_role("button", name="EN").click()
    expect(tab).to_have_url(f"{served.page.url}/delegate")
    expect(tab.get_by_role("heading", level=1)).to_have_text("Delegate")


def test_the_keyboard_is_enough(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab = reader(served.page)
    run = delegated(tab, served.page.url, MISSING, "keys")
    expect(tab.locator("#asked article")).to_be_visible()
    tab.goto(f"{served.page.url}/inbox")
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("link", name="Skip to the content")).to_be_focused()
    tab.keyboard.press("Enter")
    there = f"document.activeElement.matches('#q-{run}-1 button.default')"
    for _ in range(20):
        tab.keyboard.press("Tab")
        if tab.evaluate(there):
            break
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "where the keyboard is must be seen"
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("status").filter(has_text="Answered")).to_contain_text(run)


def test_words_that_are_being_typed_stay(served: Served, reader: Reader) -> None:
    from playwright.sync_api import expect

    tab, other = reader(served.page, "answer"), reader(served.page)
    run = delegated(other, served.page.url, MISSING, "typed")
    tab.goto(f"{served.page.url}/inbox")
    typed = tab.locator("article", has_text=run).get_by_placeholder("In your own words")
    typed.fill("as-is, since")
    later = delegated(other, served.page.url, MISSING, "later")
    expect(tab.locator("article", has_text=later)).to_be_visible()
    expect(typed).to_have_value("as-is, since")
    expect(typed).to_be_focused()
    other.goto(served.page.url)
    picture(other, "web-board")
    for one in (run, later):
        served.page.ask("POST", f"/questions/{one}/1", json={"reply": "dont-submit"})
        expect(tab.locator("article", has_text=one)).to_have_count(0)
