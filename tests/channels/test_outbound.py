"""What goes out by webhook and by Apprise, received by real servers: signed, bounded, with links, without secrets."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from agent.channels import signing
from agent.channels.base import ChannelError, Parcel, Unsure
from agent.channels.notify import TEXT_MAX, AppriseChannel, body_of
from agent.channels.webhook import WebhookChannel
from agent.clock import VirtualClock
from states.routing import Rule
from tests.agent.fakes import START
from tests.channels.conftest import Posted, asking
from tests.channels.servers import Receiver

SECRET = "whsec_" + base64.b64encode(b"a secret of this test, and of nothing else").decode()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def parcel(**changes: object) -> Parcel:
    values: dict[str, object] = {
        "id": "ci:run:3:0",
        "run": "run",
        "at": START,
        "loud": True,
        "title": "run: it ended",
        "text": "run: it ended\nwell",
    }
    return Parcel(**(values | changes))  # type: ignore[arg-type]


class TestWebhook:
    def channel(self, url: str, *, timeout_s: float = 5.0) -> WebhookChannel:
        return WebhookChannel("ci", url=url, secret=SECRET, timeout_s=timeout_s, clock=VirtualClock(START))

    def test_its_signature_holds(self, receiver: Receiver) -> None:
        self.channel(f"{receiver.url}/in").send(parcel())
        (got,) = receiver.got
        assert signing.verified(SECRET, got.headers, got.body, START) == "ci:run:3:0"
        assert got.path == "/in"
        assert got.data["must_not_miss"] is True
        assert got.data["text"] == "run: it ended\nwell"

    def test_a_question_says_how_it_is_answered(
        self, receiver: Receiver, posted: Callable[..., Posted]
    ) -> None:
        desk = posted(checks=asking())
        courier = desk.courier(self.channel(receiver.url), Rule(group_s=0))  # type: ignore[arg-type]
        run = desk.delegate()
        desk.settle()
        courier.round()
        (question,) = [one for got in receiver.got for one in got.data["questions"]]
        assert question["id"] == f"{run}/1"
        assert {"key": "image", "text": "use this image", "value": "image"} in question["options"]
        assert question["default"] == "dont-submit"
        assert datetime.fromisoformat(question["answer_by"]) == desk.job(run).open_questions[0].answer_by

    def test_a_refusal_is_known_and_no_answer_is_not(self, receiver: Receiver) -> None:
        receiver.status = 503
        with pytest.raises(ChannelError, match="answered 503") as refused:
            self.channel(receiver.url).send(parcel())
        assert not isinstance(refused.value, Unsure)
        receiver.stalls = True
        with pytest.raises(Unsure):
            self.channel(receiver.url, timeout_s=0.3).send(parcel())

    def test_nobody_there_is_known(self, receiver: Receiver) -> None:
        url = receiver.url
        receiver.close()
        with pytest.raises(ChannelError) as refused:
            self.channel(url).send(parcel())
        assert not isinstance(refused.value, Unsure)

    def test_its_address_stands_in_no_error(self, receiver: Receiver) -> None:
        receiver.status = 404
        with pytest.raises(ChannelError) as refused:
            self.channel(f"{receiver.url}/token-of-the-path").send(parcel())
        assert "token-of-the-path" not in str(refused.value)

    def test_without_an_address_nothing_goes_out(self) -> None:
        channel = self.channel("")
        assert channel.send(parcel()) == ""
        assert "only sends to us" in channel.test()


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # Apprise imports it
class TestApprise:
    def channel(self, receiver: Receiver, **options: object) -> AppriseChannel:
        url = receiver.url.replace("http://", "json://user:pass-of-the-url@")
        return AppriseChannel("phone", url=url, **{"timeout_s": 5.0, **options})  # type: ignore[arg-type]

    def test_title_and_text_arrive(self, receiver: Receiver) -> None:
        self.channel(receiver).send(parcel())
        (got,) = receiver.got
        assert (got.data["title"], got.data["message"]) == ("run: it ended", "run: it ended\nwell")
        assert got.data["type"] == "warning"

    def test_routine_is_not_told_as_a_warning(self, receiver: Receiver) -> None:
        self.channel(receiver).send(parcel(loud=False))
        assert receiver.got[0].data["type"] == "info"

    def test_a_question_comes_with_its_link(self, receiver: Receiver, posted: Callable[..., Posted]) -> None:
        desk = posted(checks=asking())
        courier = desk.courier(self.channel(receiver), base="https://wk.example/x")  # type: ignore[arg-type]
        run = desk.delegate()
        desk.settle()
        courier.round()
        message = receiver.got[-1].data["message"]
        token = message.partition("https://wk.example/x/a/")[2].split()[0]
        assert courier.packer.links.read(token).question_id == f"{run}/1"

    def test_a_failure_is_one_and_its_url_is_shown_nowhere(
        self, receiver: Receiver, caplog: pytest.LogCaptureFixture
    ) -> None:
        receiver.status = 500
        channel = self.channel(receiver)
        with caplog.at_level(logging.DEBUG), pytest.raises(ChannelError) as refused:
            channel.send(parcel())
        assert "pass-of-the-url" not in f"{refused.value} {channel.shown()} {caplog.text}"

    def test_a_stalled_server_does_not_hold_it_up(self, receiver: Receiver) -> None:
        receiver.stalls = True
        with pytest.raises(ChannelError):
            self.channel(receiver, timeout_s=0.3).send(parcel())

    def test_a_url_that_is_none_says_so(self) -> None:
        with pytest.raises(ChannelError, match="no URL that Apprise knows"):
            AppriseChannel("phone", url="what://is.this", timeout_s=1).send(parcel())

    def test_a_long_text_is_cut_and_its_links_are_not(self) -> None:
        told = body_of(parcel(text="x" * 9000, link="https://wk.example/runs/run"), "en")
        assert len(told) <= TEXT_MAX
        assert told.endswith("The run: https://wk.example/runs/run")
