"""Signatures and links: what holds, what does not, and when."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest

from agent.channels import signing
from agent.channels.links import Links, NotGood
from agent.channels.signing import Forged
from agent.clock import VirtualClock
from tests.agent.fakes import START

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdefghijklmn").decode()


class TestSignature:
    def test_it_is_that_of_the_specification(self) -> None:
        """Recomputed by `openssl dgst -sha256 -hmac` over `id.time.body`."""
        signed = signing.headers("plain", "m1", START, b'{"a":1}')
        assert signed["webhook-timestamp"] == "1772352000"
        assert signed["webhook-signature"] == "v1,DTcbKlQ8CW65ATYwHtKJc6uG844t0MBXOfyzRpjRoNM="

    @pytest.mark.parametrize("late_s", [0, 299, -299])
    def test_it_holds_within_the_window(self, late_s: float) -> None:
        signed = signing.headers(SECRET, "m1", START, b"body")
        assert signing.verified(SECRET, signed, b"body", START + timedelta(seconds=late_s)) == "m1"

    @pytest.mark.parametrize("late_s", [301, -301, 86_400])
    def test_a_repeat_from_another_time_is_refused(self, late_s: float) -> None:
        signed = signing.headers(SECRET, "m1", START, b"body")
        with pytest.raises(Forged, match="300 s"):
            signing.verified(SECRET, signed, b"body", START + timedelta(seconds=late_s))

    @pytest.mark.parametrize(
        "change",
        [
            {"webhook-id": "m2"},
            {"webhook-timestamp": str(int(START.timestamp()) + 1)},
            {"webhook-signature": "v1,AAAA"},
            {"webhook-signature": "v1a,AAAA v2,BBBB"},
            {"webhook-timestamp": "soon"},
            {"webhook-timestamp": "٣"},
            {"webhook-id": ""},
        ],
    )
    def test_a_change_of_anything_breaks_it(self, change: dict[str, str]) -> None:
        signed = signing.headers(SECRET, "m1", START, b"body")
        with pytest.raises(Forged):
            signing.verified(SECRET, signed | change, b"body", START)

    def test_another_body_or_secret_breaks_it(self) -> None:
        signed = signing.headers(SECRET, "m1", START, b"body")
        for secret, body in ((SECRET, b"bodY"), ("whsec_AAAA", b"body"), ("plain", b"body")):
            with pytest.raises(Forged):
                signing.verified(secret, signed, body, START)

    def test_one_of_several_signatures_is_enough(self) -> None:
        """While a secret is being changed the sender signs with both."""
        signed = signing.headers(SECRET, "m1", START, b"body")
        both = signed | {"webhook-signature": f"v1,AAAA {signed['webhook-signature']}"}
        assert signing.verified(SECRET, both, b"body", START) == "m1"


class TestLinks:
    def links(self, key: str = "k1", *, base: str = "https://wk.example") -> tuple[Links, VirtualClock]:
        clock = VirtualClock(START)
        return Links(lambda: key, clock, base=base), clock

    def test_a_link_is_good_for_its_question_until_its_end(self) -> None:
        links, clock = self.links()
        until = START + timedelta(hours=1)
        token = links.sign("run-1/2", by="phone", until=until)
        clock.step(3599)
        assert links.read(token) == ("run-1/2", "phone", until)
        clock.step(1)
        with pytest.raises(NotGood, match="good until"):
            links.read(token)

    def test_another_key_a_change_or_a_session_is_not_good(self) -> None:
        from itsdangerous import URLSafeSerializer

        links, _ = self.links()
        token = links.sign("run-1/2", by="phone", until=START + timedelta(hours=1))
        session = URLSafeSerializer("k1", salt="session").dumps(["run-1/2", "phone", 4e9])
        for bad in (token[:-2], token[1:], "", "a.b.c", str(session)):
            with pytest.raises(NotGood):
                links.read(bad)
        with pytest.raises(NotGood):
            self.links("k2")[0].read(token)

    def test_without_a_key_or_a_page_there_is_none(self) -> None:
        until = START + timedelta(hours=1)
        assert self.links("")[0].url("run-1/2", by="phone", until=until) == ""
        assert self.links(base="")[0].url("run-1/2", by="phone", until=until) == ""
        with pytest.raises(NotGood):
            self.links("")[0].read(self.links()[0].sign("run-1/2", by="phone", until=until))
        assert self.links()[0].url("run-1/2", by="phone", until=until).startswith("https://wk.example/a/")
