"""What the inbox holds reaches each channel once: through failures, lost answers and crashes; questions in time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta

import pytest

from agent.channels.courier import FAILS_TELL, TELL_S
from agent.deliveries import HELD
from states.job import State
from states.orders import QuietHours
from states.routing import NEAR_S, Rule
from tests.agent.fakes import BROKEN, ENDLESS, GOOD
from tests.channels.conftest import Box, Died, Posted, asking

Make = Callable[..., Posted]

EACH = Rule(group_s=0)
ALL_DAY = QuietHours.model_validate({"from": "00:01", "to": "23:59"})


def messages(desk: Posted) -> list[str]:
    return [row["id"] for row in desk.store.messages(desk.store.boards()[0]["id"])]


def rest(desk: Posted, seconds: float) -> None:
    desk.clock.step(seconds)


class TestOnce:
    def test_every_message_arrives_once_and_in_order(self, posted: Make) -> None:
        desk, box = posted(GOOD), Box("team")
        courier = desk.courier(box, EACH)
        run = desk.delegate()
        desk.run_to(run, State.succeeded)
        courier.round()
        courier.round()
        told = [row["text"] for row in desk.store.messages(run)]
        assert sorted(box.texts) == sorted(told)
        assert len({parcel.id for parcel in box.got}) == len(told) > 2

    def test_a_new_channel_begins_with_what_comes_from_now_on(self, posted: Make) -> None:
        desk, box = posted(GOOD), Box("team")
        first = desk.delegate()
        desk.run_to(first, State.succeeded)
        rest(desk, 7200)
        courier = desk.courier(box, EACH)
        second = desk.delegate(name="later")
        desk.run_to(second, State.succeeded)
        courier.round()
        assert {parcel.run for parcel in box.got} == {second}

    def test_what_a_channel_does_not_want_stays_in_the_inbox(self, posted: Make) -> None:
        desk, box = posted(GOOD), Box("phone")
        courier = desk.courier(box, Rule(wants="must-not-miss"))
        desk.run_to(desk.delegate(), State.succeeded)
        courier.round()
        assert [parcel.stage for parcel in box.got] == ["wrap-up"]
        assert len(messages(desk)) > 2
        assert courier.deliveries.next_at("phone") is None

    def test_a_failed_send_is_tried_again_and_arrives_once(self, posted: Make) -> None:
        desk, box = posted(GOOD), Box("team")
        courier = desk.courier(box, Rule(wants="must-not-miss"))
        desk.run_to(desk.delegate(), State.succeeded)
        box.fails = ["down", "down"]
        rounds = 0
        while not box.got:
            courier.round()
            rest(desk, 60)
            rounds += 1
        courier.round()
        assert (rounds, len(box.got)) == (3, 1)

    @pytest.mark.parametrize("ends", ["lost", "died"])
    def test_after_a_lost_answer_or_a_crash_the_channel_is_asked_first(self, posted: Make, ends: str) -> None:
        desk, box = posted(GOOD), Box("team")
        courier = desk.courier(box, Rule(wants="must-not-miss"))
        desk.run_to(desk.delegate(), State.succeeded)
        box.fails = [ends]
        with contextlib.suppress(Died):
            courier.round()
        rest(desk, HELD.total_seconds() + 1)
        courier.round()
        rest(desk, 3600)
        courier.round()
        assert len(box.got) == 1
        (row,) = courier.deliveries.of_message(box.got[0].id.partition(":")[2])
        assert (row["state"], row["place"]) == ("sent", "at-1")

    def test_where_it_cannot_be_told_what_interrupts_comes_again_and_says_so(self, posted: Make) -> None:
        desk, box = posted(BROKEN), Box("mail", tells=False)
        courier = desk.courier(box, Rule(wants="must-not-miss"))
        desk.run_to(desk.delegate(), State.failed)
        box.fails = ["lost"]
        courier.round()
        rest(desk, 3600)
        courier.round()
        first, second = box.got
        assert first.id == second.id
        assert second.text == f"(Again: it is not known whether this arrived before.)\n{first.text}"

    def test_where_it_cannot_be_told_routine_is_not_doubled(self, posted: Make) -> None:
        desk, box = posted(ENDLESS), Box("mail", tells=False)
        courier = desk.courier(box, Rule(group_s=60))
        run = desk.delegate()
        desk.run_to(run, State.running)
        rest(desk, 120)
        box.fails = ["lost"]
        courier.round()
        rest(desk, 3600)
        courier.round()
        assert len([parcel for parcel in box.got if not parcel.loud]) == 1

    def test_two_processes_do_not_both_send(self, posted: Make) -> None:
        desk, box = posted(GOOD), Box("team")
        one, two = desk.courier(box, EACH), desk.courier(box, EACH)
        desk.run_to(desk.delegate(), State.succeeded)
        one.take_in()
        claimed = one.deliveries.claim("team", desk.clock.now())
        assert claimed
        two.round()
        assert box.got == []
        rest(desk, HELD.total_seconds() + 1)  # the first one died
        two.round()
        assert len(box.got) == len(messages(desk))


class TestTogether:
    def test_routine_of_an_interval_is_one_quiet_parcel(self, posted: Make) -> None:
        desk, box = posted(ENDLESS), Box("phone")
        courier = desk.courier(box, Rule(group_s=3600))
        runs = [desk.delegate(), desk.delegate(name="other")]
        for run in runs:
            desk.run_to(run, State.running)
        courier.round()
        assert box.got == []
        rest(desk, 3600)
        courier.round()
        (parcel,) = box.got
        assert not parcel.loud
        assert all(run in parcel.text for run in runs)
        assert parcel.title.endswith("updates")

    def test_a_channel_with_threads_keeps_runs_apart(self, posted: Make) -> None:
        desk, box = posted(ENDLESS), Box("team", threads=True)
        courier = desk.courier(box, Rule(group_s=3600))
        runs = [desk.delegate(), desk.delegate(name="other")]
        for run in runs:
            desk.run_to(run, State.running)
        rest(desk, 3600)
        courier.round()
        assert sorted(parcel.run for parcel in box.got) == sorted(runs)

    def test_later_parcels_of_a_run_go_to_its_thread(self, posted: Make) -> None:
        desk, box = posted(GOOD), Box("team", threads=True)
        courier = desk.courier(box, Rule(group_s=60))
        run = desk.delegate()
        desk.run_to(run, State.running)
        rest(desk, 60)
        courier.round()
        desk.run_to(run, State.succeeded)
        courier.round()
        assert [parcel.thread for parcel in box.got] == ["", "at-1"]
        assert courier.deliveries.run_at("team", "at-1") == run

    def test_what_is_told_aloud_brings_along_what_was_gathered(self, posted: Make) -> None:
        desk, box = posted(GOOD), Box("phone")
        courier = desk.courier(box, Rule(group_s=86_400))
        run = desk.delegate()
        desk.run_to(run, State.succeeded)
        courier.round()
        (parcel,) = box.got
        told = desk.store.messages(run)
        assert parcel.loud
        assert parcel.text.startswith(told[-1]["text"])
        assert "Before:" in parcel.text
        rest(desk, 2 * 86_400)
        courier.round()
        assert len(box.got) == 1

    def test_a_parcel_that_was_begun_stays_as_it_is(self, posted: Make) -> None:
        """Its receiver drops a second one by its key, so nothing may be added to it."""
        desk, box = posted(ENDLESS), Box("phone")
        courier = desk.courier(box, Rule(group_s=60))
        run = desk.delegate()
        desk.run_to(run, State.running)
        rest(desk, 60)
        box.fails = ["down"]
        courier.round()
        desk.service.stop(run)
        desk.settle()
        rest(desk, 3600)
        courier.round()
        later = desk.clock.now()
        assert box.got
        texts = "\n".join(box.texts)
        for row in desk.store.messages(run):
            if row["at"] < later - timedelta(seconds=60):
                assert texts.count(row["text"].partition("\n")[0]) >= 1


class TestQuestions:
    def test_a_question_interrupts_and_carries_its_link(self, posted: Make) -> None:
        desk, box = posted(checks=asking()), Box("phone")
        courier = desk.courier(box)
        run = desk.delegate()
        desk.settle()
        courier.round()
        (parcel,) = [one for one in box.got if one.kind == "question"]
        (asked,) = parcel.asked
        assert parcel.loud
        assert asked.question.id == f"{run}/1"
        token = asked.link.rpartition("/")[2]
        assert courier.packer.links.read(token).question_id == f"{run}/1"

    def test_one_that_was_answered_meanwhile_is_not_asked(self, posted: Make) -> None:
        desk, box = posted(checks=asking()), Box("phone")
        courier = desk.courier(box, Rule(wants="questions"))
        run = desk.delegate()
        desk.settle()
        box.down = True
        courier.round()
        desk.service.answer(f"{run}/1", "reg/a:1")
        desk.settle()
        box.down = False
        rest(desk, 600)
        courier.round()
        assert [parcel.kind for parcel in box.got if parcel.kind == "question"] == []
        assert courier.deliveries.next_at("phone") is None

    def test_quiet_hours_hold_it_no_longer_than_leaves_time(self, posted: Make) -> None:
        desk, box = posted(checks=asking()), Box("phone")
        courier = desk.courier(box, quiet=ALL_DAY)
        run = desk.delegate(policy={"answer_s_no_submit": 4 * NEAR_S})
        desk.settle()
        courier.round()
        assert box.got == []
        answer_by = desk.job(run).open_questions[0].answer_by
        rest(desk, (answer_by - desk.clock.now()).total_seconds() - NEAR_S)
        courier.round()
        assert [parcel.kind for parcel in box.got] == ["question"]

    def test_one_whose_deadline_is_near_wakes(self, posted: Make) -> None:
        desk, box = posted(checks=asking()), Box("phone")
        courier = desk.courier(box, quiet=ALL_DAY)
        desk.delegate(policy={"answer_s_no_submit": NEAR_S / 2})
        desk.settle()
        courier.round()
        assert [parcel.kind for parcel in box.got] == ["question"]


class TestDead:
    def failing(self, desk: Posted, box: Box, other: Box) -> None:
        one = desk.courier(box, EACH, others=[other.name])
        two = desk.courier(other, EACH, others=[box.name])
        desk.run_to(desk.delegate(), State.succeeded)
        box.down = True
        for _ in range(FAILS_TELL + 2):
            one.round()
            two.round()
            rest(desk, TELL_S)

    def test_it_is_told_of_once_on_the_others(self, posted: Make) -> None:
        desk, box, other = posted(GOOD), Box("team"), Box("mail")
        self.failing(desk, box, other)
        notices = [parcel for parcel in other.got if parcel.kind == "notice"]
        assert len(notices) == 1
        assert "The channel team" in notices[0].text
        assert "nobody answers" in notices[0].text
        assert notices[0].loud

    def test_when_it_answers_again_nothing_is_lost_and_that_is_told(self, posted: Make) -> None:
        desk, box, other = posted(GOOD), Box("team"), Box("mail")
        self.failing(desk, box, other)
        box.down = False
        one, two = desk.courier(box, EACH, others=["mail"]), desk.courier(other, EACH, others=["team"])
        for _ in range(20):
            one.round()
            two.round()
            rest(desk, 900)
        assert {parcel.id.partition(":")[2] for parcel in box.got} >= set(messages(desk))
        assert len(box.got) == len(messages(desk))
        notices = [parcel.text for parcel in other.got if parcel.kind == "notice"]
        assert len(notices) == 2
        assert "answers again" in notices[1]
        standing = one.deliveries.standing("team", desk.clock.now())
        assert (standing.failing_since, standing.fails, standing.waiting) == (None, 0, 0)

    def test_one_hiccup_is_told_to_nobody(self, posted: Make) -> None:
        desk, box, other = posted(GOOD), Box("team"), Box("mail")
        one, two = desk.courier(box, EACH, others=["mail"]), desk.courier(other, EACH, others=["team"])
        desk.run_to(desk.delegate(), State.succeeded)
        box.fails = ["down"]
        for _ in range(4):
            one.round()
            two.round()
            rest(desk, 60)
        assert [parcel for parcel in other.got if parcel.kind == "notice"] == []
