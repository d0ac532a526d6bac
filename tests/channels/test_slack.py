"""Slack, against a server that speaks as it does: threads, buttons, the socket, and what comes back by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.channel_settings import SlackSettings
from agent.channels.base import ChannelError
from agent.channels.chat import Chat
from agent.channels.courier import Courier
from agent.channels.slack import SECTION_MAX, SlackChannel, blocks_of, pieces
from agent.channels.slack_listen import SlackEar
from agent.people import Role
from states.job import State
from states.routing import Rule
from tests.agent.fakes import ENDLESS, GOOD
from tests.channels.conftest import Posted, asking
from tests.channels.servers import Slack
from tests.channels.test_outbound import parcel

Make = Callable[..., Posted]
EACH = Rule(group_s=0)


@pytest.fixture
def slack() -> Iterator[Slack]:
    made = Slack()
    yield made
    made.close()


def settings(slack: Slack, **more: Any) -> SlackSettings:
    return SlackSettings(kind="slack", conversation="C123", base_url=slack.api, **more)


def channel(slack: Slack, **more: Any) -> SlackChannel:
    return SlackChannel("team", settings(slack, **more), bot_token="xoxb-of-this-test")


def on(desk: Posted, slack: Slack, rule: Rule = EACH) -> Courier:
    return desk.courier(channel(slack), rule)  # type: ignore[arg-type]


@pytest.fixture
def listening(
    slack: Slack, posted: Make, eventually: Callable[..., Any]
) -> Iterator[tuple[Posted, Slack, str, Courier]]:
    """A run that asks for an image, put to a Slack that listens."""
    desk = posted(ENDLESS, checks=asking(), shared=True)
    courier = on(desk, slack)
    ear = SlackEar(
        "team",
        settings(slack, roles={"UBOSS": "operate", "UGUEST": "read", "UNOBODY": "none"}),
        Chat(desk.service),
        courier.deliveries,
        bot_token="xoxb-of-this-test",
        app_token="xapp-of-this-test",
    )
    run = desk.delegate()
    desk.settle()
    courier.round()
    ear.start()
    eventually(lambda: ear.connected.is_set() and slack.listens)
    yield desk, slack, run, courier
    ear.close()


def question_of(slack: Slack) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The message with buttons, and its buttons."""
    for message in slack.messages:
        for block in message.get("blocks", ()):
            if block["type"] == "actions":
                return message, block["elements"]
    raise AssertionError(slack.messages)


class TestOut:
    def test_a_run_has_a_thread(self, slack: Slack, posted: Make) -> None:
        desk = posted(GOOD)
        courier = on(desk, slack)
        run = desk.delegate()
        desk.run_to(run, State.succeeded)
        courier.round()
        first, *others = slack.messages
        assert "thread_ts" not in first
        assert others
        assert {message["thread_ts"] for message in others} == {first["ts"]}
        assert others[-1]["reply_broadcast"] == "1"  # the end of a run interrupts
        assert slack.tokens == {"xoxb-of-this-test"}

    def test_each_option_is_a_button_and_the_default_stands_out(self, slack: Slack, posted: Make) -> None:
        desk = posted(checks=asking())
        courier = on(desk, slack)
        run = desk.delegate()
        desk.settle()
        courier.round()
        _, buttons = question_of(slack)
        assert [button["value"] for button in buttons] == [
            f"{run}/1|{key}" for key in ("image", "again", "dont-submit")
        ]
        assert [button.get("style") for button in buttons] == [None, None, "primary"]

    @pytest.mark.parametrize(("mention", "called"), [("here", "<!here>"), ("U0123", "<@U0123>")])
    def test_what_must_not_be_missed_calls_somebody(self, slack: Slack, mention: str, called: str) -> None:
        here = channel(slack, mention=mention)
        here.send(parcel())
        here.send(parcel(loud=False))
        assert [called in str(message["blocks"]) for message in slack.messages] == [True, False]
        assert [message["text"].startswith(called) for message in slack.messages] == [True, False]

    def test_text_of_a_run_is_no_markup(self) -> None:
        blocks = blocks_of(parcel(text="<!channel> *now* <https://x.example|click>"))
        assert blocks[0]["text"]["type"] == "plain_text"
        assert blocks[0]["text"]["text"].startswith("<!channel>")

    def test_a_long_text_fits(self) -> None:
        found = pieces("\n".join("line " + "x" * 200 for _ in range(200)))
        assert max(map(len, found)) <= SECTION_MAX
        assert found[-1].endswith(" …")
        assert pieces("short") == ["short"]

    def test_a_message_whose_answer_was_lost_is_found_and_not_doubled(
        self, slack: Slack, posted: Make
    ) -> None:
        desk = posted(GOOD)
        courier = on(desk, slack)
        run = desk.delegate()
        desk.run_to(run, State.succeeded)
        slack.mute = 2
        for _ in range(6):
            courier.round()
            desk.clock.step(900)
        ids = [message["metadata"]["event_payload"]["id"] for message in slack.messages]
        assert sorted(ids) == sorted(f"team:{row['id']}" for row in desk.store.messages(run))

    def test_what_slack_refuses_is_said_by_its_word(self, slack: Slack) -> None:
        slack.errors["chat.postMessage"] = "not_in_channel"
        with pytest.raises(ChannelError, match="not_in_channel"):
            channel(slack).send(parcel())

    def test_it_tests_its_way_without_a_message(self, slack: Slack) -> None:
        assert "#runs" in channel(slack).test()
        assert slack.messages == []


class TestIn:
    def test_a_button_answers_in_the_thread(
        self, listening: tuple[Posted, Slack, str, Courier], eventually: Callable[..., Any]
    ) -> None:
        desk, slack, run, _ = listening
        message, buttons = question_of(slack)
        envelope = slack.press(message, buttons[2], user="U7")
        said = eventually(lambda: slack.replies(message.get("thread_ts") or message["ts"]))
        desk.settle()
        assert desk.job(run).state is State.not_submitted
        assert desk.job(run).questions[0].by == "slack:U7"
        assert "don't submit" in said[0]
        assert envelope in slack.acked

    def test_a_second_press_is_told_what_the_first_was(
        self, listening: tuple[Posted, Slack, str, Courier], eventually: Callable[..., Any]
    ) -> None:
        desk, slack, run, _ = listening
        message, buttons = question_of(slack)
        desk.service.answer(f"{run}/1", "reg/a:1", by="kim")
        slack.press(message, buttons[2])
        (said,) = eventually(lambda: slack.replies(message.get("thread_ts") or message["ts"]))
        assert "was answered" in said
        assert desk.job(run).questions[0].by == "kim"

    def test_an_option_with_a_value_is_asked_for_and_answered_by_a_reply(
        self, listening: tuple[Posted, Slack, str, Courier], eventually: Callable[..., Any]
    ) -> None:
        desk, slack, run, _ = listening
        message, buttons = question_of(slack)
        thread = message.get("thread_ts") or message["ts"]
        slack.press(message, buttons[0])
        (said,) = eventually(lambda: slack.replies(thread))
        assert "reply here with the image" in said
        assert desk.job(run).open_questions
        slack.say("registry.lab/torch:2.9", thread=thread, user="U7")
        eventually(lambda: not desk.job(run).open_questions)
        assert desk.job(run).questions[0].value == "registry.lab/torch:2.9"

    def test_the_same_event_again_changes_nothing(
        self, listening: tuple[Posted, Slack, str, Courier], eventually: Callable[..., Any]
    ) -> None:
        desk, slack, run, _ = listening
        message, _ = question_of(slack)
        thread = message.get("thread_ts") or message["ts"]
        for _ in range(2):
            slack.say("don't submit", thread=thread, ts="88.5")
        eventually(lambda: len(slack.replies(thread)) >= 2)
        assert [row["kind"] for row in desk.store.journal(run)].count("answered") == 1

    @pytest.mark.parametrize(("user", "told"), [("UGUEST", "role answer"), ("UNOBODY", "role answer")])
    def test_who_may_not_answer_does_not(
        self,
        listening: tuple[Posted, Slack, str, Courier],
        eventually: Callable[..., Any],
        user: str,
        told: str,
    ) -> None:
        desk, slack, run, _ = listening
        message, buttons = question_of(slack)
        slack.press(message, buttons[2], user=user)
        (said,) = eventually(lambda: slack.replies(message.get("thread_ts") or message["ts"]))
        assert told in said
        assert desk.job(run).open_questions

    def test_the_command_tells_how_a_run_stands(
        self, listening: tuple[Posted, Slack, str, Courier], eventually: Callable[..., Any]
    ) -> None:
        _, slack, run, _ = listening
        slack.command(f"how is {run}?")
        (response,) = eventually(lambda: slack.responses)
        assert run in response["text"]
        assert response["response_type"] == "ephemeral"

    def test_a_stop_takes_the_role_for_it(
        self, listening: tuple[Posted, Slack, str, Courier], eventually: Callable[..., Any]
    ) -> None:
        desk, slack, run, _ = listening
        slack.command(f"stop {run}", user="U7")
        eventually(lambda: slack.responses)
        assert "role operate" in slack.responses[0]["text"]
        assert not desk.job(run).is_terminal
        slack.command(f"stop {run}", user="UBOSS")
        eventually(lambda: len(slack.responses) == 2)
        desk.settle()
        assert desk.job(run).is_terminal

    def test_what_others_say_among_themselves_is_not_for_us(
        self, listening: tuple[Posted, Slack, str, Courier], eventually: Callable[..., Any]
    ) -> None:
        desk, slack, run, _ = listening
        before = len(slack.messages)
        one = slack.say(f"stop {run}", user="UBOSS", ts="90.1")
        two = slack.say(f"stop {run}", user="UBOSS", thread="12.34", ts="90.2")
        eventually(lambda: {one, two} <= set(slack.acked))
        slack.say("<@UBOT> help", kind="app_mention", ts="90.3")
        eventually(lambda: len(slack.messages) > before)
        assert len(slack.messages) == before + 1
        assert desk.job(run).open_questions

    def test_a_socket_that_ends_is_opened_again(
        self, listening: tuple[Posted, Slack, str, Courier], eventually: Callable[..., Any]
    ) -> None:
        _, slack, run, _ = listening
        slack.hang_up()
        eventually(lambda: slack.opened >= 2)
        eventually(lambda: slack.listens)
        slack.command(f"how is {run}?")
        assert eventually(lambda: slack.responses)


def test_roles_are_those_of_the_settings(slack: Slack, posted: Make) -> None:
    desk = posted()
    ear = SlackEar(
        "team",
        settings(slack, others="read", roles={"UBOSS": "operate", "UNOBODY": "none"}),
        Chat(desk.service),
        on(desk, slack).deliveries,
        bot_token="b",
        app_token="a",
    )
    assert [ear.role_of(user) for user in ("UBOSS", "U1", "UNOBODY")] == [Role.operate, Role.read, None]
